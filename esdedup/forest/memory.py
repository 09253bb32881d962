"""A store in memory, for files and tests."""

from concurrent.futures import Future

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.forest.model import Aging, Arrivals, Plan, State
from esdedup.forest.nodes import Nodes
from esdedup.forest.store import at_once
from esdedup.neighbours.relation import Relation


class MemoryStore:
    """Keeps a forest for as long as the process runs."""

    def __init__(self, *, aging: Aging, relation: Relation) -> None:
        """Make an empty forest.

        Args:
            aging: How long nodes live.
            relation: The profile's.
        """
        self.aging = aging
        self.relation = relation
        self.boilerplate = Boilerplate()
        self._nodes = Nodes(relation, aging)
        self._state = State()

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        return self._nodes.size_bytes + self.boilerplate.size_bytes

    def state(self) -> State:
        """Return the state of the last plan that was committed."""
        while self._nodes.depth:
            self._nodes.undo()
        return self._state

    def nodes(self, arrivals: Arrivals, state: State) -> Nodes:  # noqa: ARG002 - it has all of them
        """Return all nodes."""
        return self._nodes

    def commit(self, plan: Plan) -> Future[None]:
        """Keep what was decided; repeating the last commit changes nothing."""
        self._state = plan.state
        self._nodes.keep()
        if plan.learned is not None and self.boilerplate.has_begun:
            self.boilerplate.keep()
        return at_once()

    def learn(self, changes: Changes) -> None:  # noqa: ARG002 - the boilerplate has them
        """Keep what the pages of a batch have taught."""
        self.boilerplate.keep()

"""A store in memory, for files and tests."""

from concurrent.futures import Future

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.forest.model import Aging, Arrivals, Plan, State
from esdedup.forest.nodes import Nodes
from esdedup.forest.store import completed
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
        self.state = State()
        self._nodes = Nodes(relation, aging)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        return self._nodes.size_bytes + self.boilerplate.size_bytes

    def begin(self) -> None:
        """Begin a batch, and undo what was not committed."""
        while self._nodes.depth:
            self._nodes.undo()
        while self.boilerplate.has_begun:
            self.boilerplate.undo()
        self.boilerplate.begin()

    def nodes(self, arrivals: Arrivals) -> Nodes:  # noqa: ARG002 - it has all of them
        """Return all nodes."""
        return self._nodes

    def commit(self, plan: Plan) -> Future[None]:
        """Keep what was decided, and what was learned."""
        self.state = plan.state
        self._nodes.keep()
        self.boilerplate.keep()
        return completed()

    def learn(self) -> None:
        """Keep what was learned."""
        self.boilerplate.keep()

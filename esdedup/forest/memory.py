"""A store in memory, for files and tests."""

from concurrent.futures import Future

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.forest.memory_nodes import MemoryNodes
from esdedup.forest.model import Aging, Arrivals, Neighbours, Plan, State
from esdedup.forest.store import at_once
from esdedup.neighbours.relation import Relation


class MemoryStore:
    """Keeps a forest for as long as the process runs. Expired nodes stay."""

    def __init__(self, *, aging: Aging, relation: Relation) -> None:
        """Make an empty forest.

        Args:
            aging: How long nodes live.
            relation: The profile's.
        """
        self.aging = aging
        self.relation = relation
        self.boilerplate = Boilerplate()
        self._nodes = MemoryNodes(aging=aging, relation=relation)
        self._state = State()

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        return self._nodes.size_bytes + self.boilerplate.size_bytes

    def state(self) -> State:
        """Return the state of the last plan that was committed."""
        return self._state

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find the nodes near the arrivals, with their roots."""
        return self._nodes.find_neighbours(arrivals, live_since_ms=state.live_since_ms(self.aging))

    def commit(self, plan: Plan) -> Future[None]:
        """Apply the plan; repeating the last commit changes nothing."""
        if plan.state != self._state:
            self._nodes.put(plan)
            self._state = plan.state
            if plan.learned is not None:
                self.boilerplate.keep()
        return at_once()

    def learn(self, changes: Changes) -> None:  # noqa: ARG002 - the boilerplate has them
        """Keep what the pages of a batch have taught."""
        self.boilerplate.keep()

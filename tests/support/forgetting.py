"""A store in memory that removes what has expired."""

from esdedup.forest import Arrivals, Neighbours, State
from esdedup.forest.memory import MemoryStore


class Forgetting(MemoryStore):
    """Removes it whenever a batch begins."""

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find neighbours among what is left."""
        self._nodes.forget(state.live_since_ms(self.aging))
        return super().find_neighbours(arrivals, state)

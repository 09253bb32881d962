"""The forest: arrivals in, roots out."""

from esdedup.forest.laws import Decision, roots_in_conflict, times
from esdedup.forest.model import Aging, Arrivals, Assignment, State, pairs_of
from esdedup.forest.near import HammingIndex
from esdedup.forest.store import Store


class Forest:
    """Assigns arrivals to clusters, by the laws, over the nodes of a store."""

    def __init__(self, store: Store, *, aging: Aging, max_distance_bits: int = 3) -> None:
        self._store = store
        self._aging = aging
        self._max_distance_bits = max_distance_bits

    def assign(self, arrivals: Arrivals, *, now_ms: int) -> list[Assignment]:
        """Give every arrival its root; what it returns has been written.

        How arrivals are cut into batches makes no difference to their roots.

        Args:
            arrivals: In the order of their coming.
            now_ms: The clock: a time that lies more than a day after it is not believed.
        """
        if not len(arrivals):
            return []
        before = self._store.state()
        times_ms, origin_ms = times(arrivals, before, now_ms=now_ms)
        state = State(seq=before.seq, time_ms=before.time_ms, origin_ms=origin_ms)
        near = self._store.find_near(arrivals, aging=self._aging, state=state)
        near_within = self._near_within(arrivals)
        end_ms = int(times_ms[-1])
        conflict = roots_in_conflict(near, near_within, aging=self._aging, state=state, end_ms=end_ms)
        leaf_counts = (
            self._store.count_leaves(conflict, aging=self._aging, state=state, end_ms=end_ms)
            if conflict
            else {}
        )
        plan = Decision(
            near=near, near_within=near_within, leaf_counts=leaf_counts, aging=self._aging, state=state
        ).decide(arrivals, times_ms)
        self._store.commit(plan)
        return list(plan.assignments)

    def _near_within(self, arrivals: Arrivals) -> dict[int, list[int]]:
        """For each arrival, the earlier ones of the batch near it."""
        positions = arrivals.with_node
        fingerprints = arrivals.fingerprints[positions]
        index = HammingIndex(max_distance_bits=self._max_distance_bits)
        index.add(fingerprints)
        later, earlier = index.search(fingerprints)
        before = earlier < later
        return pairs_of(positions[later[before]], positions[earlier[before]].tolist())

"""The forest: arrivals in, roots out."""

from esdedup.forest.laws import Decision, times
from esdedup.forest.model import Ages, Arrivals, Assignment, State, pairs_of
from esdedup.forest.saturated_keys import SaturatedKeys
from esdedup.forest.store import Store


class Forest:
    """Assigns arrivals to clusters, by the laws, over the nodes of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        near = self._store.find_neighbours(arrivals, state)
        relation, aging = self._store.relation, self._store.aging
        ages = Ages.of(times_ms, aging=aging, origin_ms=origin_ms)
        saturated_keys = SaturatedKeys(arrivals, near=near, relation=relation, ages=ages)
        decision = Decision(
            arrivals,
            ages,
            near=near,
            near_within=self._near_within(arrivals, saturated_keys),
            saturated_keys=saturated_keys,
            relation=relation,
            state=state,
        )
        end_ms = int(times_ms[-1])
        plan = decision.decide(
            lambda roots: self._store.count_leaves(near, roots, state, end_ms=end_ms) if roots else {}
        )
        self._store.commit(plan)
        return list(plan.assignments)

    def _near_within(self, arrivals: Arrivals, saturated_keys: SaturatedKeys) -> dict[int, list[int]]:
        """For each arrival, the earlier ones of the batch near it, but for what a crowd may carry."""
        positions = arrivals.with_node
        signatures = arrivals.signatures[positions]
        relation = self._store.relation
        index = relation.new_index()
        index.add(relation.mark_indexed(signatures, saturated_keys.indexed[positions]))
        met = index.search(signatures)
        later, earlier = met.positions, met.rows
        before = earlier < later
        return pairs_of(positions[later[before]], positions[earlier[before]])

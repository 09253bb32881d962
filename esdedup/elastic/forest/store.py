"""The forest's store in Elasticsearch: its index, its lease, and what no refresh has shown yet."""

from collections.abc import Sequence

import numpy as np
from elasticsearch import Elasticsearch

from esdedup.elastic.forest.documents import StoredNode
from esdedup.elastic.forest.expiry import expire
from esdedup.elastic.forest.index import DEFAULT_AGING, ForestIndex
from esdedup.elastic.forest.matching import MatchedNodes
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import NO_TIME, Aging, Arrivals, LeafCounts, Neighbours, Plan, State

# Nodes kept in memory because no refresh has made them visible yet.
_MAX_RECENT = 20_000


class ElasticStore:
    """Keeps nodes in an index; what a refresh has not shown yet it keeps in memory too."""

    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str,
        profile: Profile,
        aging: Aging | None = None,
        wait_s: float = 0.0,
        lease_ttl_s: float = 30.0,
    ) -> None:
        """Open the forest, and make it if there is none; take its lease.

        Args:
            client: Stays the caller's.
            forest: Name of the index.
            profile: The forest's; stored with it.
            aging: How long nodes live from now on; None: as long as they did, 30 days in a new forest.
            wait_s: How long to wait for another owner to end.
            lease_ttl_s: How long the lease holds without a renewal.

        Raises:
            ForestBusy: Another process owns it.
            ForestMismatch: It was made with another profile, or in an unknown format.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        self._commit_failed = False
        self._index = ForestIndex.open(client, forest, profile=profile)
        self.relation = self._index.relation
        self.owned = ForestWriter(self._index, wait_s=wait_s, lease_ttl_s=lease_ttl_s)
        with self.owned.giving_back():
            self.aging = self._settle(aging)
            self._state = self._index.state()
        self._recent = NodeCache(self.relation)

    def close(self) -> None:
        """Make the nodes visible to others, and give the lease back."""
        self.owned.close()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the forest; nothing can be done with it here any more."""
        return self.owned.is_lost

    def state(self) -> State:
        """Return the state of the last plan that was committed."""
        if self._commit_failed:
            # Any part of the plan may have been written: what the index holds is the truth now.
            self.owned.renew()
            self._refresh()
            self._state = self._index.state()
            self._commit_failed = False
        return self._state

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find the live nodes near the arrivals, with their roots: a search or a few, however many."""
        self.owned.renew()
        live_since_ms = state.live_since_ms(self.aging)
        visible = NodeCache(self.relation)
        signatures = arrivals.signatures[arrivals.with_node]
        visible.put(self._index.search.candidates(signatures, live_since_ms=live_since_ms))
        # What is kept here is newer than what a search shows.
        met = MatchedNodes.of(arrivals, (visible, self._recent), live_since_ms=live_since_ms)
        missing = met.missing_roots
        roots = {root: node for root in missing if (node := self._recent.get(root))}
        roots |= {node.id: node for node in self._index.search.by_id(missing - roots.keys())}
        nodes = met.with_roots(roots, self.relation)
        return met.near(nodes, relation=self.relation, aging=self.aging)

    def count_leaves(
        self, near: Neighbours, roots: Sequence[int], state: State, *, end_ms: int
    ) -> LeafCounts:
        """Count the live leaves of those rows; those that live through the batch are counted as one."""
        # After a refresh the index knows everything, and no leaf is counted twice or not at all.
        self._refresh()
        span_ms = 0 if state.time_ms == NO_TIME else end_ms - state.time_ms
        at_end = State(time_ms=end_ms, origin_ms=state.origin_ms)
        counts = self._index.search.count_leaves(
            (near.nodes.ids[root] for root in roots),
            live_since_ms=state.live_since_ms(self.aging),
            end_since_ms=at_end.live_since_ms(self.aging),
            steps=span_ms // self.aging.granularity_ms + 2,
        )
        return {root: counts[near.nodes.ids[root]] for root in roots}

    def commit(self, plan: Plan) -> None:
        """Write state and roots, then leaves."""
        nodes = self._nodes(plan)
        self._commit_failed = True
        self.owned.write(nodes, state=plan.state)
        self._commit_failed = False
        self._state = plan.state
        self._recent.put(nodes)
        if len(self._recent) > _MAX_RECENT:
            self._refresh()

    def _settle(self, wanted: Aging | None) -> Aging:
        """Return how long nodes live, and note it in the forest."""
        before = self._index.aging()
        aging = wanted or before or DEFAULT_AGING
        dead_before_ms = self._index.dead_before_ms()
        if before is not None and before.retention_ms < aging.retention_ms:
            # What has expired must not come to life again.
            dead_before_ms = self._index.live_since_ms(before)
            self.owned.write_aging(before, dead_before_ms=dead_before_ms)
            expire(self.owned, before)
        if aging != before:
            self.owned.write_aging(aging, dead_before_ms=dead_before_ms)
        return aging

    def _nodes(self, plan: Plan) -> list[StoredNode]:
        """Return the nodes that the plan makes or refreshes, one an id, in the order of their making."""
        ids = plan.nodes.ids
        rows = np.concatenate((plan.refreshed, plan.made_rows))
        # An id that expires within the batch and starts anew has several rows: the last one lives.
        newest = {
            ids[row]: StoredNode(ids[row], ids[root], signature.tobytes(), seq, made, seen)
            for row, root, signature, seq, made, seen in zip(
                rows.tolist(),
                plan.nodes.roots[rows].tolist(),
                plan.nodes.signatures[rows],
                plan.nodes.seqs[rows].tolist(),
                plan.nodes.made_ms[rows].tolist(),
                plan.nodes.seen_ms[rows].tolist(),
                strict=True,
            )
        }
        return list(newest.values())

    def _refresh(self) -> None:
        """Make all that was written visible, and forget what was kept until then."""
        self._index.refresh()
        self._recent = NodeCache(self.relation)

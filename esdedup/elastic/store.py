"""The forest's store in Elasticsearch: its index, its lease, and what no refresh has shown yet."""

from collections.abc import Sequence

import numpy as np
from elasticsearch import Elasticsearch

from esdedup.elastic.expiry import expire
from esdedup.elastic.forest_index import DEFAULT_AGING, ForestIndex
from esdedup.elastic.node_cache import NodeCache
from esdedup.elastic.nodes import StoredNode, root_again, signatures_of
from esdedup.elastic.owned import OwnedForest
from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import NO_TIME, Aging, Arrivals, Near, Nodes, Plan, State
from esdedup.profile import Profile

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
        self.owned = OwnedForest(self._index, wait_s=wait_s, lease_ttl_s=lease_ttl_s)
        with self.owned.giving_back():
            self.aging = self._settle(aging)
            self._state = self._index.state()
        self._recent = NodeCache(self.relation)
        # Those of the last question, as they stand in the index.
        self._found: dict[str, StoredNode] = {}

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

    def find_near(self, arrivals: Arrivals, state: State) -> Near:
        """Find the live nodes near the arrivals, with their roots: a search or a few, however many."""
        self.owned.renew()
        positions = arrivals.with_node
        signatures = arrivals.signatures[positions]
        live_since_ms = state.live_since_ms(self.aging)
        visible = NodeCache(self.relation)
        visible.put(self._index.search.candidates(signatures, live_since_ms=live_since_ms))
        ids = [arrivals.ids[at] or "" for at in positions.tolist()]
        pairs: set[tuple[int, str]] = set()
        found: dict[str, StoredNode] = {}
        carried: dict[tuple[int, str], int] = {}
        # What is kept here is newer than what a search shows.
        for known in (visible, self._recent):
            met, carriers = known.meet(signatures)
            # A node may be listed under nothing, since crowds carry all that represents it.
            met += [(at, node) for at, each in enumerate(ids) if (node := known.get(each))]
            found |= {node.id: node for _, node in met}
            pairs.update((int(positions[at]), node.id) for at, node in met)
            carried |= {(value, node.id): node.made_ms for value, node in carriers}
        # The root of one that has expired may have started anew, in another tree.
        found = {node_id: node for node_id, node in found.items() if node.seen_ms >= live_since_ms}
        self._found = self._with_roots(found)
        rows = {node_id: row for row, node_id in enumerate(self._found)}
        near = np.array(
            sorted((at, rows[node_id]) for at, node_id in pairs if node_id in found), np.int64
        ).reshape(-1, 2)
        return Near(
            arrivals=near[:, 0],
            rows=near[:, 1],
            nodes=Nodes(
                ids=list(rows),
                signatures=signatures_of(self._found.values(), self.relation),
                roots=np.array([rows[node.root] for node in self._found.values()], np.int64),
                seqs=np.array([node.seq for node in self._found.values()], np.int64),
                seen_ms=np.array([node.seen_ms for node in self._found.values()], np.int64),
            ),
            carried=np.array([value for value, _ in carried], np.uint64),
            carriers_seen_ms=self.aging.round_up(np.array(list(carried.values()), np.int64)),
        )

    def count_leaves(self, near: Near, roots: Sequence[int], state: State, *, end_ms: int) -> LeafCounts:
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
        made_ms = [self._found[ids[row]].made_ms for row in plan.refreshed.tolist()]
        made_ms += [plan.assignments[at].time_ms for at in plan.made.tolist()]
        rows = np.concatenate((plan.refreshed, plan.made_rows))
        # An id that expires within the batch and starts anew has several rows: the last one lives.
        newest = {
            ids[row]: StoredNode(ids[row], ids[root], signature.tobytes(), seq, made, seen)
            for row, root, signature, seq, made, seen in zip(
                rows.tolist(),
                plan.nodes.roots[rows].tolist(),
                plan.nodes.signatures[rows],
                plan.nodes.seqs[rows].tolist(),
                made_ms,
                plan.nodes.seen_ms[rows].tolist(),
                strict=True,
            )
        }
        return list(newest.values())

    def _with_roots(self, found: dict[str, StoredNode]) -> dict[str, StoredNode]:
        missing = {node.root for node in found.values()} - found.keys()
        roots = {root: node for root in missing if (node := self._recent.get(root))}
        roots |= {node.id: node for node in self._index.search.by_id(missing - roots.keys())}
        for node in found.values():
            root = found.get(node.root) or roots.get(node.root)
            if root is None or not root.is_root:
                # Damaged: the root is gone, or another's leaf. It is made again when its tree is touched.
                roots[node.root] = root_again(node.root, root or node, self.relation)
        return found | roots

    def _refresh(self) -> None:
        """Make all that was written visible, and forget what was kept until then."""
        self._index.refresh()
        self._recent = NodeCache(self.relation)

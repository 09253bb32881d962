"""The forest's store in Elasticsearch: its index, its lease, and what no refresh has shown yet."""

import time

from elasticsearch import Elasticsearch

from esdedup.elastic.forest_index import ForestIndex
from esdedup.elastic.lease import Lease
from esdedup.errors import ForestLost
from esdedup.forest.laws import LeafCounts
from esdedup.forest.memory import Nodes
from esdedup.forest.model import Aging, Arrivals, Near, Node, Plan, State
from esdedup.profile import Profile

# Nodes kept in memory because no refresh has made them visible yet.
_MAX_RECENT = 20_000
# A write of the owner before that was under way when it lost the lease has ended by then.
_MARGIN_S = 2.0


class ElasticStore:
    """Keeps nodes in an index; what a refresh has not shown yet it keeps in memory too."""

    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str,
        profile: Profile,
        wait_s: float = 0.0,
        lease_ttl_s: float = 30.0,
    ) -> None:
        """Open the forest, and make it if there is none; take its lease.

        Args:
            client: Stays the caller's.
            forest: Name of the index.
            profile: The forest's; stored with it.
            wait_s: How long to wait for another owner to end.
            lease_ttl_s: How long the lease holds without a renewal.

        Raises:
            ForestBusy: Another process owns it.
            ForestMismatch: It was made with another profile, or in an unknown format.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        patient = client.options(
            request_timeout=60, max_retries=5, retry_on_timeout=True, retry_on_status=(429, 502, 503, 504)
        )
        self._max_distance_bits = profile.max_distance_bits
        self._commit_failed = False
        self._index = ForestIndex(patient, name=forest, profile=profile)
        self._index.open()
        self._lease = Lease(patient, forest=forest, ttl_s=lease_ttl_s)
        if not self._lease.acquire(wait_s=wait_s):
            time.sleep(_MARGIN_S)
        self._refresh()
        self._state = self._index.state()

    def close(self) -> None:
        """Make the nodes visible to others, and give the lease back."""
        self._refresh()
        self._lease.release()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the forest; nothing can be done with it here any more."""
        return self._lease.is_lost

    def state(self) -> State:
        """Return the state of the last plan that was committed."""
        if self._commit_failed:
            # Any part of the plan may have been written: what the index holds is the truth now.
            self._lease.renew()
            self._refresh()
            self._state = self._index.state()
            self._commit_failed = False
        return self._state

    def find_near(self, arrivals: Arrivals, *, aging: Aging, state: State) -> Near:
        """Find the live nodes near the arrivals, with their roots: a search or a few, however many."""
        self._lease.renew()
        positions = arrivals.with_node
        fingerprints = arrivals.fingerprints[positions]
        visible = self._no_nodes()
        visible.put(list(self._index.candidates(fingerprints, aging=aging, state=state)))
        nodes: dict[str, Node] = {}
        pairs: list[tuple[int, str]] = []
        # What is kept here is newer than what a search shows.
        for known in (visible, self._recent):
            found = known.near(fingerprints)
            pairs += found
            nodes |= {node_id: node for _, node_id in found if (node := known.get(node_id))}
        return Near(
            arrivals=positions[[query for query, _ in pairs]],
            node_ids=[node_id for _, node_id in pairs],
            nodes=self._with_roots(nodes),
        )

    def count_leaves(self, roots: set[str], *, aging: Aging, state: State, end_ms: int) -> LeafCounts:
        """Count the live leaves of `roots`; those that live through the batch are counted as one."""
        # After a refresh the index knows everything, and no leaf is counted twice or not at all.
        self._refresh()
        return self._index.count_leaves(roots, aging=aging, state=state, end_ms=end_ms)

    def commit(self, plan: Plan) -> None:
        """Write state and roots, then leaves."""
        self._lease.renew()
        self._commit_failed = True
        alias = self._lease.alias
        try:
            self._index.write_state(plan.state, plan.roots, alias=alias)
            self._index.write_nodes(plan.leaves, alias=alias)
        except ForestLost as error:
            raise self._lease.lost() from error
        self._commit_failed = False
        self._state = plan.state
        self._recent.put([*plan.roots, *plan.leaves])
        if len(self._recent) > _MAX_RECENT:
            self._refresh()

    def _with_roots(self, nodes: dict[str, Node]) -> dict[str, Node]:
        missing = {node.root for node in nodes.values()} - nodes.keys()
        roots = {root: node for root in missing if (node := self._recent.get(root))}
        roots |= {node.id: node for node in self._index.nodes(missing - roots.keys())}
        # A root that is gone from a damaged forest is made again when something touches its tree.
        for node in nodes.values():
            if node.root not in nodes:
                roots.setdefault(node.root, Node(node.root, node.root, node.seq, node.seen_ms))
        return nodes | roots

    def _no_nodes(self) -> Nodes:
        return Nodes(max_distance_bits=self._max_distance_bits)

    def _refresh(self) -> None:
        """Make all that was written visible, and forget what was kept until then."""
        self._index.refresh()
        self._recent = self._no_nodes()

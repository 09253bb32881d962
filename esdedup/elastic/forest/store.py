"""A forest's store in Elasticsearch: its index, and in memory the nodes not yet visible to searches."""

import numpy as np
from elasticsearch import Elasticsearch

from esdedup.elastic.closing import Closing
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.documents import StoredNode
from esdedup.elastic.forest.expiry import expire
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.matching import find_neighbours
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.forest.status import ForestStatus
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import Aging, Arrivals, Neighbours, Plan, State


class ElasticStore(Closing):
    """Keeps a forest's nodes in an index, as its owner.

    A committed plan survives a crash of this process, and of a server if the index has a replica.
    """

    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str,
        profile: Profile,
        aging: Aging | None = None,
        wait_s: float = 0.0,
        lease_ttl_s: float = 30.0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Open the forest, or create it if there is none, and take its lease.

        Args:
            client: Owned by the caller.
            forest: Name of the index.
            profile: The forest's; stored with it.
            aging: How long nodes live from now on; None leaves it as it was, or 30 days in a new forest.
            wait_s: How long to wait for another owner to end.
            lease_ttl_s: How long the lease holds without a renewal.
            limits: What a request may carry.

        Raises:
            ClockMismatch: The clocks of this machine and of the server disagree.
            ForestAhead: The forest's time is in the future.
            ForestBusy: Another process owns it.
            ForestIncomplete: A rebuild of it has not ended.
            ForestMismatch: It was made with another profile, or in an unknown format.
            ServerError: Elasticsearch does not answer, or refuses.
        """
        self._index = ForestIndex.open(client, forest, profile=profile, limits=limits)
        self.relation = self._index.relation
        self._clock = Clock(self._index)
        self.writer = ForestWriter(self._index, wait_s=wait_s, lease_ttl_s=lease_ttl_s)
        with self.writer.released_on_error():
            status = self._index.status()
            self._clock.check(status.state)
            self.aging = self._settle_aging(status, aging)
        self._state = status.state
        self._commit_failed = False
        self._recent = NodeCache(self.relation)

    def close(self) -> None:
        """Make the nodes visible to others, and release the lease."""
        self.writer.close()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the forest, or deleted it. This object is of no use then."""
        return self.writer.is_lost

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970.

        Raises:
            ClockMismatch: The clocks of this machine and of the server disagree.
            ForestAhead: The forest's time is in the future.
        """
        return self._clock.check(self._state)

    def state(self) -> State:
        """Return the state of the last committed plan."""
        if self._commit_failed:
            # Any part of that plan may have been written: the index decides which state it is, and memory is
            # begun anew.
            self.writer.renew()
            self._refresh()
            self._state = self._index.status().state
            self._commit_failed = False
        return self._state

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find the live nodes near the arrivals, with their roots."""
        self.writer.renew()
        with self.writer.noticing_deletion():
            return self._index.run(
                find_neighbours(
                    self._index.search,
                    arrivals,
                    recent=self._recent,
                    live_since_ms=state.live_since_ms(self.aging),
                    aging=self.aging,
                )
            )

    def commit(self, plan: Plan) -> None:
        """Write the state and the refreshed nodes, then the new ones in the order of their arrivals."""
        nodes = _written_nodes(plan)
        self._commit_failed = True
        self.writer.write(nodes, state=plan.state)
        self._state = plan.state
        self._recent.put(nodes)
        if len(self._recent) > self._index.limits.recent_nodes:
            self._refresh()
        # Last: an exception from a signal handler may leave what is in memory half changed.
        self._commit_failed = False

    def _settle_aging(self, status: ForestStatus, requested: Aging | None) -> Aging:
        """Return how long nodes live from now on, and store it in the forest."""
        before, aging = status.stored_aging, requested or status.aging
        dead_before_ms = status.dead_before_ms
        if before is not None and before.retention_ms < aging.retention_ms:
            # Longer retention must not revive expired nodes.
            dead_before_ms = status.live_since_ms(before)
            self.writer.write_aging(before, dead_before_ms=dead_before_ms)
            expire(self.writer, before)
        if aging != before:
            self.writer.write_aging(aging, dead_before_ms=dead_before_ms)
        return aging

    def _refresh(self) -> None:
        """Make all writes visible to searches, and drop them from memory."""
        with self.writer.noticing_deletion():
            self._index.refresh()
        self._recent = NodeCache(self.relation)


def _written_nodes(plan: Plan) -> list[StoredNode]:
    """Return the nodes that the plan refreshes, then those that it makes, in order of arrival; one per id."""
    nodes, rows = plan.nodes, np.concatenate((plan.refreshed, plan.made_rows))
    columns = (nodes.seqs[rows], nodes.made_ms[rows], nodes.seen_ms[rows])
    written: dict[str, StoredNode] = {}
    for row, root, signature, *numbers in zip(
        rows.tolist(),
        nodes.roots[rows].tolist(),
        nodes.signatures[rows],
        *(column.tolist() for column in columns),
        strict=True,
    ):
        # An id that expires within the batch and starts anew has several rows: the last one lives.
        written.pop(nodes.ids[row], None)
        written[nodes.ids[row]] = StoredNode(nodes.ids[row], nodes.ids[root], signature.tobytes(), *numbers)
    return list(written.values())

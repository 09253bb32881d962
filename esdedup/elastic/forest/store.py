"""A forest's store in Elasticsearch: its index, and in memory the nodes not yet visible to searches."""

import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.elastic.closing import Closing
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import expire
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import FIELD, read_learned
from esdedup.elastic.forest.learned_log import LearnedLog
from esdedup.elastic.forest.matching import find_neighbours
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.forest.search import EVERY_PAGE
from esdedup.elastic.forest.status import ForestStatus
from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, page_name
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import NO_NODE, Aging, Arrivals, Neighbours, Plan, State


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a forest holds, as its owner knows it."""

    # Live or not, as far as a refresh has shown them.
    nodes: int
    # Besides those that made a node.
    pages: int
    # Of this process: what was learned.
    memory_bytes: int
    # How many passages are boilerplate.
    passages: int


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
            self._learned = self._read_learned()
        self._state = status.state
        self._commit_failed = False
        self._recent = NodeCache(self.relation)
        # How many seconds were spent on writing.
        self.write_s = 0.0

    def close(self) -> None:
        """Make the nodes visible to others, and release the lease."""
        self.writer.close()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the forest, or deleted it. This object is of no use then."""
        return self.writer.is_lost

    def contents(self) -> Contents:
        """Count what the forest holds."""
        search, run = self._index.search, self._index.run
        return Contents(
            nodes=run(search.count_nodes()),
            pages=run(search.count(EVERY_PAGE)),
            memory_bytes=self.boilerplate.size_bytes,
            passages=len(self.boilerplate.learned()),
        )

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970.

        Raises:
            ClockMismatch: The clocks of this machine and of the server disagree.
            ForestAhead: The forest's time is in the future.
        """
        return self._clock.check(self._state)

    @property
    def boilerplate(self) -> Boilerplate:
        """What the pages of committed plans have taught, after `state`."""
        return self._learned.boilerplate

    def state(self) -> State:
        """Return the state of the last committed plan."""
        if self._commit_failed or self.boilerplate.is_torn:
            # Any part of that plan may have been written: the index decides which state it is, and memory is
            # begun anew.
            self.writer.renew()
            self._refresh()
            self._state = self._index.status().state
            self._learned = self._read_learned()
            self._commit_failed = False
        return self._state

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find the live nodes near the arrivals, and the remembered pages, with their roots."""
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
        """Write the state, the refreshed nodes, new nodes and pages in order, then what was learned."""
        stored = _written(plan)
        self._commit_failed = True
        self._write(stored, plan.state, plan.learned)
        self._state = plan.state
        self._recent.put(stored)
        if len(self._recent) > self._index.limits.recent_nodes:
            self._refresh()
        # Last: an exception from a signal handler may leave what is in memory half changed.
        self._commit_failed = False

    def learn(self, changes: Changes) -> None:
        """Write what was learned."""
        self._commit_failed = True
        self._write([], None, changes)
        self._commit_failed = False

    def _write(self, stored: Sequence[Stored], state: State | None, changes: Changes | None) -> None:
        learned = [] if changes is None else self._learned.add(changes)
        began_s = time.perf_counter()
        try:
            self.writer.write(stored, state=state, learned=learned)
        finally:
            self.write_s += time.perf_counter() - began_s
        if not learned:
            return
        self.boilerplate.keep()
        if outdated := self._learned.outdated():
            # A search must find them. The first ones first: a crash must leave no gap.
            self._refresh()
            for hits in self._index.hit_pages(outdated, sort=[FIELD], versions=True):
                self.writer.delete(hits)

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

    def _read_learned(self) -> LearnedLog:
        return LearnedLog(self._index.name, self._index.run(read_learned(self._index.name)))

    def _refresh(self) -> None:
        """Make all writes visible to searches, and drop them from memory."""
        with self.writer.noticing_deletion():
            self._index.refresh()
        self._recent = NodeCache(self.relation)


def _written(plan: Plan) -> list[Stored]:
    """Return the nodes that the plan refreshes, then new nodes and pages, in order of arrival; one per id."""
    written: dict[str, Stored] = {node.document_id: node for node in _nodes(plan, plan.refreshed)}
    made: list[tuple[int, Stored]] = [
        *zip(plan.made.tolist(), _nodes(plan, plan.made_rows), strict=True),
        *_lone_pages(plan),
    ]
    for _, each in sorted(made, key=lambda each: each[0]):
        # An id that expires within the batch and starts anew has several rows: the last one lives.
        written.pop(each.document_id, None)
        written[each.document_id] = each
    return list(written.values())


def _nodes(plan: Plan, rows: npt.NDArray[np.int64]) -> Iterator[StoredNode]:
    nodes = plan.nodes
    return map(
        StoredNode,
        [nodes.ids[row] for row in rows.tolist()],
        [nodes.ids[root] for root in nodes.roots[rows].tolist()],
        [signature.tobytes() for signature in nodes.signatures[rows]],
        nodes.seqs[rows].tolist(),
        nodes.made_ms[rows].tolist(),
        nodes.seen_ms[rows].tolist(),
        map(page_name, nodes.pages[rows].tolist()),
        nodes.pages_seen_ms[rows].tolist(),
    )


def _lone_pages(plan: Plan) -> Iterator[tuple[int, StoredPage]]:
    """Yield the pages, with their arrivals, that their node's document does not remember.

    They got no node; or did not make it; or they had expired, and a crash must not revive them before their
    arrival.
    """
    nodes, rows = plan.nodes, plan.pages.rows
    is_of_node = (nodes.pages[rows] == plan.pages.ids) & (nodes.pages_seen_ms[rows] == plan.pages.seen_ms)
    is_lone = (rows == NO_NODE) | ~is_of_node
    ids = [None if row == NO_NODE else nodes.ids[row] for row in rows[is_lone].tolist()]
    names = map(page_name, plan.pages.ids[is_lone].tolist())
    pages = map(StoredPage, names, ids, plan.pages.seen_ms[is_lone].tolist())
    return zip(plan.paged[is_lone].tolist(), pages, strict=True)

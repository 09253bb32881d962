"""A forest's store in Elasticsearch, for its owner."""

import contextlib
import dataclasses
import logging
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future

from elasticsearch import Elasticsearch

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.elastic.closing import Closing
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import Expired, expire, expiring, refuse_shorter
from esdedup.elastic.forest.fence import Fence
from esdedup.elastic.forest.following import Follower
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import FIELD, LearnedLog, read_learned
from esdedup.elastic.forest.lease import DEFAULT_TERMS, LeaseTerms
from esdedup.elastic.forest.loading import BackgroundLoader, load_log
from esdedup.elastic.forest.log import read_logs
from esdedup.elastic.forest.lookup import gather, load_missing
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.forest.search import EVERY_HASH
from esdedup.elastic.forest.status import ForestStatus, aging_document
from esdedup.elastic.forest.stored import packed_by_id
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.errors import ForestFull, ServerError
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Arrivals, Nodes, Plan, State


@dataclasses.dataclass(frozen=True)
class ForestSize:
    """The contents of a forest, as its owner knows them."""

    # Number of nodes, live or expired; if nodes are not in memory, a search counts them.
    nodes: int = 0
    # Number of content hashes with their own documents, in addition to those stored with nodes.
    hashes: int = 0
    # Memory of this process for nodes, content hashes and learned boilerplate.
    memory_bytes: int = 0
    # The part of `memory_bytes` for learned boilerplate. Equals `memory_bytes` unless nodes are in memory.
    learned_bytes: int = 0
    # Number of passages that are boilerplate.
    passages: int = 0
    # Number of clusters that this process has recognised as placeholders.
    placeholders: int = 0
    # Used share of `memory_bytes`, or of the nodes that memory can hold; 0 if nodes are searched for.
    filled: float = 0.0


NEARLY_FULL = 0.8
"""The share of the memory or of the nodes beyond which a warning is logged, and `esdedup stats` warns."""

log = logging.getLogger("esdedup")

# How long to wait at the start for nodes to load, so that a small forest is in memory before the first batch.
_SHORT_LOADING_S = 0.5


class ElasticStore(Closing):
    """Stores the nodes of a forest in its index, and holds its lease.

    A committed plan survives a crash of this process and, if the index has a replica, the loss of a server.
    """

    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str,
        profile: Profile,
        aging: Aging | None = None,
        change_retention: bool = True,
        terms: LeaseTerms = DEFAULT_TERMS,
        lookup: Lookup | None = None,
        forest_shards: int | None = None,
        memory_bytes: int = 2**30,
        followed: Follower | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Open the forest, or create it if there is none, and take its lease.

        A forest with the lookup `memory` is loaded before this returns.

        Args:
            aging: How long nodes live. None keeps the forest's retention, or sets 30 days in a new forest.
            change_retention: Whether nodes may live for less time than before.
            terms: How the lease is acquired and held.
            lookup: How nodes are found, fixed when a forest is created. None means the forest's own lookup,
                or `memory` for a new forest.
            forest_shards: The number of primary shards, fixed when a forest is created; more than one only
                with the lookup `search`. None means the forest's own number, or 1 for a new forest.
            memory_bytes: The maximum memory for nodes. Beyond it, a forest with the lookup `memory` refuses
                articles. With `search`, all live nodes are in memory while they fit, so that batches need no
                search; 0 keeps no nodes in memory.
            followed: A follower that has read most of the forest, so that only the rest is loaded.
        """
        self._index = ForestIndex.open(
            client, forest, profile=profile, lookup=lookup, shards=forest_shards, limits=limits
        )
        self._is_log = self._index.meta.is_log
        self.relation = self._index.relation
        self._clock = Clock(self._index)
        # Whether an exception may have left a change in memory incomplete.
        self._is_incomplete = False
        self._memory_bytes = memory_bytes
        self._warned_filled = NEARLY_FULL
        self._recent: dict[str, bytes] = {}
        # How many documents were written since the last refresh.
        self._unrefreshed = 0
        # All live nodes; None while nodes are searched for and only `_recent` is in memory. Plans in
        # `Nodes.committed` may not be durable yet.
        self._nodes: Nodes | None = None
        self._loading: BackgroundLoader | None = None
        self.writer = ForestWriter(self._index, terms=terms)
        with self.writer.released_on_error():
            Fence(self._index.client, forest=self._index.name).let_edit("add")
            status = self._index.status()
            self._clock.check(status.state)
            self._state = status.state
            self._dead_before_ms = status.dead_before_ms
            if aging is not None and not change_retention:
                refuse_shorter(self._index, aging)
            self.aging = self._settle_aging(status, aging)
            self._learned = followed.learned(self._index) if followed else self._read_learned()
            self._begin_loading(followed=followed)

    def close(self) -> None:
        """Make all writes visible to searches, and release the lease."""
        self._end_loading()
        self.writer.close()

    def contents(self) -> ForestSize:
        """Measure the contents of the forest."""
        # Use the nodes if they have been loaded by now.
        self.begin()
        passages, learned_bytes = len(self.boilerplate.learned()), self.boilerplate.size_bytes
        if (nodes := self._nodes) is not None:
            memory_bytes = nodes.size_bytes + learned_bytes
            counts = len(nodes), nodes.extra_hash_count, memory_bytes, learned_bytes, passages
            return ForestSize(*counts, filled=round(self._filled, 4))
        search, run = self._index.search, self._index.run
        node_count, hash_count = run(search.count_nodes()), run(search.count(EVERY_HASH))
        return ForestSize(node_count, hash_count, learned_bytes, learned_bytes, passages)

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970. Raises the same errors as `Clock.check`."""
        return self._clock.check(self._state)

    @property
    def state(self) -> State:
        """The state of the last committed plan."""
        return self._state

    @property
    def boilerplate(self) -> Boilerplate:
        """The boilerplate learned from committed batches, after `begin`."""
        return self._learned.boilerplate

    def begin(self) -> None:
        """Begin a batch: undo uncommitted changes, and reload from the index after a failure."""
        is_broken = self.boilerplate.is_broken or (self._nodes is not None and self._nodes.is_broken)
        if is_broken or self._is_incomplete or self.writer.failure:
            self._recover()
        elif self._loading is not None:
            self._take_loaded(wait_s=0.0)
        if self._nodes is not None:
            self._nodes.undo()
        while self.boilerplate.has_begun:
            self.boilerplate.undo()
        self.boilerplate.begin()

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:
        """Return all nodes if they are in memory, otherwise the nodes that the arrivals need."""
        self.writer.lease.renew()
        if self._nodes is not None:
            self.refuse_if_full()
            return self._nodes
        recent, state, aging = self._recent, self._state, self.aging
        found = gather(self._index.search, arrivals, recent=recent, state=state, aging=aging, now_ms=now_ms)
        with self.writer.noticing_deletion():
            return self._index.run(found)

    def commit(self, plan: Plan) -> Future[None]:
        """Begin to write a plan: the state, then nodes and content hashes in order, then new boilerplate."""
        with self._changing():
            if self._nodes is not None:
                self._nodes.commit(plan)
            written = self._begin_writing(plan.written, plan.state, log=plan.log)
            self._state = plan.state
            if self._nodes is None:
                self._recent |= packed_by_id(plan.written, self.relation)
                if self._loading is not None:
                    self._loading.put(plan.written, live_since_ms=plan.state.live_since_ms(self.aging))
            else:
                # The writer has finished the earlier plans, so they are durable.
                while len(self._nodes.committed) > 1:
                    self._nodes.keep()
                if not self._is_log and self._filled > 1:
                    # Refresh first, so that a search finds the dropped nodes.
                    self._refresh()
                    self._nodes = None
                    self._note_small_memory()
            if not self._is_log:
                self._unrefreshed += len(plan.written)
                if self._unrefreshed > self._index.limits.recent_nodes:
                    self._refresh()
        return written

    def learn(self) -> None:
        """Write newly learned boilerplate."""
        with self._changing():
            self._begin_writing([], None).result()

    def expiring(self) -> Iterator[Expired]:
        """Delete expired nodes, as `expiry.expiring` does. Batches may be committed at the same time."""
        return expiring(self.writer, self.aging, living=self._living if self._is_log else None)

    def _living(self, log: bytes, live_since_ms: int) -> list[bytes]:
        # Wait for pending writes, so that the nodes in memory are durable.
        self.begin()
        self.writer.flush()
        assert self._nodes is not None
        return self._nodes.living(log, live_since_ms=live_since_ms)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Make the next batch reload from the index if the body fails, for example on a signal."""
        self._is_incomplete = True
        yield
        self._is_incomplete = False

    def _begin_writing(
        self, packed: Sequence[bytes], state: State | None, *, log: bytes | None = None
    ) -> Future[None]:
        learned = self._learned.add(self.boilerplate.changes())
        written = self.writer.begin(packed, log=log, state=state, learned=learned)
        if not learned:
            return written
        self.boilerplate.keep()
        if outdated := self._learned.forget_outdated():
            # Refresh so that searches find the documents; delete the oldest first, so a crash leaves no gap.
            self._refresh()
            for hits in self._index.hit_pages(outdated, sort=[FIELD], versions=True):
                self.writer.delete(hits)
        return written

    def _settle_aging(self, status: ForestStatus, requested: Aging | None) -> Aging:
        before, aging = status.stored_aging, requested or status.aging
        dead_before_ms = status.dead_before_ms
        if before is not None and before.retention_ms < aging.retention_ms:
            # Longer retention must not revive expired nodes.
            dead_before_ms = self._dead_before_ms = status.live_since_ms(before)
            self.writer.write_own(aging_document(before, dead_before_ms=dead_before_ms))
            if not self._is_log:
                expire(self.writer, before)
        if aging != before:
            self.writer.write_own(aging_document(aging, dead_before_ms=dead_before_ms))
        return aging

    def _recover(self) -> None:
        """Reload from the index after a failure, since any part of a plan may have been written."""
        self.writer.forget_failure()
        self.writer.lease.renew()
        self._refresh()
        self._state = self._index.status().state
        self._learned = self._read_learned()
        nodes = self._nodes
        if nodes is None or nodes.is_broken or (self._is_log and self._has_some(nodes.committed)):
            # Free the memory of these nodes before they are loaded again.
            nodes = self._nodes = None
            self._begin_loading()
        else:
            # Prevent a second undo after an exception.
            self._nodes = None
            undone = nodes.undo_all()
            if not self._is_log:
                ids = {each for plan in undone for each in packed_by_id(plan.written, self.relation)}
                search, since_ms = self._index.search, self._live_since_ms()
                # Leave out expired nodes, as `gather` does.
                nodes.load(self._index.run(search.documents(ids)), live_since_ms=since_ms)
                self._index.run(load_missing(nodes, search, live_since_ms=since_ms))
            self._nodes = nodes
        self._is_incomplete = False

    def _has_some(self, plans: Collection[Plan]) -> bool:
        """Return whether the log contains any of these plans."""
        logs = list(self._index.run(read_logs(self._index.name, first=self.writer.log_since(len(plans)))))
        return any(plan.log and plan.log in log for plan in plans for log in logs)

    def _begin_loading(self, *, wait_s: float = _SHORT_LOADING_S, followed: Follower | None = None) -> None:
        """Load the nodes of a log. Without a log, begin to load all nodes, unless `memory_bytes` is 0."""
        self._end_loading()
        index, aging, since_ms, most = self._index, self.aging, self._live_since_ms(), self._memory_bytes
        if self._is_log:
            nodes, renew = None, self.writer.lease.renew
            if followed is not None:
                nodes = followed.nodes(index, aging=aging, live_since_ms=since_ms, on_read=renew)
            if nodes is None:
                nodes = load_log(index, aging=aging, live_since_ms=since_ms, memory_bytes=most, on_read=renew)
            self._nodes = nodes
        elif most:
            self._loading = BackgroundLoader(index, aging=aging, live_since_ms=since_ms, memory_bytes=most)
            self._take_loaded(wait_s=wait_s)

    def _take_loaded(self, *, wait_s: float) -> None:
        """If all nodes have been loaded, use them instead of searching."""
        loading = self._loading
        if loading is None or not loading.is_done(timeout_s=wait_s):
            return
        with self._changing():
            try:
                self._nodes = loading.nodes()
            except ServerError as error:
                log.warning("nodes are searched for until they can be loaded into memory: %s", error)
                # Refresh first, so that the nodes written meanwhile are loaded.
                self._refresh()
                self._begin_loading(wait_s=0.0)
            else:
                self._loading = None
                if self._nodes is None:
                    self._note_small_memory()

    def _end_loading(self) -> None:
        if self._loading is not None:
            self._loading.end()
            self._loading = None

    def _live_since_ms(self) -> int:
        return max(self._dead_before_ms, self._state.live_since_ms(self.aging))

    def refuse_if_full(self) -> None:
        """Raise `ForestFull` if a log has more nodes than memory can hold; log a warning before that."""
        nodes, filled = self._nodes, self._filled
        if nodes is None or not self._is_log or filled <= self._warned_filled:
            return
        if filled > 1:
            is_small = nodes.size_bytes > self._memory_bytes
            raise ForestFull.of(self._index.name, memory_bytes=self._memory_bytes if is_small else None)
        self._warned_filled = 1.0
        sizes = len(nodes), nodes.size_bytes, self.relation.most_nodes, self._memory_bytes
        log.warning(
            "the forest %r has %s nodes in %s bytes of memory, and may have %s nodes in %s bytes; then "
            "articles are refused: raise memory_bytes, if that is the limit, or rebuild the forest with the "
            "lookup `search`",
            self._index.name,
            *(f"{each:,}" for each in sizes),
        )

    @property
    def _filled(self) -> float:
        if (nodes := self._nodes) is None:
            return 0.0
        return max(nodes.size_bytes / max(1, self._memory_bytes), len(nodes) / self.relation.most_nodes)

    def _note_small_memory(self) -> None:
        log.info(
            "the nodes of the forest %r take more than %s bytes of memory, so they are searched for in "
            "Elasticsearch",
            self._index.name,
            f"{self._memory_bytes:,}",
        )
        self._memory_bytes = 0

    def _read_learned(self) -> LearnedLog:
        return LearnedLog(self._index.name, self._index.run(read_learned(self._index.name)))

    def _refresh(self) -> None:
        """Make all writes visible to searches, and drop recent nodes from memory."""
        self.writer.flush()
        with self.writer.noticing_deletion():
            self._index.refresh()
        self._recent = {}
        self._unrefreshed = 0

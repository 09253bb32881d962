"""`OwnerThread`: runs the forest's owner in a separate thread, which assigns the articles of all requests."""

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Self, TypeVar

from esdedup.elastic.forest.store import ForestSize
from esdedup.errors import EsdedupError, ForestBusy, ForestLost, IndexNotReady, Refused
from esdedup.forest import Assignment
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.owner import Owner
from esdedup.serial_thread import SerialThread
from esdedup.sidecar.batcher import Batcher, BatchLimits
from esdedup.sidecar.metrics import Metrics
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")

# How often an owner maintains the forest, and a standby tries to take it.
_INTERVAL_S = 1.0
# How long startup waits to take the forest, so that the first request finds an owner if the forest is free.
_FIRST_ATTEMPT_S = 2.0
# How often the forest's contents are counted, which takes a few milliseconds.
_COUNT_EVERY_S = 60.0
# Timeout of a look-up in the owner's memory; the caller then searches Elasticsearch instead.
_LOOK_UP_S = 5.0
# Timeout at shutdown for assigning accepted articles and releasing the lease.
_END_S = 5.0

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class Ownership:
    """Whether this process owns the forest."""

    is_owner: bool = False
    # Why this process is not the owner, or why it accepts no articles; None if there is no error.
    error: EsdedupError | None = None

    @property
    def url(self) -> str | None:
        """The address of another process that owns the forest; None if unknown."""
        owner = self.error.owner if isinstance(self.error, ForestBusy | ForestLost) else None
        return None if owner is None or owner.released else owner.url

    def require(self) -> None:
        """Raise `Refused` unless this process owns the forest."""
        if self.is_owner:
            return
        if self.url is None:
            reason = str(self.error or "this sidecar does not own the forest yet: try again")
        else:
            reason = f"this sidecar is a standby: send articles to the owner of the forest, at {self.url}"
        raise Refused(reason, status=503, kind="not_owner")


class OwnerThread:
    """Takes a forest as soon as it is free, and keeps it; use inside ``async with``.

    A single daemon thread uses the forest. At shutdown, it assigns accepted articles if time permits.
    """

    def __init__(self, owner: Owner, *, forest: str, limits: BatchLimits, metrics: Metrics) -> None:
        self._owner = owner
        self._name = forest
        self._metrics = metrics
        self._thread = SerialThread("esdedup-owner")
        self._batcher = Batcher(self._decide, limits=limits, metrics=metrics)
        self._tasks: list[asyncio.Task[None]] = []
        # Held during a look-up: a batch never waits for more than one look-up.
        self._looking_up = asyncio.Lock()
        self._is_closing = False
        self._count_at_s = time.monotonic()
        self._expired = 0
        self.ownership = Ownership()

    def assigning(
        self, articles: Sequence[ArticleAction], caller: Hashable = None
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Return the context manager of `Batcher.assigning`; raise `Refused` if this is not the owner.

        Entering or leaving it may raise errors of `Owner.decide`. Articles sent again get the same roots.
        """
        self.ownership.require()
        return self._batcher.assigning(articles, caller)

    async def look_up(self, text: str, site: str | None) -> Assignment | None:
        """Return the assignment that a text would get now; None on a standby, or after a timeout."""
        if not self.ownership.is_owner:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_UP_S), self._looking_up:
                return await self._run(lambda: self._owner.look_up(text, site))
        return None

    async def learn(self, pages: Sequence[RawPage], are_last: bool) -> int:
        """Learn boilerplate from pages, like `ingest/learn.py`; raises the same errors as `assigning`."""
        return await self._run(lambda: self._noting_errors(lambda: self._learn_in_thread(pages, are_last)))

    async def __aenter__(self) -> Self:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._run(self._take_or_keep), _FIRST_ATTEMPT_S)
        self._tasks = [
            asyncio.create_task(self._batcher.run(), name="batcher"),
            asyncio.create_task(self._keep_forest(), name="owner"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Assign accepted articles and release the forest, or give up after a timeout."""
        batching, keeping = self._tasks
        self._batcher.close()
        end_s = asyncio.get_running_loop().time() + _END_S
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(batching, _END_S)
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        # If a `_take_or_keep` job is still queued, this flag makes it return immediately.
        self._is_closing = True
        self._set_ownership(Ownership())
        # If Elasticsearch is down, the lease expires by itself.
        with contextlib.suppress(TimeoutError, EsdedupError):
            async with asyncio.timeout_at(end_s):
                await self._run(self._release)

    async def _keep_forest(self) -> None:
        while True:
            is_more_to_do = await self._run(self._take_or_keep)
            if not is_more_to_do:
                await asyncio.sleep(_INTERVAL_S)

    async def _decide(self, articles: list[ArticleAction]) -> Awaitable[None]:
        """Assign a batch's articles; return an awaitable that completes when the assignments are durable."""
        return self._durable(await self._run(lambda: self._decide_in_thread(articles)))

    async def _durable(self, written: Future[None]) -> None:
        try:
            await asyncio.wrap_future(written)
        except EsdedupError:
            # Re-raise the error in the owner's thread, to check there whether the forest was lost.
            await self._run(lambda: self._noting_errors(written.result))

    async def _run(self, job: Callable[[], _Result]) -> _Result:
        """Run a job in the thread. It continues even if the caller is cancelled."""
        return await asyncio.shield(asyncio.wrap_future(self._thread.begin(job)))

    def _learn_in_thread(self, pages: Sequence[RawPage], are_last: bool) -> int:
        self.ownership.require()
        return self._owner.learn(pages, on_learned=lambda *_: None, are_last=are_last)

    def _decide_in_thread(self, articles: list[ArticleAction]) -> Future[None]:
        # The forest may have been lost since the job was queued; `Owner.decide` would take it again.
        self.ownership.require()
        began_s = time.perf_counter()
        written = self._noting_errors(lambda: self._owner.decide(articles))
        decided_s = time.perf_counter()
        self._metrics.batch_decide.observe(decided_s - began_s)
        write = self._metrics.batch_write
        written.add_done_callback(lambda _: write.observe(time.perf_counter() - decided_s))
        return written

    def _noting_errors(self, job: Callable[[], _Result]) -> _Result:
        try:
            return job()
        except EsdedupError as error:
            self._note_ownership(error)
            if isinstance(error, IndexNotReady):
                # The forest's own index is not ready. Clients would take the usual 409 for a conflict.
                raise Refused(str(error), status=503, kind="forest_not_usable") from error
            raise

    def _take_or_keep(self) -> bool:
        """Take or keep the forest and do some work of an owner or standby; return whether work remains."""
        if self._is_closing:
            return False
        try:
            self._owner.open(at_once=self.ownership.is_owner and self.ownership.error is not None)
            self._note_ownership(None)
            if time.monotonic() >= self._count_at_s:
                self._count_at_s = time.monotonic() + _COUNT_EVERY_S
                self._export_contents(self._owner.contents())
            expired = self._owner.expire_some()
        except EsdedupError as error:
            self._note_ownership(error)
            # A standby follows the owner's writes, so that it has less to load when it takes over.
            return isinstance(error, ForestBusy) and self._owner.follow()
        if expired is None:
            return False
        number = expired.leaves + expired.roots
        # The counts of `Owner.expire_some` restart from 0 in each run of deletions.
        self._metrics.expired_nodes.inc(number - self._expired if number >= self._expired else number)
        self._expired = number
        return True

    def _release(self) -> None:
        self._set_ownership(Ownership())
        self._owner.close()

    def _note_ownership(self, error: EsdedupError | None) -> None:
        """Record whether this process owns the forest, and log changes."""
        before, is_owner = self.ownership, self._owner.is_open
        self._set_ownership(Ownership(is_owner, error))
        if (is_owner, str(error)) == (before.is_owner, str(before.error)):
            return
        if is_owner and not before.is_owner:
            log.info("this process owns the forest %s now, and accepts articles", self._name)
        elif isinstance(error, ForestBusy):
            # Omit the error's advice, since being a standby requires no action.
            log.info("this process is a standby for the forest %s: %s", self._name, error.owner)
        elif not is_owner:
            log.warning("this process does not own the forest %s: %s", self._name, error)
        elif error is not None:
            log.warning("no articles are accepted for the forest %s: %s", self._name, error)
        else:
            log.info("articles are accepted for the forest %s again", self._name)

    def _set_ownership(self, ownership: Ownership) -> None:
        has_changed = ownership.is_owner is not self.ownership.is_owner
        self.ownership = ownership
        if has_changed:
            self._metrics.lease.set(ownership.is_owner)
            self._count_at_s = time.monotonic()
            if not ownership.is_owner:
                # The next owner reports the forest's contents.
                self._export_contents(ForestSize())

    def _export_contents(self, contents: ForestSize) -> None:
        self._metrics.nodes.set(contents.nodes)
        self._metrics.hashes.set(contents.hashes)
        self._metrics.memory.set(contents.memory_bytes)
        self._metrics.filled.set(contents.filled)
        self._metrics.passages.set(contents.passages)
        self._metrics.placeholders.set(contents.placeholders)

"""`Batcher`: combines the articles of many requests into batches, which are assigned one after another.

A batch contains the whole queue, up to a limit. If more articles wait, callers take turns, and so do the
requests of each caller.
"""

import asyncio
import contextlib
import dataclasses
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence

from esdedup.errors import Refused
from esdedup.ingest.actions import ArticleAction
from esdedup.sidecar.metrics import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchLimits:
    """The limits on a batch, and on waiting articles."""

    # The maximum number of articles in a batch; larger requests are split.
    batch_articles: int = 1_000
    # The maximum number of characters in a batch; the last article may exceed this limit.
    batch_characters: int = 8_000_000
    # The maximum number and total size of articles that wait or are being assigned, over all requests. A
    # caller's first request, or a caller below its share, may exceed these limits.
    waiting_articles: int = 20_000
    waiting_characters: int = 200_000_000


@dataclasses.dataclass(frozen=True)
class _Load:
    """A count of articles, and their total size in characters."""

    articles: int = 0
    characters: int = 0

    def __add__(self, other: "_Load") -> "_Load":
        return _Load(self.articles + other.articles, self.characters + other.characters)

    def fits(self, limits: BatchLimits, *, parts: int = 1) -> bool:
        """Return whether the load fits into one of `parts` equal shares of the queue."""
        return (
            self.articles * parts <= limits.waiting_articles
            and self.characters * parts <= limits.waiting_characters
        )


class _Waiting:
    """A request with articles that are not assigned yet."""

    def __init__(self, articles: Sequence[ArticleAction]) -> None:
        loop = asyncio.get_running_loop()
        self.articles, self.came_s = articles, loop.time()
        # The number of articles already put into batches, and the number already assigned.
        self.taken = self.decided = 0
        self.all_decided: asyncio.Future[None] = loop.create_future()
        # A future for each batch with articles of the request, done when the batch is durable.
        self.writes: list[asyncio.Future[None]] = []


# The number of articles taken from a request before the next request's turn.
_TURN = 100
# Retry-After is one second per this many waiting articles, plus a random delay of up to the same length.
_ARTICLES_PER_SECOND = 5_000

# Requests, each with its articles in the batch, in order.
_Batch = list[tuple[_Waiting, Sequence[ArticleAction]]]


class Batcher:
    """Assigns the articles of each request in order. After a failure, the rest of that request is skipped."""

    def __init__(
        self,
        decide: Callable[[list[ArticleAction]], Awaitable[Awaitable[None]]],
        *,
        limits: BatchLimits,
        metrics: Metrics,
    ) -> None:
        """`run` calls `decide` with one batch at a time.

        `decide` returns an awaitable that completes when the batch is durable. An exception raised by
        `decide` or by the awaitable fails every request with articles in the batch.
        """
        self._metrics = metrics
        self._decide = decide
        self._limits = limits
        # By caller, the requests with articles not yet in a batch. The caller whose turn is next comes first.
        self._queues: dict[Hashable, deque[_Waiting]] = {}
        # By caller, the articles that are waiting or being assigned.
        self._held: dict[Hashable, _Load] = {}
        self._all = _Load()
        self._changed = asyncio.Event()
        self._is_closing = False
        # The writes of assigned batches that are not durable yet.
        self._writes: set[asyncio.Future[None]] = set()

    @contextlib.asynccontextmanager
    async def assigning(
        self, articles: Sequence[ArticleAction], caller: Hashable = None
    ) -> AsyncIterator[None]:
        """Yield when the articles of a request are assigned; on exit, wait until the assignments are durable.

        Raises `Refused` if the queue is full and this caller exceeds its share, or after `close`.
        """
        if not articles:
            yield
            return
        load = _Load(len(articles), sum(each.size for each in articles))
        self._admit(load, caller)
        waiting = _Waiting(articles)
        self._hold(load, caller)
        self._queues.setdefault(caller, deque()).append(waiting)
        self._changed.set()
        try:
            await waiting.all_decided
            yield
            for write in waiting.writes:
                await asyncio.shield(write)
        finally:
            # Once `all_decided` is cancelled, errors in the request's batches are ignored.
            waiting.all_decided.cancel()
            self._hold(_Load(-load.articles, -load.characters), caller)

    def close(self) -> None:
        """Refuse further requests. `run` returns once the accepted requests have been assigned."""
        self._is_closing = True
        self._changed.set()

    async def run(self) -> None:
        """Assign one batch after another, until `close` has been called and the queue is empty."""
        while self._queues or not self._is_closing:
            if self._queues:
                await self._decide_batch(self._next_batch())
            else:
                await self._changed.wait()
                self._changed.clear()
        await asyncio.gather(*self._writes, return_exceptions=True)

    def _admit(self, load: _Load, caller: Hashable) -> None:
        if self._is_closing:
            ending = "this process is shutting down and accepts no more articles: send them elsewhere"
            raise Refused(ending, status=503, kind="shutting_down")
        # A caller's first request may exceed the limit, unless the queue already does.
        is_first = caller not in self._held and self._all.fits(self._limits)
        if is_first or (self._all + load).fits(self._limits):
            return
        # Other callers' requests must not exclude a caller that is below its share.
        own = self._held.get(caller, _Load()) + load
        if not own.fits(self._limits, parts=1 + len(self._held)):
            waiting = self._all.articles
            wait_s = 1 + waiting // _ARTICLES_PER_SECOND
            raise Refused(
                f"{waiting:,} articles are waiting to be assigned; the limit is "
                f"{self._limits.waiting_articles:,}: send this request again later",
                status=429,
                kind="queue_full",
                retry_after_s=random.randint(wait_s, 2 * wait_s),  # noqa: S311 - no secret
            )

    def _hold(self, load: _Load, caller: Hashable) -> None:
        self._all += load
        self._held[caller] = self._held.get(caller, _Load()) + load
        if not self._held[caller].articles:
            del self._held[caller]
        self._metrics.queue.inc(load.articles)

    def _next_batch(self) -> _Batch:
        batch: _Batch = []
        articles, characters = self._limits.batch_articles, self._limits.batch_characters
        while self._queues and articles > 0 and characters > 0:
            caller = next(iter(self._queues))
            queue = self._queues.pop(caller)
            waiting = queue.popleft()
            start = stop = waiting.taken
            # Skip the request if its caller has disconnected or one of its earlier batches has failed.
            if not waiting.all_decided.done():
                end = min(start + _TURN, start + articles, len(waiting.articles))
                while stop < end and characters > 0:
                    characters -= waiting.articles[stop].size
                    stop += 1
                articles -= stop - start
                batch.append((waiting, waiting.articles[start:stop]))
                waiting.taken = stop
                if stop < len(waiting.articles):
                    queue.append(waiting)
            if queue:
                self._queues[caller] = queue
        return batch

    async def _decide_batch(self, batch: _Batch) -> None:
        if not batch:
            return
        given = [article for _, articles in batch for article in articles]
        waited_s = asyncio.get_running_loop().time() - batch[0][0].came_s
        self._metrics.batch_articles.observe(len(given))
        self._metrics.batch_wait.observe(waited_s)
        try:
            durable = await self._decide(given)
        except Exception as error:
            _fail(batch, error)
            return
        write = asyncio.ensure_future(durable)
        self._writes.add(write)
        write.add_done_callback(lambda _: self._note_written(batch, write))
        for waiting, articles in batch:
            waiting.decided += len(articles)
            waiting.writes.append(write)
            if waiting.decided == len(waiting.articles) and not waiting.all_decided.done():
                waiting.all_decided.set_result(None)

    def _note_written(self, batch: _Batch, write: asyncio.Future[None]) -> None:
        self._writes.discard(write)
        if not write.cancelled() and (error := write.exception()) is not None:
            _fail(batch, error)


def _fail(batch: _Batch, error: BaseException) -> None:
    """Fail all requests with articles in a batch, so that their remaining articles are skipped."""
    for waiting, _ in batch:
        if not waiting.all_decided.done():
            waiting.all_decided.set_exception(error)

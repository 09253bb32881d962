"""Groups a stream into batches by number, by size and, if items arrive slowly, by time."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Generic, TypeVar

from esdedup.elastic.limits import DEFAULT_LIMITS
from esdedup.errors import SettingError

_Item = TypeVar("_Item")

BATCH_SIZE = 1_000
"""The default number of articles that are assigned together."""

MAX_BATCH_SIZE = 8_000_000
"""The size in characters or bytes at which a batch is complete, since it is held in memory as a whole. 1,000
articles of average length do not reach it."""


class Filling(Generic[_Item]):
    """A batch that is being filled."""

    def __init__(self, *, most: int, size_of: Callable[[_Item], int]) -> None:
        self._most = most
        self._size_of = size_of
        self._items: list[_Item] = []
        self._size = 0
        self._begun_s = 0.0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        """Whether the batch is complete."""
        return len(self._items) >= self._most or self._size >= MAX_BATCH_SIZE

    def add(self, item: _Item) -> None:
        """Add an item of any size."""
        if not self._items:
            self._begun_s = time.monotonic()
        self._size += self._size_of(item)
        self._items.append(item)

    def rest_s(self, flush_interval_s: float) -> float:
        """Return how many seconds are left until the batch is as old as the interval."""
        return max(0.0, self._begun_s + flush_interval_s - time.monotonic())

    def take(self) -> list[_Item]:
        """Return the items and start the next batch."""
        items, self._items, self._size = self._items, [], 0
        return items


def check_batch_size(batch_size: int) -> None:
    """Raise `SettingError` if the batch size is out of range."""
    most = DEFAULT_LIMITS.bulk_documents
    if not 1 <= batch_size <= most:
        raise SettingError(f"batch_size is {batch_size}; it must be from 1 to {most:,}")


def check_flush_interval(flush_interval_s: float | None) -> None:
    """Raise `SettingError` if the interval is out of range; None is allowed."""
    if flush_interval_s is not None and not 0 < flush_interval_s < threading.TIMEOUT_MAX:
        raise SettingError(f"flush_interval_s is {flush_interval_s}; it must be greater than 0")


def batches(
    items: Iterable[_Item],
    *,
    most: int,
    size_of: Callable[[_Item], int],
    flush_interval_s: float | None = None,
) -> Iterator[list[_Item]]:
    """Yield the items in batches, in order.

    A batch is complete when it has `most` items or reaches `MAX_BATCH_SIZE`, which its last item may exceed.

    With `flush_interval_s`, a batch is also complete this many seconds after its first item arrived. A
    separate thread then reads `items`, at most one batch ahead, and an empty list is yielded before each wait
    for an incomplete batch. Without `flush_interval_s`, every batch but the last is full.
    """
    if flush_interval_s is not None:
        yield from _Reader(items, most=most, size_of=size_of, flush_interval_s=flush_interval_s).batches()
        return
    filling = Filling[_Item](most=most, size_of=size_of)
    for item in items:
        filling.add(item)
        if filling.is_full:
            yield filling.take()
    if filling:
        yield filling.take()


class _Reader(Generic[_Item]):
    """Collects the next batch in a thread, because reading may block until an item arrives."""

    def __init__(
        self, items: Iterable[_Item], *, most: int, size_of: Callable[[_Item], int], flush_interval_s: float
    ) -> None:
        self._items = items
        self._flush_interval_s = flush_interval_s
        # Guards the attributes below, and is notified of every change.
        self._changed = threading.Condition()
        self._filling = Filling[_Item](most=most, size_of=size_of)
        self._has_ended = False
        self._error: BaseException | None = None
        self._is_abandoned = False

    def batches(self) -> Iterator[list[_Item]]:
        # A daemon thread, because it may wait for input that never arrives.
        thread = threading.Thread(target=self._read, name="esdedup-reader", daemon=True)
        thread.start()
        try:
            while (batch := self._next()) is not None:
                yield batch
                with self._changed:
                    must_wait = bool(batch) and not (self._filling.is_full or self._has_ended)
                if must_wait:
                    yield []
        finally:
            # A forked process does not have this thread, and inherits a lock that may have been held.
            if thread.is_alive():
                with self._changed:
                    self._is_abandoned = True
                    self._changed.notify_all()
        if self._error is not None:
            raise self._error

    def _next(self) -> list[_Item] | None:
        """Wait for the next batch and return it; return None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._filling) or self._has_ended)
            rest_s = self._filling.rest_s(self._flush_interval_s)
            self._changed.wait_for(lambda: self._filling.is_full or self._has_ended, timeout=rest_s)
            batch = self._filling.take()
            self._changed.notify_all()
            return batch or None

    def _read(self) -> None:
        try:
            for item in self._items:
                with self._changed:
                    self._changed.wait_for(lambda: not self._filling.is_full or self._is_abandoned)
                    if self._is_abandoned:
                        return
                    self._filling.add(item)
                    self._changed.notify_all()
        except BaseException as error:  # re-raised in the thread that reads the batches
            self._error = error
        finally:
            with self._changed:
                self._has_ended = True
                self._changed.notify_all()


async def async_batches(
    items: Iterable[_Item] | AsyncIterable[_Item],
    *,
    most: int,
    size_of: Callable[[_Item], int],
    flush_interval_s: float | None = None,
) -> AsyncGenerator[list[_Item], None]:
    """Yield batches as `batches` does, in the event loop; with `flush_interval_s`, a task reads `items`."""
    filling = Filling[_Item](most=most, size_of=size_of)
    if flush_interval_s is None:
        async for item in _awaited(items):
            filling.add(item)
            if filling.is_full:
                yield filling.take()
        if filling:
            yield filling.take()
        return
    changed = asyncio.Event()

    async def change() -> None:
        changed.clear()
        await changed.wait()

    async def read() -> None:
        async for item in _awaited(items):
            while filling.is_full:
                await change()
            filling.add(item)
            changed.set()

    reading = asyncio.create_task(read(), name="esdedup-reader")
    reading.add_done_callback(lambda _: changed.set())
    try:
        while True:
            while not (filling or reading.done()):
                await change()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(filling.rest_s(flush_interval_s)):
                    while not (filling.is_full or reading.done()):
                        await change()
            batch = filling.take()
            changed.set()
            if not batch:
                break
            yield batch
        # Re-raise an error from reading.
        reading.result()
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await reading


async def _awaited(items: Iterable[_Item] | AsyncIterable[_Item]) -> AsyncIterator[_Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item

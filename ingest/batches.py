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
    filling = Filling[_Item](most=most, size_of=size_of)
    if flush_interval_s is not None:
        yield from _read_ahead(items, filling, flush_interval_s)
        return
    for item in items:
        filling.add(item)
        if filling.is_full:
            yield filling.take()
    if filling:
        yield filling.take()


def _read_ahead(
    items: Iterable[_Item], filling: Filling[_Item], flush_interval_s: float
) -> Iterator[list[_Item]]:
    """Collect the next batch in a thread, because reading may block until an item arrives."""
    # Guards the batch and the variables below, and is notified of every change.
    changed = threading.Condition()
    has_ended = is_abandoned = False
    failures: list[BaseException] = []

    def read() -> None:
        nonlocal has_ended
        try:
            for item in items:
                with changed:
                    changed.wait_for(lambda: not filling.is_full or is_abandoned)
                    if is_abandoned:
                        return
                    filling.add(item)
                    changed.notify_all()
        except BaseException as error:  # re-raised in the thread that reads the batches
            failures.append(error)
        finally:
            with changed:
                has_ended = True
                changed.notify_all()

    # A daemon thread, because it may wait for input that never arrives.
    thread = threading.Thread(target=read, name="esdedup-reader", daemon=True)
    thread.start()
    try:
        while True:
            with changed:
                changed.wait_for(lambda: len(filling) or has_ended)
                rest_s = filling.rest_s(flush_interval_s)
                changed.wait_for(lambda: filling.is_full or has_ended, timeout=rest_s)
                batch = filling.take()
                changed.notify_all()
            if not batch:
                break
            yield batch
            with changed:
                must_wait = not (filling.is_full or has_ended)
            if must_wait:
                yield []
    finally:
        # A forked process does not have this thread, and inherits a lock that may have been held.
        if thread.is_alive():
            with changed:
                is_abandoned = True
                changed.notify_all()
    for failure in failures:
        raise failure


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

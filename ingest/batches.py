"""Groups a stream into batches: by number, by size and, where items come slowly, by time."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Generic, TypeVar

from esdedup.errors import ClientForked

_Item = TypeVar("_Item")

BATCH_SIZE = 1_000
"""How many articles are assigned together, unless another number is given."""

MAX_BATCH_SIZE = 8_000_000
"""A batch of this size, in characters or bytes, is complete. It is in memory as a whole. 1,000 articles of
usual lengths are smaller."""


class Filling(Generic[_Item]):
    """A batch while it is being filled."""

    def __init__(self, *, most: int, size_of: Callable[[_Item], int]) -> None:
        self._most = most
        self._size_of = size_of
        self._items: list[_Item] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        """Whether it is complete."""
        return len(self._items) >= self._most or self._size >= MAX_BATCH_SIZE

    def add(self, item: _Item) -> None:
        """Add an item, which may be of any size."""
        self._size += self._size_of(item)
        self._items.append(item)

    def take(self) -> list[_Item]:
        """Return the items, and begin another batch."""
        items, self._items, self._size = self._items, [], 0
        return items


def batches(
    items: Iterable[_Item],
    *,
    most: int,
    size_of: Callable[[_Item], int],
    flush_interval_s: float | None = None,
) -> Iterator[list[_Item]]:
    """Yield the items in lists, in order; together they are the same whatever the batches.

    A batch is complete when it has `most` items or `MAX_BATCH_SIZE`, of which the last item may exceed
    any size.

    With `flush_interval_s`, a batch is also complete that long after its first item came. Then `items` is
    read by a thread of its own, one batch ahead at most, and an empty list is yielded before one that is not
    complete yet is waited for. Without, a batch waits until it is full.
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


def refuse_fork(process: int) -> None:
    """Make sure that this process, of that id, is the one that began to read a stream.

    Raises:
        ClientForked: It was forked from that process.
    """
    if os.getpid() != process:
        raise ClientForked(
            f"this process ({os.getpid()}) was forked from process {process}, which has begun to read these "
            "actions and gets the rest of them: call enrich in the process that uses its result",
            process=process,
        )


class _Reader(Generic[_Item]):
    """Collects the next batch in a thread, because reading may block for as long as nothing comes."""

    def __init__(
        self, items: Iterable[_Item], *, most: int, size_of: Callable[[_Item], int], flush_interval_s: float
    ) -> None:
        self._items = items
        self._flush_interval_s = flush_interval_s
        self._process = os.getpid()
        # Guards all that follows, and is notified of every change.
        self._changed = threading.Condition()
        self._filling = Filling[_Item](most=most, size_of=size_of)
        self._begun_s = 0.0
        self._has_ended = False
        self._error: BaseException | None = None
        self._is_abandoned = False

    def batches(self) -> Iterator[list[_Item]]:
        # A daemon: nobody can end a thread that waits for input which never comes.
        threading.Thread(target=self._read, name="esdedup-reader", daemon=True).start()
        try:
            while (batch := self._next()) is not None:
                yield batch
                if batch and not self._is_complete():
                    yield []
        finally:
            # In a forked process there is nobody to tell, as above.
            if os.getpid() == self._process:
                with self._changed:
                    self._is_abandoned = True
                    self._changed.notify_all()
        if self._error is not None:
            raise self._error

    def _is_complete(self) -> bool:
        """Return whether the next batch need not be waited for."""
        refuse_fork(self._process)
        with self._changed:
            return self._filling.is_full or self._has_ended

    def _next(self) -> list[_Item] | None:
        """Wait for a batch; None at the end."""
        # A forked process has no thread that reads, and the lock may have been held when it was forked.
        refuse_fork(self._process)
        with self._changed:
            self._changed.wait_for(lambda: len(self._filling) or self._has_ended)
            rest_s = self._begun_s + self._flush_interval_s - time.monotonic()
            self._changed.wait_for(lambda: self._filling.is_full or self._has_ended, timeout=max(0.0, rest_s))
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
                    if not self._filling:
                        self._begun_s = time.monotonic()
                    self._filling.add(item)
                    self._changed.notify_all()
        except BaseException as error:  # raised again where the batches are read
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
    """Yield the items in lists, in order; parameters are those of `batches`.

    With `flush_interval_s`, `items` is read by a task of its own, one batch ahead at most.
    """
    filling = Filling[_Item](most=most, size_of=size_of)
    if flush_interval_s is not None:
        async with contextlib.aclosing(_AsyncReader(items, filling, flush_interval_s).batches()) as found:
            async for batch in found:
                yield batch
        return
    async for item in _awaited(items):
        filling.add(item)
        if filling.is_full:
            yield filling.take()
    if batch := filling.take():
        yield batch


async def _awaited(items: Iterable[_Item] | AsyncIterable[_Item]) -> AsyncIterator[_Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class _AsyncReader(Generic[_Item]):
    """Collects the next batch in a task."""

    def __init__(
        self, items: Iterable[_Item] | AsyncIterable[_Item], filling: Filling[_Item], flush_interval_s: float
    ) -> None:
        self._items = items
        self._filling = filling
        self._flush_interval_s = flush_interval_s
        self._changed = asyncio.Event()
        self._begun_s = 0.0

    async def batches(self) -> AsyncGenerator[list[_Item], None]:
        reading = asyncio.create_task(self._read(), name="esdedup-reader")
        reading.add_done_callback(lambda _: self._changed.set())
        loop = asyncio.get_running_loop()
        try:
            while True:
                while not self._filling and not reading.done():
                    await self._change()
                while not self._filling.is_full and not reading.done():
                    left_s = self._begun_s + self._flush_interval_s - loop.time()
                    try:
                        async with asyncio.timeout(left_s):
                            await self._change()
                    except TimeoutError:
                        break
                batch = self._filling.take()
                self._changed.set()
                if not batch:
                    break
                yield batch
            # Raises what reading has raised.
            reading.result()
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await reading

    async def _read(self) -> None:
        async for item in _awaited(self._items):
            while self._filling.is_full:
                await self._change()
            if not self._filling:
                self._begun_s = asyncio.get_running_loop().time()
            self._filling.add(item)
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

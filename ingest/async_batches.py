"""Groups a stream into batches, as `batches` does, but awaited."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Generic, TypeVar

from esdedup.ingest.batches import Filling

_Item = TypeVar("_Item")


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
        async with contextlib.aclosing(_Reader(items, filling, flush_interval_s).batches()) as found:
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


class _Reader(Generic[_Item]):
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

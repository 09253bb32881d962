"""Streams that are awaited, in batches: by number and size, and by time where items come slowly."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest
from esdedup.ingest.async_batches import async_batches
from esdedup.ingest.batches import MAX_BATCH_SIZE, batches
from hypothesis import given, settings
from hypothesis import strategies as st

NEVER_S = 3_600.0


async def awaited(items: Iterable[int]) -> AsyncIterator[int]:
    for item in items:
        if item % 3 == 0:
            await asyncio.sleep(0)
        yield item


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([1, 2, 3, MAX_BATCH_SIZE // 2, MAX_BATCH_SIZE]), max_size=12), st.integers(1, 4)
)
def test_they_are_those_of_a_stream_that_is_not_awaited(
    flush_interval_s: float | None, items: list[int], most: int
) -> None:
    async def collected(source: Iterable[int] | AsyncIterator[int]) -> list[list[int]]:
        found = async_batches(source, most=most, size_of=int, flush_interval_s=flush_interval_s)
        return [batch async for batch in found]

    expected = list(batches(items, most=most, size_of=int))
    assert asyncio.run(collected(items)) == asyncio.run(collected(awaited(items))) == expected


def test_what_comes_slowly_does_not_wait_for_a_full_batch() -> None:
    came = asyncio.Event()

    async def trickle() -> AsyncIterator[int]:
        yield 1
        yield 2
        await came.wait()
        yield 3

    async def collected() -> list[list[int]]:
        found = []
        async for batch in async_batches(trickle(), most=1_000, size_of=int, flush_interval_s=0.05):
            found.append(batch)
            came.set()
        return found

    assert asyncio.run(asyncio.wait_for(collected(), 20)) == [[1, 2], [3]]


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
def test_an_error_comes_after_the_batches_before_it(flush_interval_s: float | None) -> None:
    async def broken() -> AsyncIterator[int]:
        for item in range(5):
            yield item
        raise KeyError("broken")

    async def collected() -> None:
        stream = async_batches(broken(), most=2, size_of=int, flush_interval_s=flush_interval_s)
        assert [await anext(stream) for _ in range(2)] == [[0, 1], [2, 3]]
        if flush_interval_s is not None:
            assert await anext(stream) == [4]
        with pytest.raises(KeyError, match="broken"):
            await anext(stream)

    asyncio.run(collected())


def test_whoever_stops_reading_leaves_no_task() -> None:
    ended = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            ended.append(True)

    async def first() -> list[str]:
        found = async_batches(endless(), most=3, size_of=int, flush_interval_s=NEVER_S)
        assert await anext(found) == [1, 1, 1]
        await found.aclose()
        return [task.get_name() for task in asyncio.all_tasks() if not task.get_name().startswith("Task-")]

    assert asyncio.run(asyncio.wait_for(first(), 20)) == []
    assert ended

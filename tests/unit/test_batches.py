"""Batches end by number, by size and by time, and lose nothing, also in an event loop and of a file."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta

import pytest
from esdedup.ingest.batches import MAX_BATCH_SIZE, async_batches, batches
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.files import FileArticle
from hypothesis import given, settings
from hypothesis import strategies as st

from esdedup import VERIFIED, Fields

NEVER_S = 3_600.0


def no_size(_: object) -> int:
    return 0


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
def test_number_and_size_end_a_batch(flush_interval_s: float | None) -> None:
    def sizes(items: list[int], most: int) -> list[list[int]]:
        found = batches(items, most=most, size_of=int, flush_interval_s=flush_interval_s)
        return [each for each in found if each]

    whole, half = MAX_BATCH_SIZE, MAX_BATCH_SIZE // 2
    assert sizes([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert sizes([half, half, 1, half, 9 * whole, whole, 1], 100) == [
        [half, half],
        [1, half, 9 * whole],
        [whole],
        [1],
    ]
    assert sizes([], 2) == []


def test_an_empty_list_comes_before_what_has_to_be_waited_for() -> None:
    may_go_on = threading.Event()

    def items() -> Iterator[int]:
        yield from range(5)
        may_go_on.wait(10)
        yield 5

    found = batches(items(), most=2, size_of=no_size, flush_interval_s=NEVER_S)
    seen = list(itertools.takewhile(bool, found))
    assert seen in ([[0, 1], [2, 3]], [[0, 1]], [])
    may_go_on.set()
    assert [each for batch in (*seen, *found) for each in batch] == [*range(6)]


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
def test_an_error_comes_after_the_items_before_it(flush_interval_s: float | None) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError("broken")

    found = batches(items(), most=3, size_of=no_size, flush_interval_s=flush_interval_s)
    assert next(found) == [0, 1, 2]
    with pytest.raises(KeyError, match="broken"):
        next(found)


def test_a_trickle_is_flushed_while_it_waits_for_more() -> None:
    more = threading.Event()

    def trickle() -> Iterator[int]:
        yield from (1, 2)
        # Ends by itself if the batch never comes.
        assert more.wait(60)
        yield 3

    found = batches(trickle(), most=1_000, size_of=no_size, flush_interval_s=0.2)
    first = next(found)
    more.set()
    assert [*first, *itertools.chain.from_iterable(found)] == [1, 2, 3]
    assert first


def test_the_thread_reads_one_batch_ahead_and_ends_with_its_reader() -> None:
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    found = batches(endless(), most=10, size_of=no_size, flush_interval_s=NEVER_S)
    assert next(found) == list(range(1, 11))
    (thread,) = [each for each in threading.enumerate() if each.name == "esdedup-reader"]
    found.close()  # type: ignore[attr-defined]
    thread.join(60)
    assert not thread.is_alive()
    assert taken <= 10 + 10 + 2


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


COUNT, LENGTH, BATCH = 30, 3_000, 10_000


def test_the_size_of_articles_ends_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esdedup.ingest.batches.MAX_BATCH_SIZE", BATCH)
    taken = given = most_ahead = 0

    def articles() -> Iterator[FileArticle]:
        nonlocal taken, most_ahead
        for number in range(COUNT):
            taken += 1
            most_ahead = max(most_ahead, taken - given)
            text = f"{number} words " * (LENGTH // 8)
            yield FileArticle(
                place=f"f:{number}", id=str(number), article={"text": text}, size_bytes=len(text)
            )

    cut: list[str] = []
    clustering = Clustering(
        profile=VERIFIED.with_changes(max_text_length=1_000),
        fields=Fields(),
        use_time=False,
        retention=timedelta(days=30),
        on_rejected=lambda rejected: pytest.fail(str(rejected)),
        on_cut=cut.append,
    )
    for _ in clustering.cluster(articles()):
        given += 1
    assert given == len(cut) == COUNT
    assert most_ahead * LENGTH < 2 * BATCH

"""Splitting a stream into batches: limits, order and errors; and assigning one batch ahead."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.batches import MAX_BATCH_SIZE, async_batches, batches
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.enricher import Enricher
from esdedup.ingest.files import FileArticle
from hypothesis import given
from hypothesis import strategies as st

from esdedup import VERIFIED
from esdedup.elastic.meta import WritableIndex
from esdedup.errors import ArticleRejected, ForestError
from esdedup.fields import Fields
from tests.support.exploring import examples

NEVER_S = 3_600.0


def no_size(_: object) -> int:
    return 0


@pytest.mark.parametrize("flush_interval_s", [None, NEVER_S])
def test_batches_are_limited_by_item_count_and_size(flush_interval_s: float | None) -> None:
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


def test_an_empty_list_is_yielded_before_a_wait() -> None:
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
def test_an_error_is_raised_after_the_preceding_items(flush_interval_s: float | None) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError("broken")

    found = batches(items(), most=3, size_of=no_size, flush_interval_s=flush_interval_s)
    assert next(found) == [0, 1, 2]
    with pytest.raises(KeyError, match="broken"):
        next(found)


def test_slow_items_are_flushed_before_more_arrive() -> None:
    more = threading.Event()

    def trickle() -> Iterator[int]:
        yield from (1, 2)
        # Fails instead of hanging if the batch never comes.
        assert more.wait(60)
        yield 3

    found = batches(trickle(), most=1_000, size_of=no_size, flush_interval_s=0.2)
    first = next(found)
    more.set()
    assert [*first, *itertools.chain.from_iterable(found)] == [1, 2, 3]
    assert first


def test_the_reader_thread_reads_one_batch_ahead() -> None:
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
@examples(40)
@given(
    st.lists(st.sampled_from([1, 2, 3, MAX_BATCH_SIZE // 2, MAX_BATCH_SIZE]), max_size=12), st.integers(1, 4)
)
def test_async_and_blocking_streams_give_equal_batches(
    flush_interval_s: float | None, items: list[int], most: int
) -> None:
    async def collected(source: Iterable[int] | AsyncIterator[int]) -> list[list[int]]:
        found = async_batches(source, most=most, size_of=int, flush_interval_s=flush_interval_s)
        return [batch async for batch in found]

    expected = list(batches(items, most=most, size_of=int))
    assert asyncio.run(collected(items)) == asyncio.run(collected(awaited(items))) == expected


def test_slow_arrivals_do_not_wait_for_full_batches() -> None:
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
async def test_an_error_is_raised_after_the_preceding_batches(flush_interval_s: float | None) -> None:
    async def broken() -> AsyncIterator[int]:
        for item in range(5):
            yield item
        raise KeyError("broken")

    stream = async_batches(broken(), most=2, size_of=int, flush_interval_s=flush_interval_s)
    assert [await anext(stream) for _ in range(2)] == [[0, 1], [2, 3]]
    if flush_interval_s is not None:
        assert await anext(stream) == [4]
    with pytest.raises(KeyError, match="broken"):
        await anext(stream)


def test_closing_the_stream_leaves_no_task() -> None:
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


def test_the_size_of_articles_limits_batches(monkeypatch: pytest.MonkeyPatch) -> None:
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


class Assigning:
    """A fake forest that gives each article its text as root, and raises an error for the text "fails"."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.threads: set[int] = set()
        self.changed = threading.Condition()

    def assign(self, articles: Sequence[ArticleAction]) -> None:
        with self.changed:
            self.threads.add(threading.get_ident())
            self.given += [each.text for each in articles]
            self.changed.notify_all()
        if self.given[-1] == "fails":
            raise ForestError("fails", forest="f")
        for each in articles:
            each.parts = {"source": {"root": each.text}}

    def await_given(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.given) >= count, 10)


def enriched(
    forest: Assigning,
    actions: Iterable[Any],
    rejected: list[ArticleRejected] | None = None,
    *,
    flush_interval_s: float | None = None,
) -> Iterator[dict[str, Any]]:
    on_rejected = (list[ArticleRejected]() if rejected is None else rejected).append
    enricher = Enricher(
        assign=forest.assign,
        fields=None,
        check_process=lambda: None,
        check_index=lambda _: WritableIndex(fields=Fields()),
        batch_size=2,
        max_text_length=100,
        on_rejected=on_rejected,
    )
    return enricher.enrich(actions, flush_interval_s=flush_interval_s)


def texts(*names: str) -> list[dict[str, Any]]:
    return [{"_id": name, "_source": {"text": name}} for name in names]


@pytest.mark.parametrize("flush_interval_s", [None, 0.05])
def test_one_batch_is_assigned_while_another_is_used(flush_interval_s: float | None) -> None:
    forest = Assigning()
    found = enriched(forest, texts(*"abcdefg"), flush_interval_s=flush_interval_s)
    first = next(found)
    assert first["_source"]["dedup"]["root"] == "a"
    if flush_interval_s is None:
        forest.await_given(4)
        # The third batch is not assigned yet.
        assert forest.given == [*"abcd"]
    assert [first["_id"], *(each["_id"] for each in found)] == [*"abcdefg"] == forest.given


def test_an_error_is_raised_after_earlier_batches() -> None:
    def actions() -> Iterator[dict[str, Any]]:
        yield from texts(*"abc")
        raise KeyError("broken")

    seen: list[str] = []
    with pytest.raises(KeyError, match="broken"):
        seen.extend(each["_id"] for each in enriched(Assigning(), actions()))
    # The batch that the error interrupts is not assigned.
    assert seen == [*"ab"]
    seen.clear()
    with pytest.raises(ForestError, match="fails"):
        seen.extend(each["_id"] for each in enriched(Assigning(), texts("a", "b", "c", "fails", "e")))
    assert seen == [*"ab"]


def test_rejections_are_reported_in_order() -> None:
    rejected: list[ArticleRejected] = []
    found = enriched(Assigning(), [*texts("a", "b"), {"_id": "none", "_source": {}}, *texts("d")], rejected)
    next(found)
    assert rejected == []
    assert [each["_id"] for each in found] == ["b", "d"]
    assert [each.article for each in rejected] == ["none"]


def test_a_single_batch_is_assigned_in_the_callers_thread() -> None:
    forest = Assigning()
    assert len(list(enriched(forest, texts("a")))) == 1
    assert forest.threads == {threading.get_ident()}

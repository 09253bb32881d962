"""Articles of many requests are assigned in batches, and callers take turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Hashable, Iterator, Sequence

import pytest
from esdedup.ingest.actions import ArticleAction
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import EsdedupError, Refused
from esdedup.sidecar.batcher import Batcher, BatchLimits
from esdedup.sidecar.metrics import Metrics


class Decider:
    """A fake owner that sets each article's routing to its text in capitals, and records batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.free = asyncio.Event()
        self.free.set()
        self.error: Exception | None = None
        self.writes = asyncio.Event()
        self.writes.set()
        self.write_error: Exception | None = None

    async def __call__(self, articles: list[ArticleAction]) -> Awaitable[None]:
        self.batches.append([each.text for each in articles])
        await self.free.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        for each in articles:
            each.routing = each.text.upper()
        return self._written()

    async def _written(self) -> None:
        await self.writes.wait()
        if self.write_error is not None:
            raise self.write_error


@contextlib.asynccontextmanager
async def intake_of(
    decider: Decider, metrics: Metrics | None = None, **limits: int
) -> AsyncIterator[Batcher]:
    """Run a batcher; at the end, close it and wait until it has assigned all accepted articles."""
    intake = Batcher(decider, limits=BatchLimits(**limits), metrics=metrics or Metrics())
    running = asyncio.create_task(intake.run())
    yield intake
    intake.close()
    await running


@contextlib.contextmanager
def busy(decider: Decider) -> Iterator[None]:
    """Keep the owner from assigning articles."""
    decider.free.clear()
    yield
    decider.free.set()


def waiting(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("esdedup_queue_articles")


async def assign(intake: Batcher, articles: Sequence[ArticleAction], caller: Hashable = None) -> list[str]:
    async with intake.assigning(articles, caller):
        pass
    return routings(articles)


def routings(articles: Sequence[ArticleAction]) -> list[str]:
    return [each.routing for each in articles if each.routing is not None]


def article(text: str) -> ArticleAction:
    return ArticleAction(action={}, name=text, text=text, dated_ms=None)


def articles(*texts: str) -> list[ArticleAction]:
    return list(map(article, texts))


async def begun(intake: Batcher, *texts: str, caller: Hashable = None) -> asyncio.Task[list[str]]:
    """Start to assign the articles of a request, and wait until they are queued."""
    task = asyncio.create_task(assign(intake, articles(*texts), caller))
    await asyncio.sleep(0.01)
    return task


@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=5), max_size=7), max_size=8), st.integers(1, 5))
def test_every_request_gets_its_own_results_in_order(requests: list[list[str]], size: int) -> None:
    decider, metrics = Decider(), Metrics()

    async def run() -> None:
        async with intake_of(decider, metrics, batch_articles=size, batch_characters=12) as intake:
            answers = await asyncio.gather(*(assign(intake, articles(*texts)) for texts in requests))
            assert answers == [[text.upper() for text in texts] for texts in requests]

    asyncio.run(run())
    assert waiting(metrics) == 0
    # Requests take turns, so the order across requests is not compared.
    decided = [text for batch in decider.batches for text in batch]
    assert sorted(decided) == sorted(text for texts in requests for text in texts)
    assert all(len(batch) <= size for batch in decider.batches)
    assert all(sum(map(len, batch[:-1])) < 12 for batch in decider.batches)


async def test_articles_arriving_during_an_assignment_form_one_batch() -> None:
    decider = Decider()
    async with intake_of(decider) as intake:
        with busy(decider):
            requests = [await begun(intake, text) for text in "abcd"]
        await asyncio.gather(*requests)
    assert decider.batches == [["a"], ["b", "c", "d"]]


async def test_a_failed_batch_fails_only_its_own_requests() -> None:
    decider = Decider()
    decider.error = EsdedupError("the forest is unavailable")
    async with intake_of(decider, batch_articles=2) as intake:
        given = [assign(intake, articles(*texts)) for texts in ("a", "bcd", "e")]
        first, second, third = await asyncio.gather(*given, return_exceptions=True)
    assert str(first) == str(second) == "the forest is unavailable"
    assert third == ["E"]
    # The remaining articles of the failed request are not assigned.
    assert decider.batches == [["a", "b"], ["e"]]


async def test_one_request_alone_may_exceed_the_limit() -> None:
    decider = Decider()
    async with intake_of(decider, waiting_articles=2) as intake:
        with busy(decider):
            large = await begun(intake, "a", "b", "c")
            with pytest.raises(Refused, match="3 articles are waiting to be assigned; the limit is 2"):
                await assign(intake, articles("d"))
        assert await large == ["A", "B", "C"]
        assert await assign(intake, articles("d")) == ["D"]
    with pytest.raises(Refused, match="is shutting down"):
        await assign(intake, articles("e"))


async def test_the_next_batch_is_assigned_while_one_is_written() -> None:
    decider = Decider()
    decider.writes.clear()
    async with intake_of(decider) as intake:
        requests = [await begun(intake, "a"), await begun(intake, "b")]
        assert decider.batches == [["a"], ["b"]]
        assert not requests[0].done()
        intake.close()
        decider.write_error = EsdedupError("cannot be written")
        decider.writes.set()
        for each in requests:
            with pytest.raises(EsdedupError, match="cannot be written"):
                await each


async def test_requests_of_disconnected_clients_are_not_assigned() -> None:
    decider, metrics = Decider(), Metrics()
    async with intake_of(decider, metrics) as intake:
        with busy(decider):
            first, gone, last = [await begun(intake, text) for text in "abc"]
            gone.cancel()
        await asyncio.gather(first, last)
    assert waiting(metrics) == 0
    assert decider.batches == [["a"], ["c"]]


async def test_assignments_are_available_before_they_are_written() -> None:
    decider, given = Decider(), articles("a", "b", "c")
    decider.writes.clear()

    async def answer() -> None:
        async with intake.assigning(given):
            assert routings(given) == ["A", "B", "C"]
            assert not decider.writes.is_set()
            decider.write_error = EsdedupError("the disk is full")
            asyncio.get_running_loop().call_later(0.01, decider.writes.set)
            with pytest.raises(EsdedupError, match="the disk is full"):
                await assign(intake, articles("d"))

    async with intake_of(decider, batch_articles=2) as intake:
        with pytest.raises(EsdedupError, match="the disk is full"):
            await answer()


async def test_small_requests_are_accepted_despite_a_large_one() -> None:
    decider = Decider()
    large = [f"l{number}" for number in range(1_000)]
    async with intake_of(decider, batch_articles=200, waiting_articles=250) as intake:
        with busy(decider):
            greedy = await begun(intake, *large, caller="greedy")
            with pytest.raises(Refused) as refused:
                await assign(intake, articles("g"), "greedy")
            others = [await begun(intake, *texts, caller=texts[0]) for texts in ("a", "b")]
            others.append(await begun(intake, "c", "d", caller="a"))
        assert await greedy == [text.upper() for text in large]
        await asyncio.gather(*others)
    batches = decider.batches
    # The first batch was formed before the other requests arrived.
    assert {"a", "b"} <= set(batches[1])
    assert {"c", "d"} <= {*batches[1], *batches[2]}
    assert [text for batch in batches for text in batch if text[0] == "l"] == large
    assert refused.value.retry_after_s in {1, 2}


@pytest.mark.parametrize(("count", "waits_s"), [(100, {1, 2}), (12_000, {3, 4, 5, 6})])
async def test_a_longer_queue_means_a_later_retry(count: int, waits_s: set[int]) -> None:
    decider, found = Decider(), set()
    async with intake_of(decider, waiting_articles=10) as intake:
        with busy(decider):
            first = await begun(intake, *["a"] * count)
            for _ in range(100):
                with pytest.raises(Refused) as refused:
                    await assign(intake, articles("b"))
                found.add(refused.value.retry_after_s)
        await first
    assert found == waits_s

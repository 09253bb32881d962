"""Articles of many requests become batches; callers take turns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Hashable, Iterator, Sequence

import pytest
from esdedup.ingest.actions import ArticleAction
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import EsdedupError
from esdedup.serving.refusals import Refused
from esdedup.sidecar.batcher import Batcher, BatchLimits
from esdedup.sidecar.metrics import Metrics


class Decider:
    """Answers with the text of each article in capitals, as its routing, and keeps the batches."""

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
    """Run a batcher; when it has been closed, it decides what it has accepted."""
    intake = Batcher(decider, limits=BatchLimits(**limits), metrics=metrics or Metrics())
    running = asyncio.create_task(intake.run())
    yield intake
    intake.close()
    await running


@contextlib.contextmanager
def busy(decider: Decider) -> Iterator[None]:
    """Let an owner decide nothing meanwhile."""
    decider.free.clear()
    yield
    decider.free.set()


def waiting(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("esdedup_queue_articles")


async def assign(intake: Batcher, articles: Sequence[ArticleAction], caller: Hashable = None) -> list[str]:
    async with intake.assigning(articles, caller):
        pass
    return said(articles)


def said(articles: Sequence[ArticleAction]) -> list[str]:
    return [each.routing for each in articles if each.routing is not None]


def article(text: str) -> ArticleAction:
    return ArticleAction(action={}, name=text, text=text, dated_ms=None)


def articles(*texts: str) -> list[ArticleAction]:
    return list(map(article, texts))


async def begun(intake: Batcher, *texts: str, caller: Hashable = None) -> asyncio.Task[list[str]]:
    """Begin to assign the articles of a request, and let them wait."""
    task = asyncio.create_task(assign(intake, articles(*texts), caller))
    await asyncio.sleep(0.01)
    return task


@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=5), max_size=7), max_size=8), st.integers(1, 5))
def test_every_request_gets_its_own_answers_in_order(requests: list[list[str]], size: int) -> None:
    decider, metrics = Decider(), Metrics()

    async def run() -> None:
        async with intake_of(decider, metrics, batch_articles=size, batch_characters=12) as intake:
            answers = await asyncio.gather(*(assign(intake, articles(*texts)) for texts in requests))
            assert answers == [[text.upper() for text in texts] for texts in requests]

    asyncio.run(run())
    assert waiting(metrics) == 0
    # Requests take turns; each keeps its order, as its answers show.
    decided = [text for batch in decider.batches for text in batch]
    assert sorted(decided) == sorted(text for texts in requests for text in texts)
    assert all(len(batch) <= size for batch in decider.batches)
    assert all(sum(map(len, batch[:-1])) < 12 for batch in decider.batches)


async def test_arrivals_during_a_busy_owner_make_one_batch() -> None:
    decider = Decider()
    async with intake_of(decider) as intake:
        with busy(decider):
            requests = [await begun(intake, text) for text in "abcd"]
        await asyncio.gather(*requests)
    assert decider.batches == [["a"], ["b", "c", "d"]]


async def test_a_failure_reaches_only_requests_of_its_batch() -> None:
    decider = Decider()
    decider.error = EsdedupError("the forest is away")
    async with intake_of(decider, batch_articles=2) as intake:
        given = [assign(intake, articles(*texts)) for texts in ("a", "bcd", "e")]
        first, second, third = await asyncio.gather(*given, return_exceptions=True)
    assert str(first) == str(second) == "the forest is away"
    assert third == ["E"]
    # The rest of the request that has failed is decided for nobody.
    assert decider.batches == [["a", "b"], ["e"]]


async def test_one_request_alone_may_exceed_the_bounds() -> None:
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


async def test_the_next_batch_is_decided_while_one_is_written() -> None:
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


async def test_a_request_whose_client_has_gone_is_not_decided() -> None:
    decider, metrics = Decider(), Metrics()
    async with intake_of(decider, metrics) as intake:
        with busy(decider):
            first, gone, last = [await begun(intake, text) for text in "abc"]
            gone.cancel()
        await asyncio.gather(first, last)
    assert waiting(metrics) == 0
    assert decider.batches == [["a"], ["c"]]


async def test_what_is_decided_is_known_while_it_is_written() -> None:
    decider, given = Decider(), articles("a", "b", "c")
    decider.writes.clear()

    async def answer() -> None:
        async with intake.assigning(given):
            assert said(given) == ["A", "B", "C"]
            assert not decider.writes.is_set()
            decider.write_error = EsdedupError("the disk is full")
            asyncio.get_running_loop().call_later(0.01, decider.writes.set)
            with pytest.raises(EsdedupError, match="the disk is full"):
                await assign(intake, articles("d"))

    async with intake_of(decider, batch_articles=2) as intake:
        with pytest.raises(EsdedupError, match="the disk is full"):
            await answer()


async def test_callers_take_turns_and_small_ones_are_accepted() -> None:
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
    # The first batch was taken before the others came.
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

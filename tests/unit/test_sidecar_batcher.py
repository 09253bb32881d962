"""Articles of many requests become batches; callers take turns."""

import asyncio
from collections.abc import Awaitable, Hashable, Sequence

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


def intake_of(decider: Decider, *, limits: BatchLimits, metrics: Metrics | None = None) -> Batcher:
    return Batcher(decider, limits=limits, metrics=metrics or Metrics())


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


@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=5), max_size=7), max_size=8), st.integers(1, 5))
def test_every_request_gets_its_own_answers_in_order(requests: list[list[str]], size: int) -> None:
    async def run() -> Decider:
        decider = Decider()
        metrics = Metrics()
        intake = intake_of(
            decider, limits=BatchLimits(batch_articles=size, batch_characters=12), metrics=metrics
        )
        running = asyncio.create_task(intake.run())
        answers = await asyncio.gather(*(assign(intake, articles(*texts)) for texts in requests))
        assert answers == [[text.upper() for text in texts] for texts in requests]
        intake.close()
        await running
        assert waiting(metrics) == 0
        return decider

    decider = asyncio.run(run())
    # Requests take turns; each keeps its order, as its answers show.
    decided = [text for batch in decider.batches for text in batch]
    assert sorted(decided) == sorted(text for texts in requests for text in texts)
    assert all(len(batch) <= size for batch in decider.batches)
    assert all(sum(map(len, batch[:-1])) < 12 for batch in decider.batches)


def test_arrivals_during_a_busy_owner_make_one_batch() -> None:
    async def run() -> list[list[str]]:
        decider = Decider()
        decider.free.clear()
        intake = intake_of(decider, limits=BatchLimits())
        running = asyncio.create_task(intake.run())
        first = asyncio.create_task(assign(intake, articles("a")))
        await asyncio.sleep(0.01)
        others = [asyncio.create_task(assign(intake, articles(text))) for text in "bcd"]
        await asyncio.sleep(0.01)
        decider.free.set()
        await asyncio.gather(first, *others)
        intake.close()
        await running
        return decider.batches

    assert asyncio.run(run()) == [["a"], ["b", "c", "d"]]


def test_a_failure_reaches_only_requests_of_its_batch() -> None:
    async def run() -> list[object]:
        decider = Decider()
        decider.error = EsdedupError("the forest is away")
        intake = intake_of(decider, limits=BatchLimits(batch_articles=2))
        running = asyncio.create_task(intake.run())
        outcomes = await asyncio.gather(
            assign(intake, articles("a")),
            assign(intake, articles("b", "c", "d")),
            assign(intake, articles("e")),
            return_exceptions=True,
        )
        intake.close()
        await running
        # The rest of the request that has failed is decided for nobody.
        assert decider.batches == [["a", "b"], ["e"]]
        return list(outcomes)

    first, second, third = asyncio.run(run())
    assert str(first) == str(second) == "the forest is away"
    assert third == ["E"]


def test_one_request_alone_may_exceed_the_bounds() -> None:
    async def run() -> None:
        decider = Decider()
        decider.free.clear()
        intake = intake_of(decider, limits=BatchLimits(waiting_articles=2))
        running = asyncio.create_task(intake.run())
        large = asyncio.create_task(assign(intake, articles("a", "b", "c")))
        await asyncio.sleep(0.01)
        with pytest.raises(Refused, match="3 articles wait to be assigned, and no more than 2 may"):
            await assign(intake, articles("d"))
        decider.free.set()
        assert await large == ["A", "B", "C"]
        assert await assign(intake, articles("d")) == ["D"]
        intake.close()
        with pytest.raises(Refused, match="is ending"):
            await assign(intake, articles("e"))
        await running

    asyncio.run(run())


def test_the_next_batch_is_decided_while_one_is_written() -> None:
    async def run() -> None:
        decider = Decider()
        decider.writes.clear()
        intake = intake_of(decider, limits=BatchLimits())
        running = asyncio.create_task(intake.run())
        first = asyncio.create_task(assign(intake, articles("a")))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(assign(intake, articles("b")))
        await asyncio.sleep(0.01)
        assert decider.batches == [["a"], ["b"]]
        assert not first.done()
        intake.close()
        decider.write_error = EsdedupError("cannot be written")
        decider.writes.set()
        for each in (first, second):
            with pytest.raises(EsdedupError, match="cannot be written"):
                await each
        await running

    asyncio.run(run())


def test_a_request_whose_client_has_gone_is_not_decided() -> None:
    async def run() -> list[list[str]]:
        decider = Decider()
        decider.free.clear()
        metrics = Metrics()
        intake = intake_of(decider, limits=BatchLimits(), metrics=metrics)
        running = asyncio.create_task(intake.run())
        first = asyncio.create_task(assign(intake, articles("a")))
        await asyncio.sleep(0.01)
        gone, last = (asyncio.create_task(assign(intake, articles(text))) for text in "bc")
        await asyncio.sleep(0.01)
        gone.cancel()
        decider.free.set()
        await asyncio.gather(first, last)
        intake.close()
        await running
        assert waiting(metrics) == 0
        return decider.batches

    assert asyncio.run(run()) == [["a"], ["c"]]


def test_what_is_decided_is_known_while_it_is_written() -> None:
    async def run() -> None:
        decider = Decider()
        decider.writes.clear()
        intake = intake_of(decider, limits=BatchLimits(batch_articles=2))
        running = asyncio.create_task(intake.run())
        given = articles("a", "b", "c")
        async with intake.assigning(given):
            assert said(given) == ["A", "B", "C"]
            assert not decider.writes.is_set()
            decider.write_error = EsdedupError("the disk is full")
            asyncio.get_running_loop().call_later(0.01, decider.writes.set)
            with pytest.raises(EsdedupError, match="the disk is full"):
                await assign(intake, articles("d"))
        intake.close()
        await running

    with pytest.raises(EsdedupError, match="the disk is full"):
        asyncio.run(run())


def test_callers_take_turns_and_small_ones_are_accepted() -> None:
    async def run() -> tuple[list[list[str]], int | None]:
        decider = Decider()
        decider.free.clear()
        limits = BatchLimits(batch_articles=200, waiting_articles=250)
        intake = intake_of(decider, limits=limits)
        running = asyncio.create_task(intake.run())
        large = [f"l{number}" for number in range(1_000)]
        greedy = asyncio.create_task(assign(intake, articles(*large), "greedy"))
        await asyncio.sleep(0.01)
        with pytest.raises(Refused) as refused:
            await assign(intake, articles("g"), "greedy")
        others = [asyncio.create_task(assign(intake, articles(name), name)) for name in "ab"]
        more = [asyncio.create_task(assign(intake, articles(*"cd"), "a"))]
        await asyncio.sleep(0.01)
        decider.free.set()
        assert await greedy == [text.upper() for text in large]
        await asyncio.gather(*others, *more)
        intake.close()
        await running
        return decider.batches, refused.value.retry_after_s

    batches, retry_after_s = asyncio.run(run())
    # The first batch was taken before the others came.
    assert {"a", "b"} <= set(batches[1])
    assert {"c", "d"} <= {*batches[1], *batches[2]}
    assert [text for batch in batches for text in batch if text[0] == "l"] == [
        f"l{number}" for number in range(1_000)
    ]
    assert retry_after_s in {1, 2}


def test_a_longer_queue_means_a_later_retry() -> None:
    async def waits_s(articles_waiting: int) -> set[int | None]:
        decider = Decider()
        decider.free.clear()
        intake = intake_of(decider, limits=BatchLimits(waiting_articles=10))
        running = asyncio.create_task(intake.run())
        first = asyncio.create_task(assign(intake, [article("a")] * articles_waiting))
        await asyncio.sleep(0.01)
        found = set()
        for _ in range(100):
            with pytest.raises(Refused) as refused:
                await assign(intake, articles("b"))
            found.add(refused.value.retry_after_s)
        decider.free.set()
        await first
        intake.close()
        await running
        return found

    assert asyncio.run(waits_s(100)) == {1, 2}
    assert asyncio.run(waits_s(12_000)) == {3, 4, 5, 6}

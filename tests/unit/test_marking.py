"""Pages do not block the event loop, and visitors need not wait while learned boilerplate is read."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch
from fastapi import Request

from esdedup.elastic.execute import execute_async
from esdedup.elastic.requests import ReadClock, Requests
from esdedup.errors import ForestMissing
from esdedup.reading.reader import AsyncReader
from esdedup.reading.results import FullArticle
from esdedup.text.left_out import LeftOut
from esdedup.times import zone_named
from esdedup.web import context, shown_text
from esdedup.web.context import Context, Marking
from esdedup.web.shown_text import Piece

FOUND = LeftOut(passages=0, letters=0, of_passages=1, of_letters=8, spans=())


class Reader:
    """A fake reader that waits until a test lets it read the learned boilerplate."""

    def __init__(self) -> None:
        self.is_free = asyncio.Event()
        self.asked: list[tuple[str, str | None, bool]] = []
        self.error: Exception | None = None

    async def left_out(self, text: str, *, site: str | None = None, is_fresh: bool = True) -> LeftOut:
        self.asked.append((text, site, is_fresh))
        if is_fresh:
            await self.is_free.wait()
            if self.error:
                raise self.error
        return FOUND


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_LONGEST_WAIT_S", 0.01)


@pytest.mark.usefixtures("short_waits")
async def test_visitors_do_not_wait_for_a_loading_forest() -> None:
    reader = Reader()
    marks = Marking(cast("AsyncReader", reader))
    unknown = await asyncio.gather(*(marks.left_out("some text", site="a.example") for _ in range(5)))
    assert set(unknown) == {"the learned boilerplate is being read; try again in a moment"}
    assert reader.asked == [("", None, True)]
    reader.is_free.set()
    found = await asyncio.gather(*(marks.left_out("some text", site="a.example") for _ in range(5)))
    assert all(each is FOUND for each in found)
    # The forest is not read again within a second.
    assert reader.asked[1:] == [("some text", "a.example", False)] * 5


@pytest.mark.usefixtures("short_waits")
async def test_known_boilerplate_is_used_while_more_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "REFRESH_INTERVAL_S", 0.0)
    reader = Reader()
    marks = Marking(cast("AsyncReader", reader))
    reader.is_free.set()
    assert await marks.left_out("some text", site="a.example") is FOUND
    reader.is_free.clear()
    assert await marks.left_out("some text", site="a.example") is FOUND
    reader.is_free.set()
    reader.error = ForestMissing("there is no forest", forest="f")
    await asyncio.sleep(0)
    assert await marks.left_out("some text", site="a.example") == "there is no forest"
    reader.error = None
    assert await marks.left_out("some text", site="a.example") is FOUND
    reader.is_free.clear()
    marks.begin()
    await marks.end()


# The test waits this long only if the event loop is blocked.
_PATIENCE_S = 5.0
ARTICLE = FullArticle(
    id="1", index="news", title=None, source=None, published_at=None, url=None, root=None, text="some text"
)


_READER = cast("AsyncReader", None)


class _Marking(Marking):
    async def left_out(self, text: str, *, site: str | None) -> LeftOut | str:
        return "not known"


def loop_runs_during(started: Callable[[Callable[[], bool]], Awaitable[Any]]) -> bool:
    """Return whether the event loop runs while the work passed to `started` is done."""
    loop_has_run = threading.Event()

    async def run_in_loop() -> None:
        loop_has_run.set()

    async def both() -> tuple[Any, None]:
        return await asyncio.gather(started(lambda: loop_has_run.wait(_PATIENCE_S)), run_in_loop())

    return bool(asyncio.run(both())[0])


def test_operations_do_not_block_the_event_loop() -> None:
    async def started(work: Callable[[], bool]) -> bool:
        def operation() -> Requests[bool]:
            is_free = work()
            yield ReadClock()
            return is_free

        async with AsyncElasticsearch("http://127.0.0.1:9") as client:
            return await execute_async(client, operation())

    assert loop_runs_during(started)


def test_comparing_texts_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def started(work: Callable[[], bool]) -> bool:
        seen: list[bool] = []

        def compare(*_: str) -> list[Piece]:
            seen.append(work())
            return []

        monkeypatch.setattr(shown_text, "differences", compare)
        visit = Context(
            request=Request({"type": "http"}),
            reader=_READER,
            index="news",
            marking=_Marking(_READER),
            default_zone=zone_named("UTC"),
        )
        await shown_text.shown_text(visit, ARTICLE, ARTICLE)
        return seen == [True]

    assert loop_runs_during(started)

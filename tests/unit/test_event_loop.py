"""The event loop goes on while texts are fingerprinted, compared and shown."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from esdedup.elastic.execute import execute_async
from esdedup.elastic.requests import ReadClock, Requests
from esdedup.reading.reader import AsyncReader
from esdedup.reading.results import FullArticle
from esdedup.text.left_out import LeftOut
from esdedup.web import shown_text
from esdedup.web.shown_text import Piece
from esdedup.web.site import Marking, Site

# Only a stopped event loop makes the test wait so long.
_PATIENCE_S = 5.0
ARTICLE = FullArticle(
    id="1", index="news", title=None, source=None, published_at=None, url=None, root=None, text="some text"
)


_READER = cast("AsyncReader", None)


class _Marking(Marking):
    """Knows nothing."""

    async def left_out(self, text: str, *, site: str | None) -> LeftOut | str:
        return "not known"


def has_gone_on(started: Callable[[Callable[[], bool]], Awaitable[Any]]) -> bool:
    """Return whether the event loop runs while the work that `started` gets is done."""
    gone_on = threading.Event()

    async def beside() -> None:
        gone_on.set()

    async def both() -> tuple[Any, None]:
        return await asyncio.gather(started(lambda: gone_on.wait(_PATIENCE_S)), beside())

    return bool(asyncio.run(both())[0])


def test_an_operation_computes_beside_the_event_loop() -> None:
    async def started(work: Callable[[], bool]) -> bool:
        def operation() -> Requests[bool]:
            is_free = work()
            yield ReadClock()
            return is_free

        async with AsyncElasticsearch("http://127.0.0.1:9") as client:
            return await execute_async(client, operation())

    assert has_gone_on(started)


def test_a_page_compares_texts_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def started(work: Callable[[], bool]) -> bool:
        seen: list[bool] = []

        def compare(*_: str) -> list[Piece]:
            seen.append(work())
            return []

        monkeypatch.setattr(shown_text, "differences", compare)
        await shown_text.shown_text(
            Site(reader=_READER, index="news", marking=_Marking(_READER)), ARTICLE, ARTICLE
        )
        return seen == [True]

    assert has_gone_on(started)

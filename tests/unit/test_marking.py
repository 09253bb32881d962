"""Pages do not wait for what a forest has learned, and ask for it once for all visitors."""

import asyncio
from typing import cast

import pytest

from esdedup.errors import ForestMissing
from esdedup.reading.reader import AsyncReader
from esdedup.text.left_out import LeftOut
from esdedup.web import site
from esdedup.web.site import Marking

FOUND = LeftOut(passages=0, letters=0, of_passages=1, of_letters=8, spans=())


class Reader:
    """Reads what has been learned when it is allowed to."""

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
    monkeypatch.setattr(site, "_LONGEST_WAIT_S", 0.01)


@pytest.mark.usefixtures("short_waits")
def test_visitors_do_not_wait_for_a_forest_that_is_being_read() -> None:
    async def visits() -> None:
        reader = Reader()
        marks = Marking(cast("AsyncReader", reader))
        unknown = await asyncio.gather(*(marks.left_out("some text", site="a.example") for _ in range(5)))
        assert set(unknown) == {"what the forest has learned is being read; try again in a moment"}
        assert reader.asked == [("", None, True)]
        reader.is_free.set()
        found = await asyncio.gather(*(marks.left_out("some text", site="a.example") for _ in range(5)))
        assert all(each is FOUND for each in found)
        # The forest is not asked for more within a second.
        assert reader.asked[1:] == [("some text", "a.example", False)] * 5

    asyncio.run(visits())


@pytest.mark.usefixtures("short_waits")
def test_what_was_known_counts_while_more_is_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "_UPDATE_INTERVAL_S", 0.0)

    async def visits() -> None:
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

    asyncio.run(visits())

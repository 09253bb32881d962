"""The context of a request: the served index, its reader, the time zone, the editor.

What the forest has learned is read in the background, so that visitors need not wait for it.
"""

import asyncio
import contextlib
import dataclasses
import time
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Depends, Request

from esdedup.errors import EsdedupError, SettingError
from esdedup.maintenance.editor import AsyncEditor
from esdedup.messages import translatable
from esdedup.reading.reader import AsyncReader
from esdedup.reading.results import FullArticle
from esdedup.reading.scope import LANGUAGE_FIELDS
from esdedup.text.left_out import LeftOut
from esdedup.times import zone_named

# The first read takes many seconds for a large forest.
_LONGEST_WAIT_S = 1.0
# As often as Elasticsearch refreshes an index by itself.
_UPDATE_INTERVAL_S = 1.0
# Concurrent exports; more are refused.
_MOST_EXPORTS = 2
ZONE_COOKIE = "esdedup_time_zone"
_IS_BEING_READ = translatable("what the forest has learned is being read; try again in a moment")


class Marking:
    """Finds boilerplate in texts, by what the forest has learned."""

    def __init__(self, reader: AsyncReader) -> None:
        self._reader = reader
        # Reads what was learned since the last time, for all visitors; and when it started.
        self._update: asyncio.Task[None] | None = None
        self._began_s = 0.0
        # Why nothing is known; None if all is.
        self._unknown: str | None = _IS_BEING_READ

    def begin(self) -> asyncio.Task[None]:
        """Start to read what has been learned."""
        self._began_s = time.monotonic()
        self._update = asyncio.create_task(self._update_copy())
        return self._update

    async def end(self) -> None:
        """Stop reading."""
        if self._update is not None:
            self._update.cancel()
            await asyncio.wait([self._update])

    async def left_out(self, text: str, *, site: str | None) -> LeftOut | str:
        """Return the boilerplate in the raw text of an article of a site, or why it is unknown."""
        update = self._update
        is_due = time.monotonic() - self._began_s >= _UPDATE_INTERVAL_S
        if update is None or (update.done() and is_due):
            update = self.begin()
        await asyncio.wait([update], timeout=_LONGEST_WAIT_S)
        if self._unknown is not None:
            return self._unknown
        try:
            return await self._reader.left_out(text, site=site, is_fresh=False)
        except EsdedupError as error:
            return _reason(error)

    async def _update_copy(self) -> None:
        try:
            await self._reader.left_out("")
            self._unknown = None
        except EsdedupError as error:
            self._unknown = _reason(error)


class FreshMarking(Marking):
    """A `Marking` for a single caller: asks the forest for each text, without a background task."""

    async def left_out(self, text: str, *, site: str | None) -> LeftOut | str:
        """Return the boilerplate in a text, as `Marking` does."""
        try:
            return await self._reader.left_out(text, site=site)
        except EsdedupError as error:
            return _reason(error)


def _reason(error: EsdedupError) -> str:
    """Return the first sentence of an error; the advice after it is not for visitors."""
    return str(error).partition(". ")[0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EditorAccess:
    """Merges and splits stories for those whom a proxy names in a header."""

    editor: AsyncEditor
    header: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Context:
    """The served index, its reader, and the visitor's settings, for one request."""

    reader: AsyncReader
    index: str
    marking: Marking
    # Held during an export, which takes long, so that pages are still served.
    exports: asyncio.Semaphore = dataclasses.field(default_factory=lambda: asyncio.Semaphore(_MOST_EXPORTS))
    # None: nobody may edit stories here.
    editing: EditorAccess | None = None
    # The field with the address of an article's picture; None: the list has no pictures.
    thumbnail_field: str | None = None
    # For days, and times without a zone: the application's zone, or the one that a request names.
    zone: ZoneInfo = ZoneInfo("UTC")  # noqa: RUF009 - immutable
    # Of a request: the prefix of all paths, and the editor's name; None for other visitors.
    prefix: str = ""
    editor: str | None = None

    async def article(self, article_id: str, *, in_index: str | None = None) -> FullArticle:
        """Return an article as its pages show it, with the language that it names."""
        return await self.reader.article(
            self.index, article_id, in_index=in_index, source_includes=LANGUAGE_FIELDS
        )


def context_of(request: Request) -> Context:
    """Return the context of a request: the served index, the time zone, the prefix and the editor."""
    context: Context = request.app.state.context_of(request)
    named = "" if context.editing is None else request.headers.get(context.editing.header, "")
    return dataclasses.replace(
        context,
        zone=_zone_named_by(request) or context.zone,
        prefix=request.scope.get("root_path", ""),
        # Headers are read as Latin-1, and proxies write UTF-8.
        editor=named.encode("latin-1").decode("utf-8", "replace").strip() or None,
    )


def _zone_named_by(request: Request) -> ZoneInfo | None:
    """Return the time zone in the query, else the one in the cookie, if either is valid."""
    for name in (request.query_params.get("time_zone"), request.cookies.get(ZONE_COOKIE)):
        with contextlib.suppress(SettingError):
            if name:
                return zone_named(name)
    return None


async def _current(request: Request) -> Context:
    # FastAPI would call a function that is not async in a thread.
    return context_of(request)


ContextDep = Annotated[Context, Depends(_current)]

"""The context of a request: the index, its reader, the time zone and the editor.

Learned boilerplate is read in the background, so that visitors need not wait for it.
"""

import asyncio
import contextlib
import dataclasses
import functools
import re
import time
from typing import Annotated, cast
from zoneinfo import ZoneInfo

from fastapi import Depends, Request

from esdedup.errors import EsdedupError, SettingError
from esdedup.forest.stories import Edit
from esdedup.maintenance.editor import AsyncEditor
from esdedup.messages import translatable
from esdedup.reading.reader import REFRESH_INTERVAL_S, AsyncReader
from esdedup.reading.results import FullArticle
from esdedup.reading.scope import LANGUAGE_FIELDS
from esdedup.text.left_out import LeftOut
from esdedup.times import zone_named

# How long a visitor waits for an update; the first update takes many seconds for a large forest.
_LONGEST_WAIT_S = 1.0
NOTICE_FIELDS = ("edited", "moved", "same")
"""The parameters with which pages report an edit: its number, and the numbers of articles."""
_NUMBER = re.compile("[0-9]{1,9}")
ZONE_COOKIE = "esdedup_time_zone"
_IS_BEING_READ = translatable("the learned boilerplate is being read; try again in a moment")


class Marking:
    """Finds the forest's learned boilerplate in texts."""

    def __init__(self, reader: AsyncReader) -> None:
        self._reader = reader
        # The last update of the learned boilerplate, for all visitors, and when it started.
        self._update: asyncio.Task[None] | None = None
        self._began_s = 0.0
        # The reason why boilerplate is unknown; None if it is known.
        self._unknown: str | None = _IS_BEING_READ

    def begin(self) -> asyncio.Task[None]:
        """Start to update the learned boilerplate."""
        self._began_s = time.monotonic()
        self._update = asyncio.create_task(self._update_copy())
        return self._update

    async def end(self) -> None:
        """Stop the update."""
        if self._update is not None:
            self._update.cancel()
            await asyncio.wait([self._update])

    async def left_out(self, text: str, *, site: str | None) -> LeftOut | str:
        """Return the boilerplate in an article's raw text, or the reason why it is unknown."""
        update = self._update
        is_due = time.monotonic() - self._began_s >= REFRESH_INTERVAL_S
        if update is None or (update.done() and is_due):
            update = self.begin()
        await asyncio.wait([update], timeout=_LONGEST_WAIT_S)
        return self._unknown or await self._ask(text, site=site, is_fresh=False)

    async def _update_copy(self) -> None:
        found = await self._ask("", site=None, is_fresh=True)
        self._unknown = found if isinstance(found, str) else None

    async def _ask(self, text: str, *, site: str | None, is_fresh: bool) -> LeftOut | str:
        try:
            return await self._reader.left_out(text, site=site, is_fresh=is_fresh)
        except EsdedupError as error:
            # Return the first sentence; the advice after it is not for visitors.
            return str(error).partition(". ")[0]


class FreshMarking(Marking):
    """A `Marking` for a single caller: it reads the forest for each text, without a background task."""

    async def left_out(self, text: str, *, site: str | None) -> LeftOut | str:
        """Return the boilerplate in a text, as `Marking` does."""
        return await self._ask(text, site=site, is_fresh=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notice:
    """What a page reports about an edit that was just made."""

    edit: Edit
    is_undone: bool
    # The number of articles that got another story, and how many of them have the same text as those named.
    moved: int
    same_text: int
    # For an undo: the edit that was undone or, by an undo of its undo, is in effect again.
    of: int
    is_again: bool
    # How many edits after that one are in effect.
    later: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Context:
    """A request, the index that is shown, and its reader."""

    request: Request
    reader: AsyncReader
    index: str
    marking: Marking
    # Edits stories for editors whom a proxy names in a header; None disables editing.
    stories: AsyncEditor | None = None
    editor_header: str | None = None
    # The field with the address of an article's picture; None shows no pictures.
    thumbnail_field: str | None = None
    # The zone for requests that do not name a valid zone.
    default_zone: ZoneInfo

    @functools.cached_property
    def zone(self) -> ZoneInfo:
        """The zone in which days begin and times are shown: from the query, the cookie, or the default."""
        for name in (self.request.query_params.get("time_zone"), self.request.cookies.get(ZONE_COOKIE)):
            with contextlib.suppress(SettingError):
                if name:
                    return zone_named(name)
        return self.default_zone

    @property
    def prefix(self) -> str:
        """The prefix of all paths."""
        return str(self.request.scope.get("root_path", ""))

    @functools.cached_property
    def editor(self) -> str | None:
        """The editor's name; None if the visitor is not an editor."""
        named = "" if self.editor_header is None else self.request.headers.get(self.editor_header, "")
        # Headers are decoded as Latin-1, but proxies write UTF-8.
        return named.encode("latin-1").decode("utf-8", "replace").strip() or None

    async def notice(self) -> Notice | None:
        """Return the edit that the page's address names; None if it names none, and for other visitors."""
        given = [self.request.query_params.get(name, "") for name in NOTICE_FIELDS]
        if self.stories is None or self.editor is None or not all(map(_NUMBER.fullmatch, given)):
            return None
        number, moved, same_text = map(int, given)
        history = await self.stories.history(self.index)
        edit = next((each for each in history.edits if each.number == number), None)
        if edit is None:
            return None
        of, undone = edit, history.undone
        while of.undoes is not None:
            of = history.edits[of.undoes - 1]
        return Notice(
            edit=edit,
            is_undone=number in undone,
            moved=moved,
            same_text=same_text,
            of=of.number,
            is_again=of is not edit and of.number not in undone,
            later=sum(
                each.undoes is None and each.number not in undone for each in history.edits[of.number :]
            ),
        )

    async def names(self) -> dict[str, Edit]:
        """Return the edits that named stories, by story; empty if stories cannot be edited."""
        with contextlib.suppress(EsdedupError):
            if self.stories is not None:
                return await self.stories.names(self.index)
        return {}

    async def article(self, article_id: str, *, in_index: str | None = None) -> FullArticle:
        """Return an article for its page, including its language fields."""
        return await self.reader.article(
            self.index, article_id, in_index=in_index, source_includes=LANGUAGE_FIELDS
        )


async def _context(request: Request) -> Context:
    # This is async because FastAPI would call a plain function in a thread.
    return cast(Context, request.app.state.context_of(request))


ContextDep = Annotated[Context, Depends(_context)]

"""Pages of results by number or by cursor, and their limits.

A cursor is a string that says where the next page begins. Clients send it back; the server keeps no state.
"""

import base64
import binascii
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any

from esdedup.elastic import limits
from esdedup.errors import PageTooDeep, SettingError

MAX_SIZE = 1_000
"""The maximum number of rows, articles or sources on one page."""

MAX_INCLUDED = 20
"""The maximum number of further fields that a request may include."""

# Parameters that operations share are documented in their types.
PageNumber = Annotated[int, "The page's number, from 1; `page` times `size` is at most 10,000."]
PageSize = Annotated[int, "Results on a page, at most 1,000."]
After = Annotated[
    str | None,
    "The cursor `next` of the previous page, in place of `page`; cursors reach any depth.",
]
SourceIncludes = Annotated[
    Sequence[str], "Names of further fields to return in each article's `included`; at most 20."
]

_INVALID = "that is not a valid cursor: pass `next` of the previous page unchanged"
# Elasticsearch's numbers have 64 bits; the extreme values stand for an article without a time.
_BEYOND = 2**63


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cursor:
    """The position at which a page begins."""

    # The number of the page, from 1.
    page: int = 1
    # How many rows come before the page.
    offset: int = 0
    # The sort values of the last row before the page; None if the page is found by its offset.
    place: list[Any] | None = None

    @property
    def position(self) -> dict[str, Any]:
        """The part of a search body that makes the search begin here."""
        return {"from": self.offset} if self.place is None else {"search_after": self.place}

    def next(self, *, rows: int, place: list[Any] | None) -> "Cursor":
        """Return where the next page begins, after a page of `rows` rows that ends at `place`."""
        return Cursor(page=self.page + 1, offset=self.offset + rows, place=place)

    def write(self, identity: Sequence[Any]) -> str:
        """Return the cursor as a string; `identity` contains the JSON values that identify the list."""
        values = [_digest(identity), self.page, self.offset, self.place]
        return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, identity: Sequence[Any]) -> "Cursor":
        """Read a cursor that `write` returned for the same identity."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            digest, page, offset, place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (UnicodeError, binascii.Error, ValueError, TypeError, RecursionError) as error:
            raise SettingError(_INVALID) from error
        if digest != _digest(identity):
            raise SettingError(
                "that cursor belongs to another list: index, query, sort and options must be the same "
                "as for the previous page"
            )
        # The sort values: time, order of arrival, index.
        is_place = place is None or (isinstance(place, list) and list(map(type, place)) == [int, int, str])
        if type(page) is not int or type(offset) is not int or page < 1 or offset < 0 or not is_place:
            raise SettingError(_INVALID)
        if not all(-_BEYOND <= number < _BEYOND for number in (page, offset, *(place or [])[:2])):
            raise SettingError(_INVALID)
        return cls(page=page, offset=offset, place=place)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paging:
    """A page, requested by its number or by the previous page's cursor, and the fields to include."""

    page: int = 1
    size: int = 20
    after: str | None = None
    source_includes: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_names(self.source_includes)
        if not all(isinstance(number, int) for number in (self.page, self.size)):
            raise SettingError(f"page {self.page!r} of size {self.size!r}: both must be whole numbers")
        if self.page < 1 or self.size < 1:
            raise SettingError(f"page {self.page} of size {self.size}: both must be at least 1")
        if self.size > MAX_SIZE:
            raise SettingError(f"the page size is {self.size:,}; it may be at most {MAX_SIZE:,}")
        if self.after is not None and not isinstance(self.after, str):
            raise SettingError(f"the cursor is {self.after!r}, which is not a string")
        if self.after is not None and self.page != 1:
            raise SettingError("give a page number or a cursor, not both: the cursor includes its page")

    def start(self, identity: Sequence[Any], *, is_endless: bool) -> Cursor:
        """Return where the page begins; cursors may pass row 10,000 only if the list `is_endless`."""
        if self.after is None:
            start = Cursor(page=self.page, offset=(self.page - 1) * self.size)
            self._check_depth(start.offset + self.size, is_endless=is_endless)
            return start
        start = Cursor.read(self.after, identity)
        if start.place is None or not is_endless:
            self._check_depth(start.offset + 1, is_endless=is_endless)
        return start

    def _check_depth(self, last_row: int, *, is_endless: bool) -> None:
        if last_row <= limits.MAX_HITS:
            return
        instead = (
            "continue with the cursor `next` of a page, which has no such limit"
            if is_endless
            else "narrow the query, or sort by newest or oldest, whose cursors have no such limit"
        )
        raise PageTooDeep(
            f"the page ends at row {last_row:,}, and numbered pages end at row {limits.MAX_HITS:,}: {instead}"
        )


def check_names(names: Sequence[str]) -> None:
    """Raise `SettingError` unless the names of further fields are valid."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise SettingError("source_includes must be a list of names of fields")
    if len(names) > MAX_INCLUDED:
        raise SettingError(f"source_includes names {len(names):,} fields; at most {MAX_INCLUDED} are read")
    for name in names:
        if not all(name.split(".")) or "*" in name:
            raise SettingError(f"{name!r:.100} cannot name a field of source_includes: give its full name")


def _digest(identity: Sequence[Any]) -> str:
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=6).hexdigest()

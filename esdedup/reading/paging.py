"""Pages by number or cursor, and how deep they reach."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.elastic import limits
from esdedup.errors import PageTooDeep, SettingError
from esdedup.reading.cursor import Cursor

MAX_SIZE = 1_000
"""The most rows, articles or sources on one page."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paging:
    """A page by its number, or by the cursor of the page before it.

    Raises:
        SettingError: A number is out of range, the cursor is not a string, or both page and cursor are given.
    """

    # From 1.
    page: int
    size: int
    after: str | None = None

    def __post_init__(self) -> None:
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
        """Return where the page begins.

        Where cursors end at row 10,000, too, the last page is cut there.

        Args:
            identity: Identifies the list, as for `Cursor.write`.
            is_endless: Whether cursors may lead beyond row 10,000, where numbered pages end.

        Raises:
            PageTooDeep: The page ends beyond row 10,000.
            SettingError: The cursor is invalid or belongs to another list.
        """
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

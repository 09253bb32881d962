"""What a reader of the list may ask for, and which of it goes together."""

import dataclasses
from typing import Any, Literal, get_args

from esdedup.elastic import limits
from esdedup.elastic.requests import Query
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.cursor import Cursor
from esdedup.reading.queries import Order

Sort = Literal["relevance", "newest", "oldest", "similar-desc", "similar-asc"]
"""What a row's place follows from: its best match, its newest or oldest article, its count."""
Head = Literal["best", "newest", "earliest", "longest"]
"""Which article stands for a row."""
Counting = Literal["similar", "matching"]
"""Which count rows are sorted by: of the whole cluster, or of what matches the query."""
Only = Literal["similar", "single"]
"""Only rows with similar articles, or only those without."""

SORTS: tuple[Sort, ...] = get_args(Sort)
HEADS: tuple[Head, ...] = get_args(Head)
COUNTINGS: tuple[Counting, ...] = get_args(Counting)
ONLY: tuple[Only, ...] = get_args(Only)

_ORDER_OF_HEAD: dict[Head, Order] = {
    "best": "relevance",
    "newest": "newest",
    "earliest": "oldest",
    "longest": "longest",
}
_ORDER_OF_SORT: dict[Sort, Order] = {"relevance": "relevance", "oldest": "oldest"}
_HEAD_OF_SORT: dict[Sort, Head] = {"relevance": "best", "oldest": "earliest"}
MAX_SIZE = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListRequest:
    """A page of the list, as asked for.

    Raises:
        SettingError: A value is none of those there are, or two do not go together.
    """

    index: str
    fields: Fields
    query: Query | None
    sort: Sort
    # None: the article that the row's place comes from, or the newest.
    head: Head | None
    counting: Counting
    only: Only | None
    dedup: bool
    page: int
    size: int
    after: str | None

    def __post_init__(self) -> None:
        _check("sort", self.sort, SORTS)
        _check("head", self.head, (None, *HEADS))
        _check("counting", self.counting, COUNTINGS)
        _check("only", self.only, (None, *ONLY))
        if self.query is not None and not isinstance(self.query, dict):
            raise SettingError("the query must be a dict, as Elasticsearch takes it as JSON")
        check_paging(self.page, self.size, after=self.after)
        if self.only is not None and not self.is_by_time:
            raise SettingError(
                f"only={self.only!r} goes with the sorts newest and oldest; "
                "sort by similar-desc to see the rows with similar articles first"
            )
        if not self.dedup and (self.is_by_count or self.only or self.head):
            raise SettingError("with dedup off there are no clusters to sort by, to choose or to pick from")

    @property
    def is_by_time(self) -> bool:
        """Whether rows are sorted by time."""
        return self.sort in {"newest", "oldest"}

    @property
    def is_by_count(self) -> bool:
        """Whether rows are sorted by a count."""
        return self.sort.startswith("similar-")

    @property
    def order(self) -> Order:
        """The order of articles that rows follow; of rows by count, that of their heads."""
        return _ORDER_OF_SORT.get(self.sort, "newest")

    @property
    def order_of_heads(self) -> Order:
        """The order in which the head of a row comes first."""
        return _ORDER_OF_HEAD[self.head or _HEAD_OF_SORT.get(self.sort, "newest")]

    @property
    def begin(self) -> Cursor:
        """Where the page begins.

        Raises:
            SettingError: The cursor is none, or of another list; or the engine does not reach so far.
        """
        if self.after is not None:
            begin = Cursor.read(self.after, self._identity)
        else:
            begin = Cursor(page=self.page, offset=(self.page - 1) * self.size)
        if begin.place is None or not self.is_by_time:
            check_depth(begin.offset + self.size, can_go_on=self.is_by_time)
        return begin

    def cursor_after(self, begin: Cursor, *, rows: int, place: list[Any] | None) -> str:
        """Return the cursor of the page after one of so many rows."""
        following = Cursor(page=begin.page + 1, offset=begin.offset + rows, place=place)
        return following.write(self._identity)

    @property
    def _identity(self) -> list[Any]:
        return [self.index, self.query, self.sort, self.head, self.counting, self.only, self.dedup]


def check_paging(page: int, size: int, *, after: str | None) -> None:
    """Refuse pages that make no sense.

    Raises:
        SettingError: A number is out of its range, or page and cursor are both given.
    """
    if page < 1 or size < 1:
        raise SettingError(f"page {page} of size {size}: both must be at least 1")
    if size > MAX_SIZE:
        raise SettingError(f"a page of {size:,} rows: it may have {MAX_SIZE:,}")
    if after is not None and page != 1:
        raise SettingError("give a page's number or a cursor, not both: the cursor knows its page")


def check_depth(rows: int, *, can_go_on: bool) -> None:
    """Refuse what lies deeper than Elasticsearch goes.

    Raises:
        SettingError: It is not within the first 10,000 rows.
    """
    if rows > limits.MAX_HITS:
        instead = (
            "go on with the cursor `next` of a page, which knows no limit"
            if can_go_on
            else "narrow the query, or sort by newest or oldest, whose cursors know no limit"
        )
        raise SettingError(
            f"the page ends at row {rows:,}, and numbered pages end at row {limits.MAX_HITS:,}: {instead}"
        )


def _check(what: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        names = ", ".join(str(each) for each in known if each is not None)
        raise SettingError(f"there is no {what} {value!r}; there are {names}")

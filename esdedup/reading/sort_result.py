"""What a sort returns: the articles on a page, before their rows have counts."""

import dataclasses
from typing import Any

from esdedup.reading.hits import Hit


@dataclasses.dataclass(frozen=True, kw_only=True)
class SortResult:
    """The articles that a sort put on a page."""

    # One article for each row, in the order of the rows.
    hits: list[Hit]
    # The sort values of the last one, if the next page can start after them.
    place: list[Any] | None = None
    has_more: bool
    # Articles that match the query, on all pages.
    total_articles: int
    order_exact: bool = True
    # Whether reading stopped before the page was full, though there may be more rows.
    is_cut_short: bool = False
    # True if `hits` are the heads that rows show; false if they only decide the order of rows.
    are_heads: bool = False

"""The rows of a page, before their numbers are known."""

import dataclasses
from typing import Any

from esdedup.reading.hits import Hit


@dataclasses.dataclass(frozen=True, kw_only=True)
class SortResult:
    """What a sort found."""

    # An article of each row, in the order of the rows.
    rows: list[Hit]
    # The sort values of the last one, where the order can be read on from them.
    place: list[Any] | None = None
    has_more: bool
    # How many match, on whatever page.
    articles: int
    order_exact: bool = True
    # Whether `rows` are the heads that were asked for.
    are_heads: bool = False

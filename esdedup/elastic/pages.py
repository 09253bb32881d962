"""All hits of a search, however many, page by page, from one point in time."""

import dataclasses
from collections.abc import Callable
from typing import Any

from esdedup.elastic.requests import (
    POINT_KEEP_ALIVE,
    ClosePointInTime,
    OpenPointInTime,
    Query,
    Requests,
    search,
)

Hits = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """A page of hits, and where the next one begins."""

    hits: Hits
    index: str
    body: Query
    point: str
    # Whether there are no more hits; the point in time is closed then.
    is_last: bool


def first_page(index: str, body: Query) -> Requests[Page]:
    """Read the first page of a search.

    Args:
        index: An index, or several, separated by commas.
        body: The body of a search, with `sort`, and `size` as the hits per page.
    """
    point: str = yield OpenPointInTime(index=index)
    return (yield from _read(index, body, point, {}))


def next_page(page: Page) -> Requests[Page]:
    """Read the page after one that is not the last."""
    after = {"search_after": page.hits[-1]["sort"]}
    return (yield from _read(page.index, page.body, page.point, after))


def close(page: Page) -> Requests[None]:
    """Close the point in time; pages that have not been read are given up."""
    if not page.is_last:
        yield ClosePointInTime(index=page.index, point=page.point)


def all_hits(index: str, body: Query) -> Requests[Hits]:
    """Read every page of a search; return all hits. Parameters as for `first_page`."""
    hits: Hits = []
    yield from each_page(index, body, hits.extend)
    return hits


def each_page(index: str, body: Query, take: Callable[[Hits], None]) -> Requests[None]:
    """Read every page of a search, and have the hits of each taken. Parameters as for `first_page`."""
    page = yield from first_page(index, body)
    take(page.hits)
    while not page.is_last:
        page = yield from next_page(page)
        take(page.hits)


def _read(index: str, body: Query, point: str, after: Query) -> Requests[Page]:
    (answer,) = yield from search(
        index, {**body, "pit": {"id": point, "keep_alive": POINT_KEEP_ALIVE}, **after}
    )
    hits: Hits = answer["hits"]["hits"]
    page = Page(hits=hits, index=index, body=body, point=point, is_last=len(hits) < body["size"])
    if page.is_last:
        yield ClosePointInTime(index=index, point=point)
    return page

"""Reads all hits of a search in pages, from one point in time.

If the server restarts, a sorted search continues in another point in time, after the last hit read. Later
hits may then include documents that were written since the search began.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from esdedup.elastic.requests import (
    POINT_KEEP_ALIVE,
    ClosePointInTime,
    OpenPointInTime,
    Query,
    Requests,
    SearchPoint,
)
from esdedup.errors import EsdedupError, ServerError, ServerUnavailable

Hits = list[dict[str, Any]]

# Give up after losing more than this many points in time, since the server seems to lose all of them.
_MAX_LOSSES = 10
_ARBITRARY_ORDER = ["_doc"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Place:
    """The place up to which hits have been read."""

    # The sort values of the last hit, valid only in this point in time; None before its first hit.
    last: list[Any] | None = None
    # The sort values of the latest hit that differs from `last`, and the number of hits after that hit.
    before: list[Any] | None = None
    equal: int = 0

    def after(self, hits: Hits, width: int) -> "_Place":
        """Return the place after further hits; `width` is the number of values that the search sorts by."""
        if not hits:
            return self
        orders = [hit["sort"][:width] for hit in hits]
        equal = next((at for at, order in enumerate(reversed(orders)) if order != orders[-1]), len(orders))
        if equal < len(orders):
            before = orders[-equal - 1]
        elif self.last is None:
            before = self.before
        elif self.last[:width] == orders[-1]:
            before, equal = self.before, self.equal + equal
        else:
            before = self.last[:width]
        return _Place(last=hits[-1]["sort"], before=before, equal=equal)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """A page of hits, and the place where the next page begins."""

    hits: Hits
    index: str
    body: Query
    point: str
    place: _Place
    # Whether there are no more hits, so that the point in time has been closed.
    is_last: bool


def first_page(index: str, body: Query) -> Requests[Page]:
    """Read the first page of a search. `body` must have a `sort`, and the page's `size`."""
    point: str = yield OpenPointInTime(index=index)
    return (yield from _read(index, body, point, _Place()))


def next_page(page: Page) -> Requests[Page]:
    """Read the next page; `page` must not be the last one."""
    return (yield from _read(page.index, page.body, page.point, page.place))


def close(page: Page) -> Requests[None]:
    """End a search before its last page, by closing its point in time."""
    if not page.is_last:
        yield ClosePointInTime(index=page.index, point=page.point)


def all_hits(index: str, body: Query) -> Requests[Hits]:
    """Read every page of a search; return all hits. Parameters as for `first_page`."""
    hits: Hits = []
    yield from each_page(index, body, hits.extend)
    return hits


def each_page(index: str, body: Query, take: Callable[[Hits], None]) -> Requests[None]:
    """Read a search page by page; call `take` with the hits of each page. Parameters as for `first_page`."""
    page = yield from first_page(index, body)
    take(page.hits)
    while not page.is_last:
        page = yield from next_page(page)
        take(page.hits)


def _read(index: str, body: Query, point: str, start: _Place) -> Requests[Page]:
    """Read the page after a place; if that fails, close the point in time."""
    place, skipped, losses = start, 0, 0
    while True:
        after = place.before if place.last is None else place.last
        in_point = {**body, "pit": {"id": point, "keep_alive": POINT_KEEP_ALIVE}}
        try:
            answer = yield SearchPoint(
                index=index, body=in_point if after is None else {**in_point, "search_after": after}
            )
        except EsdedupError as error:
            # If the server has not answered, closing the point in time would wait for it again.
            if not isinstance(error, ServerError) or error.status is not None:
                with contextlib.suppress(EsdedupError):
                    yield ClosePointInTime(index=index, point=point)
            raise
        if answer is None:
            losses += 1
            if losses > _MAX_LOSSES or (start.last is not None and body["sort"] == _ARBITRARY_ORDER):
                raise ServerUnavailable(
                    f"cannot continue the search in the index {index!r}: its server was restarted",
                    index=index,
                )
            point = yield OpenPointInTime(index=index)
            place, skipped = dataclasses.replace(start, last=None, equal=0), start.equal
            continue
        found: Hits = answer["hits"]["hits"]
        place = place.after(found, len(body["sort"]))
        hits, skipped = found[skipped:], max(0, skipped - len(found))
        is_last = len(found) < body["size"]
        if hits or is_last:
            break
    if is_last:
        yield ClosePointInTime(index=index, point=point)
    return Page(hits=hits, index=index, body=body, point=point, place=place, is_last=is_last)

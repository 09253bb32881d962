"""Finds the articles on a page of the list, for each kind of sort.

For sorts by relevance, Elasticsearch collapses the matches to the best match of each cluster.

For sorts by time, articles are read in order of time, and the first of each cluster becomes a row. Collapsing
would visit every match for each page; reading visits about as many articles as the page has rows. Reading
needs no record of earlier pages: an article becomes a row if it is the first match of its cluster, which one
search checks for all clusters on the page. Therefore cursors reach any depth. If few articles become rows
(because of `min_similar`, or reprints of earlier rows), a page is cut short before the whole index has been
read, and its cursor continues after the last article read.
"""

import collections
import dataclasses
from typing import Any

from esdedup.elastic import limits
from esdedup.elastic.requests import ReadClock, Requests, recent, search
from esdedup.reading import list_request as bodies
from esdedup.reading.list_request import ListRequest, SortResult
from esdedup.reading.paging import Cursor
from esdedup.reading.queries import Hit, aggregation, first_and_last, place_of, root_of
from esdedup.reading.ranking import ranked

_MAX_CHUNK = 5_000
# The next chunk excludes up to this many clusters: the clusters with the most articles read so far.
_MAX_EXCLUDED = 1_000


def sorted_articles(request: ListRequest, start: Cursor) -> Requests[SortResult]:
    """Return the operation that finds the articles on a page."""
    if request.sort in bodies.SORTS_BY_TIME:
        return _by_time(request, start)
    if request.is_by_count:
        return _by_count(request, start)
    return _by_relevance(request, start)


def _by_relevance(request: ListRequest, start: Cursor) -> Requests[SortResult]:
    body_of = bodies.first_of_each_root if request.dedup else bodies.articles
    # If filters leave out rows, find the rows of earlier pages too, to skip them.
    skipped, first = (start.offset, 0) if request.is_filtered else (0, start.offset)
    # One extra row shows whether there is a next page; beyond Elasticsearch's limit, there is none.
    needed = skipped + request.paging.size + 1
    rows: list[Hit] = []
    chunk, is_last = min(needed, limits.MAX_HITS - first), False
    while len(rows) < needed and not is_last and chunk:
        body = body_of(request, request.order, size=chunk, first=first)
        (answer,) = yield from search(request.searched, body)
        hits = answer["hits"]["hits"]
        shown = yield from bodies.shown_roots(request, [root_of(hit, request.fields) for hit in hits])
        rows += [hit for hit in hits if root_of(hit, request.fields) in shown]
        is_last = len(hits) < chunk
        first += chunk
        chunk = min(4 * chunk, limits.MAX_HITS - first)
    page = rows[skipped : skipped + request.paging.size]
    return SortResult(rows=_rows(page, request), has_more=len(rows) >= needed)


def _rows(hits: list[Hit], request: ListRequest) -> list[tuple[str, Hit | None]]:
    """Return the root of each hit, with the hit if it is the article to show."""
    are_heads = not request.dedup or request.order_of_heads == request.order
    return [(root_of(hit, request.fields), hit if are_heads else None) for hit in hits]


def _by_time(request: ListRequest, start: Cursor) -> Requests[SortResult]:
    # A numbered page is found by reading the pages before it. One extra row shows whether more rows follow.
    skipped = 0 if start.place is not None else start.offset
    needed = skipped + request.paging.size + 1
    left = request.tuning.read_articles + request.tuning.read_articles_per_row * needed
    chunk = min(2 * needed, _MAX_CHUNK, left)
    reader = _TimeReader(request=request, place=start.place, chunk=chunk, left=left)
    rows: list[Hit] = []
    while len(rows) < needed and not reader.is_at_end and reader.left:
        candidates = yield from reader.next_chunk()
        if request.dedup and start.place is not None:
            candidates = yield from _without_rows_of_earlier_pages(candidates, request)
        shown = yield from bodies.shown_roots(request, [root_of(hit, request.fields) for hit in candidates])
        rows += [hit for hit in candidates if root_of(hit, request.fields) in shown]
    page = rows[skipped : skipped + request.paging.size]
    is_full, place = len(rows) >= needed, None if reader.is_at_end else reader.place
    return SortResult(
        rows=_rows(page, request),
        place=page[-1]["sort"] if is_full else place,
        has_more=is_full or not reader.is_at_end,
        is_cut_short=len(page) < request.paging.size and not reader.is_at_end,
    )


@dataclasses.dataclass(kw_only=True)
class _TimeReader:
    """Reads the articles of a list in order of time, in chunks."""

    request: ListRequest
    # The sort values of the last article read; None at the beginning of the list.
    place: list[Any] | None
    # The size of the next chunk, and how many articles may still be read.
    chunk: int
    left: int
    is_at_end: bool = False
    # The time of the first article read; 0 before.
    _newest_ms: int = 0
    # The number of articles read so far, by root.
    _read: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    # Whether searches are limited to a short span of time; False once a span had too few articles.
    _is_in_span: bool = True

    def next_chunk(self) -> Requests[list[Hit]]:
        """Read a chunk; return the first article of each new cluster, or all articles without dedup."""
        since_ms = (yield from self._since_ms()) if self._is_in_span else None
        excluded = [root for root, times in self._read.most_common(_MAX_EXCLUDED) if times > 1]
        request, size = self.request, self.chunk
        body = bodies.articles(
            request, request.order, size=size, after=self.place, without=excluded, since_ms=since_ms
        )
        (answer,) = yield from search(request.searched, body)
        hits: list[Hit] = answer["hits"]["hits"]
        self._is_in_span = since_ms is None or len(hits) == size
        self.is_at_end = since_ms is None and len(hits) < size
        self.left -= len(hits)
        self.chunk = min(2 * size, _MAX_CHUNK, self.left)
        if hits:
            self._newest_ms = self._newest_ms or hits[0]["sort"][0]
            self.place = hits[-1]["sort"]
        if not request.dedup:
            return hits
        firsts: list[Hit] = []
        for hit in hits:
            root = root_of(hit, request.fields)
            if root not in self._read:
                firsts.append(hit)
            self._read[root] += 1
        return firsts

    def _since_ms(self) -> Requests[int | None]:
        """Return a time since which there are probably more articles than the next chunk needs, or None.

        If articles were indexed in order of time, finding the newest is slow without a range query.
        """
        request, tuning = self.request, self.request.tuning
        if request.sort != "newest" or (request.query is not None and not self._read):
            return None
        body = aggregation({"match_all": {}}, first_and_last(request.fields)) | {"track_total_hits": True}
        span = yield from recent(request.searched, body)
        first_ms, last_ms = (span["aggregations"][each]["value"] for each in ("first", "last"))
        articles = span["hits"]["total"]["value"]
        if first_ms is None or articles < tuning.spanned_articles:
            return None
        # Count back from the current time if `last_ms` is later: few articles have dates in the future.
        until_ms = min(last_ms, (yield ReadClock())) if self.place is None else self.place[0]
        span_ms = last_ms - first_ms
        if self._read:
            # In the span that was read, count only articles that the next chunk does not exclude.
            articles, span_ms = max(1, list(self._read.values()).count(1)), self._newest_ms - until_ms
        since_ms = until_ms - tuning.span_margin * self.chunk * span_ms / articles
        return int(since_ms) if first_ms < since_ms else None


def _without_rows_of_earlier_pages(hits: list[Hit], request: ListRequest) -> Requests[list[Hit]]:
    """Return the hits that are the first match of their cluster in the whole list."""
    if not hits:
        return []
    roots = [root_of(hit, request.fields) for hit in hits]
    (answer,) = yield from search(request.searched, bodies.heads(request, request.order, roots))
    firsts = set(map(place_of, answer["hits"]["hits"]))
    return [hit for hit in hits if place_of(hit) in firsts]


def _by_count(request: ListRequest, start: Cursor) -> Requests[SortResult]:
    end = min(start.offset + request.paging.size, limits.MAX_HITS)
    # One extra root shows whether there is a next page.
    found = yield from ranked(request, end + 1)
    return SortResult(
        rows=[(root, None) for root in found.roots[start.offset : end]],
        has_more=end < min(len(found.roots), limits.MAX_HITS),
        order_exact=found.is_exact,
    )

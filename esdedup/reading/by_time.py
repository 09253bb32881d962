"""Rows by time: articles are read in time order, and the first of each cluster becomes a row.

Collapsing would visit every match for each page; this visits about as many articles as the page has rows.
Earlier pages need not be remembered: an article is a row if it is the first match of its cluster, and one
search over the clusters on the page decides that. So cursors reach any depth.

Where few articles become rows (`only`, or reprints of what earlier pages show), a page is cut short before
the whole index is read; its cursor goes on after the last article that was read.
"""

import collections
from typing import Any

from esdedup.elastic.requests import Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.hits import Hit, place_of, root_of
from esdedup.reading.list_request import ListRequest, SortResult
from esdedup.reading.paging import Cursor
from esdedup.reading.scope import Tuning

_MAX_CHUNK = 5_000
# The next chunk excludes the clusters with the most articles read so far, at most this many.
_MAX_EXCLUDED = 1_000


def rows_by_time(request: ListRequest, start: Cursor, tuning: Tuning) -> Requests[SortResult]:
    """Find the articles that a page shows."""
    # For a numbered page the pages before it are read too. One extra row shows whether there is a next page.
    skipped = 0 if start.place is not None else start.offset
    needed = skipped + request.size + 1
    # The number of articles read so far, by root.
    read: collections.Counter[str] = collections.Counter()
    rows: list[Hit] = []
    left = tuning.read_articles + tuning.read_articles_a_row * needed
    place, chunk, is_last = start.place, min(2 * needed, _MAX_CHUNK, left), False
    total_articles: int | None = None
    while len(rows) < needed and not is_last and left:
        hits, counted = yield from _read(request, read, place, chunk, counts=total_articles is None)
        total_articles = counted if total_articles is None else total_articles
        if request.dedup:
            candidates = _first_of_each_root(hits, read, request)
            if start.place is not None:
                candidates = yield from _without_rows_of_earlier_pages(candidates, request)
        else:
            candidates = hits
        rows += yield from _filtered_by_only(candidates, request)
        is_last = len(hits) < chunk
        if not is_last:
            left -= chunk
            place, chunk = hits[-1]["sort"], min(2 * chunk, _MAX_CHUNK, left)
    page = rows[skipped : skipped + request.size]
    is_full = len(rows) >= needed
    if is_full:
        place = page[-1]["sort"]
    return SortResult(
        hits=page,
        place=None if is_last and not is_full else place,
        has_more=is_full or not is_last,
        total_articles=total_articles or 0,
        is_cut_short=len(page) < request.size and not is_last,
    )


def _read(
    request: ListRequest, read: collections.Counter[str], place: list[Any] | None, size: int, *, counts: bool
) -> Requests[tuple[list[Hit], int | None]]:
    """Read the articles after `place`, excluding the clusters with the most articles read so far.

    With `counts` also count all matching articles.
    """
    query, fields = request.query, request.fields
    excluded = [root for root, times in read.most_common(_MAX_EXCLUDED) if times > 1]
    body = bodies.articles(query, by=request.order, size=size, fields=fields, after=place, without=excluded)
    if not counts:
        (answer,) = yield from search(request.index, body)
        return answer["hits"]["hits"], None
    answer, count = yield from search(request.index, body, bodies.count_articles(query, fields=fields))
    return answer["hits"]["hits"], count["hits"]["total"]["value"]


def _first_of_each_root(hits: list[Hit], read: collections.Counter[str], request: ListRequest) -> list[Hit]:
    """Return the first hit of each root that is not in `read`, and count all hits in `read`."""
    firsts: list[Hit] = []
    for hit in hits:
        root = root_of(hit, request.fields)
        if root not in read:
            firsts.append(hit)
        read[root] += 1
    return firsts


def _without_rows_of_earlier_pages(hits: list[Hit], request: ListRequest) -> Requests[list[Hit]]:
    """Return the hits that are the first match of their cluster in the whole list."""
    if not hits:
        return []
    roots = [root_of(hit, request.fields) for hit in hits]
    (answer,) = yield from search(
        request.index, bodies.heads(roots, query=request.query, by=request.order, fields=request.fields)
    )
    firsts = set(map(place_of, answer["hits"]["hits"]))
    return [hit for hit in hits if place_of(hit) in firsts]


def _filtered_by_only(hits: list[Hit], request: ListRequest) -> Requests[list[Hit]]:
    """Apply `only`: keep the hits whose clusters have similar articles, or those whose clusters have none."""
    if request.only is None or not hits:
        return hits
    roots = [root_of(hit, request.fields) for hit in hits]
    (answer,) = yield from search(request.index, bodies.larger_roots(roots, fields=request.fields))
    larger = {bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]}
    has_similar = request.only == "similar"
    return [hit for hit, root in zip(hits, roots, strict=True) if (root in larger) is has_similar]

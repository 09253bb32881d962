"""Rows by time: reading on in the plain order of articles, and keeping the first of each cluster.

Collapse would visit every match for one page; this visits about as many articles as the page has rows.
It needs no memory of earlier pages: an article is a row where it is the first of its cluster in the
whole order, and one search over the clusters at hand tells that. So pages go on for ever.
"""

import collections

from esdedup.elastic.requests import Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.cursor import Cursor
from esdedup.reading.hits import Hit, root_of
from esdedup.reading.list_request import ListRequest
from esdedup.reading.sort_result import SortResult

_MOST_AT_ONCE = 5_000
# Clusters that lie in the way are left out of what is read next, the largest of them.
_MOST_LEFT_OUT = 1_000


def rows_by_time(wanted: ListRequest, begin: Cursor) -> Requests[SortResult]:
    """Find the rows of a page."""
    index, query, fields = wanted.index, wanted.query, wanted.fields
    # Rows from the beginning of the list up to the page are found along with it; and one more, which
    # tells whether there is a next page.
    skipped = 0 if begin.place is not None else begin.offset
    needed = skipped + wanted.size + 1
    place, at_once = begin.place, min(2 * needed, _MOST_AT_ONCE)
    kept: list[Hit] = []
    met: collections.Counter[str] = collections.Counter()
    articles: int | None = None
    while len(kept) < needed:
        left_out = [root for root, times in met.most_common(_MOST_LEFT_OUT) if times > 1]
        body = bodies.articles(
            query, by=wanted.order, size=at_once, fields=fields, after=place, without=left_out
        )
        first = [bodies.count_articles(query, fields=fields)] if articles is None else []
        answer, *others = yield from search(index, body, *first)
        if articles is None:
            articles = others[0]["hits"]["total"]["value"]
        hits = answer["hits"]["hits"]
        new = _first_of_each_root(hits, met, wanted) if wanted.dedup else hits
        if begin.place is not None and wanted.dedup:
            new = yield from _those_that_come_first(new, wanted)
        if wanted.only is not None and new:
            new = yield from _those_wanted(new, wanted)
        kept += new
        if len(hits) < at_once:
            break
        place, at_once = hits[-1]["sort"], min(2 * at_once, _MOST_AT_ONCE)
    page = kept[skipped : skipped + wanted.size]
    has_more = len(kept) > skipped + wanted.size
    return SortResult(
        rows=page,
        place=page[-1]["sort"] if has_more else None,
        has_more=has_more,
        articles=articles or 0,
    )


def _first_of_each_root(hits: list[Hit], met: collections.Counter[str], wanted: ListRequest) -> list[Hit]:
    """Return the hits whose root was not met before, and note what is met."""
    new: list[Hit] = []
    for hit in hits:
        root = root_of(hit, wanted.fields)
        if root not in met:
            new.append(hit)
        met[root] += 1
    return new


def _those_that_come_first(hits: list[Hit], wanted: ListRequest) -> Requests[list[Hit]]:
    """Return the hits before which no article of their cluster stands, on whatever page."""
    if not hits:
        return []
    roots = [root_of(hit, wanted.fields) for hit in hits]
    (answer,) = yield from search(
        wanted.index, bodies.heads(roots, query=wanted.query, by=wanted.order, fields=wanted.fields)
    )
    firsts = {(hit["_index"], hit["_id"]) for hit in answer["hits"]["hits"]}
    return [hit for hit in hits if (hit["_index"], hit["_id"]) in firsts]


def _those_wanted(hits: list[Hit], wanted: ListRequest) -> Requests[list[Hit]]:
    """Return the hits whose cluster has similar articles, or those whose cluster has none."""
    roots = [root_of(hit, wanted.fields) for hit in hits]
    (answer,) = yield from search(wanted.index, bodies.larger_roots(roots, fields=wanted.fields))
    larger = {bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]}
    return [
        hit for hit, root in zip(hits, roots, strict=True) if (root in larger) is (wanted.only == "similar")
    ]

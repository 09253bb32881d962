"""Rows by relevance: the engine collapses, and knows the best match of each cluster by itself."""

from esdedup.elastic import limits
from esdedup.elastic.requests import Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.cursor import Cursor
from esdedup.reading.list_request import ListRequest
from esdedup.reading.sort_result import SortResult


def rows_by_relevance(wanted: ListRequest, begin: Cursor) -> Requests[SortResult]:
    """Find the rows of a page."""
    fields, size = wanted.fields, wanted.size + 1
    find = bodies.first_of_each_root if wanted.dedup else bodies.articles
    # Where the engine's depth ends, there is no room for one more that tells of a next page.
    size = min(size, limits.MAX_HITS - begin.offset)
    answer, totals = yield from search(
        wanted.index,
        find(wanted.query, by=wanted.order, first=begin.offset, size=size, fields=fields),
        bodies.count_articles(wanted.query, fields=fields),
    )
    hits = answer["hits"]["hits"]
    # At the engine's limit a full page may have a next one, and asking for it tells what to do instead.
    has_more = len(hits) > wanted.size or size == wanted.size == len(hits)
    return SortResult(rows=hits[: wanted.size], has_more=has_more, articles=totals["hits"]["total"]["value"])

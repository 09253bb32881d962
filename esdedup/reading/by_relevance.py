"""Rows by relevance: Elasticsearch collapses the matches to the best one of each cluster."""

from esdedup.elastic import limits
from esdedup.elastic.requests import Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.cursor import Cursor
from esdedup.reading.list_request import ListRequest
from esdedup.reading.sort_result import SortResult


def rows_by_relevance(request: ListRequest, start: Cursor) -> Requests[SortResult]:
    """Find the articles that a page shows."""
    fields = request.fields
    body_of = bodies.first_of_each_root if request.dedup else bodies.articles
    # One extra row shows whether there is a next page; at Elasticsearch's limit there is none.
    size = min(request.size + 1, limits.MAX_HITS - start.offset)
    answer, count = yield from search(
        request.index,
        body_of(request.query, by=request.order, first=start.offset, size=size, fields=fields),
        bodies.count_articles(request.query, fields=fields),
    )
    hits = answer["hits"]["hits"]
    return SortResult(
        hits=hits[: request.size],
        has_more=len(hits) > request.size,
        total_articles=count["hits"]["total"]["value"],
    )

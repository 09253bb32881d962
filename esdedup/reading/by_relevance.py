"""Rows by relevance: the engine collapses, and knows the best match of each cluster by itself."""

from esdedup.queries import MAX_DEPTH
from esdedup.reading import list_bodies as bodies
from esdedup.reading.cursor import Cursor
from esdedup.reading.found import Found
from esdedup.reading.steps import Steps, search
from esdedup.reading.wanted import Wanted


def rows_by_relevance(wanted: Wanted, begin: Cursor) -> Steps[Found]:
    """Find the rows of a page."""
    fields, size = wanted.fields, wanted.size + 1
    find = bodies.first_of_each_root if wanted.dedup else bodies.articles
    # Where the engine's depth ends, there is no room for one more that tells of a next page.
    size = min(size, MAX_DEPTH - begin.offset)
    answer, totals = yield from search(
        wanted.index,
        find(wanted.query, by=wanted.order, first=begin.offset, size=size, fields=fields),
        bodies.count_articles(wanted.query, fields=fields),
    )
    hits = answer["hits"]["hits"]
    # At the engine's limit a full page may have a next one, and asking for it tells what to do instead.
    has_more = len(hits) > wanted.size or size == wanted.size == len(hits)
    return Found(rows=hits[: wanted.size], has_more=has_more, articles=totals["hits"]["total"]["value"])

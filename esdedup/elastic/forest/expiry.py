"""Deletion of expired nodes and pages, which no decision uses."""

from collections.abc import Callable, Iterator

import pydantic

from esdedup.elastic.forest.documents import chunks
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.search import EVERY_NODE, EVERY_PAGE
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query
from esdedup.forest.model import NO_TIME, Aging

_DELETED_AT_ONCE = 2_000
_LEAVES, _ROOTS = (
    {"bool": {"filter": [EVERY_NODE, {"term": {"leaf": is_leaf}}]}} for is_leaf in (True, False)
)


class Expired(pydantic.BaseModel, frozen=True):
    """How many expired documents were deleted, or would be."""

    leaves: int = 0
    roots: int = 0
    # Besides those that made a node, which go with it.
    pages: int = 0
    # Not deleted: those that were written after they were found, and roots that still have a leaf.
    kept: int = 0


def count_expired(index: ForestIndex, aging: Aging) -> Expired:
    """Count the expired nodes and pages that have not been deleted. Needs no lease."""
    live_since_ms = _live_since_ms(index, aging)
    queries = {"leaves": _LEAVES, "roots": _ROOTS, "pages": EVERY_PAGE}
    return Expired(
        **{
            name: index.run(index.search.count(_expired(query, live_since_ms)))
            for name, query in queries.items()
            if live_since_ms != NO_TIME
        }
    )


def expire(
    writer: ForestWriter, aging: Aging, *, on_progress: Callable[[int], None] = lambda _: None
) -> Expired:
    """Delete expired pages and nodes, leaves before their roots. If interrupted, the next run continues.

    What is written after it was found is kept.

    Args:
        writer: The forest's owner.
        aging: How long nodes live.
        on_progress: Called with the number of documents checked since the last call.

    Raises:
        ForestLost: Another process has taken the forest.
    """
    index = writer.index
    counts = {"pages": 0, "leaves": 0}
    roots = kept = 0
    index.refresh()
    live_since_ms = _live_since_ms(index, aging)
    if live_since_ms == NO_TIME:
        return Expired()
    # A page goes before its node: no page may be without one.
    for name, query in (("pages", EVERY_PAGE), ("leaves", _LEAVES)):
        for hits in _hits(index, _expired(query, live_since_ms)):
            deleted = writer.delete(hits)
            counts[name] += deleted
            kept += len(hits) - deleted
            on_progress(len(hits))
        index.refresh()
    for hits in _hits(index, _expired(_ROOTS, live_since_ms)):
        # A leaf refreshes its root, so none should have leaves; but no root may be deleted before its leaves.
        with_leaves = index.run(index.search.roots_with_leaves(hit["_id"] for hit in hits))
        deleted = writer.delete(hit for hit in hits if hit["_id"] not in with_leaves)
        roots += deleted
        kept += len(hits) - deleted
        on_progress(len(hits))
    index.refresh()
    return Expired(roots=roots, kept=kept, **counts)


def _live_since_ms(index: ForestIndex, aging: Aging) -> int:
    return index.status().live_since_ms(aging)


def _expired(query: Query, live_since_ms: int) -> Query:
    return {"bool": {"filter": query, "must_not": {"range": {"seen": {"gte": live_since_ms}}}}}


def _hits(index: ForestIndex, query: Query) -> Iterator[Hits]:
    for hits in index.hit_pages(query, versions=True):
        yield from (list(some) for some in chunks(hits, _DELETED_AT_ONCE))

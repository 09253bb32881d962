"""Deletion of expired nodes, which no decision uses."""

from collections.abc import Callable, Iterator

import pydantic

from esdedup.elastic.forest.documents import chunks
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query
from esdedup.forest.model import NO_TIME, Aging

_DELETED_AT_ONCE = 2_000


class Expired(pydantic.BaseModel, frozen=True):
    """How many expired nodes were deleted, or would be."""

    leaves: int = 0
    roots: int = 0
    # Not deleted: nodes that were written after they were found, and roots that still have a leaf.
    kept: int = 0


def count_expired(index: ForestIndex, aging: Aging) -> Expired:
    """Count the expired nodes that have not been deleted. Needs no lease."""
    expired = _expired(index, aging)
    if expired is None:
        return Expired()
    leaves, roots = (
        index.run(index.search.count(_marked(expired, leaf=is_leaf))) for is_leaf in (True, False)
    )
    return Expired(leaves=leaves, roots=roots)


def expire(
    writer: ForestWriter, aging: Aging, *, on_progress: Callable[[int], None] = lambda _: None
) -> Expired:
    """Delete expired nodes, leaves before their roots. If it is interrupted, the next run continues.

    A node that is written after it was found is kept.

    Args:
        writer: The forest's owner.
        aging: How long nodes live.
        on_progress: Called with the number of nodes checked since the last call.

    Raises:
        ForestLost: Another process has taken the forest.
    """
    index = writer.index
    leaves = roots = kept = 0
    index.refresh()
    expired = _expired(index, aging)
    if expired is None:
        return Expired()
    for hits in _hits(index, _marked(expired, leaf=True)):
        deleted = writer.delete(hits)
        leaves += deleted
        kept += len(hits) - deleted
        on_progress(len(hits))
    index.refresh()
    for hits in _hits(index, _marked(expired, leaf=False)):
        # A leaf refreshes its root, so none should have leaves; but no root may be deleted before its leaves.
        with_leaves = index.run(index.search.roots_with_leaves(hit["_id"] for hit in hits))
        deleted = writer.delete(hit for hit in hits if hit["_id"] not in with_leaves)
        roots += deleted
        kept += len(hits) - deleted
        on_progress(len(hits))
    index.refresh()
    return Expired(leaves=leaves, roots=roots, kept=kept)


def _expired(index: ForestIndex, aging: Aging) -> Query | None:
    """Return the query for expired nodes; None if there cannot be any."""
    live_since_ms = index.status().live_since_ms(aging)
    if live_since_ms == NO_TIME:
        return None
    return {"bool": {"filter": EVERY_NODE, "must_not": {"range": {"seen": {"gte": live_since_ms}}}}}


def _marked(query: Query, *, leaf: bool) -> Query:
    return {"bool": {"filter": [query, {"term": {"leaf": leaf}}]}}


def _hits(index: ForestIndex, query: Query) -> Iterator[Hits]:
    for hits in index.pages(query, versions=True):
        yield from (list(some) for some in chunks(hits, _DELETED_AT_ONCE))

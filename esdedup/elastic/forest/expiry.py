"""Taking out of a forest what has expired: its nodes take no part in anything any more."""

from collections.abc import Callable, Iterator
from typing import Any

import pydantic

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.search import EVERY_NODE, Query
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.forest.model import NO_TIME, Aging

_DELETED_AT_ONCE = 2_000


class Expired(pydantic.BaseModel, frozen=True):
    """How many nodes were deleted, or would be."""

    leaves: int = 0
    roots: int = 0
    # Not deleted: needed again after they were found, or roots that still have a leaf.
    kept: int = 0


def count_expired(index: ForestIndex, aging: Aging) -> Expired:
    """Count what has expired and is there still. Needs no lease."""
    expired = _expired(index, aging)
    if expired is None:
        return Expired()
    leaves, roots = (index.search.count(query) for query in (_leaves(expired), _roots(expired)))
    return Expired(leaves=leaves, roots=roots)


def expire(
    owned: ForestWriter, aging: Aging, *, on_deleted: Callable[[int], None] = lambda _: None
) -> Expired:
    """Delete what has expired, leaves before their roots; what is interrupted goes on next time.

    Each node is deleted only as it was found: one that is needed again meanwhile stays.

    Args:
        owned: The forest.
        aging: How long nodes live.
        on_deleted: Told how many nodes more have been looked at.

    Raises:
        ForestLost: Another process has taken the forest.
    """
    leaves = roots = kept = 0
    owned.index.refresh()
    expired = _expired(owned.index, aging)
    if expired is None:
        return Expired()
    for hits in _hits(owned.index, _leaves(expired)):
        deleted = owned.delete(hits)
        leaves += deleted
        kept += len(hits) - deleted
        on_deleted(len(hits))
    owned.index.refresh()
    for hits in _hits(owned.index, _roots(expired)):
        # A leaf refreshes its root, so none should be left; but no root goes before its leaves.
        with_leaves = owned.index.search.roots_with_leaves(hit["_id"] for hit in hits)
        deleted = owned.delete(hit for hit in hits if hit["_id"] not in with_leaves)
        roots += deleted
        kept += len(hits) - deleted
        on_deleted(len(hits))
    owned.index.refresh()
    return Expired(leaves=leaves, roots=roots, kept=kept)


def _expired(index: ForestIndex, aging: Aging) -> Query | None:
    """Return the query for what has expired, None where nothing can have."""
    live_since_ms = index.live_since_ms(aging)
    if live_since_ms == NO_TIME:
        return None
    return {"bool": {"filter": EVERY_NODE, "must_not": {"range": {"seen": {"gte": live_since_ms}}}}}


def _leaves(query: Query) -> Query:
    return {"bool": {"filter": [query, {"term": {"leaf": True}}]}}


def _roots(query: Query) -> Query:
    return {"bool": {"filter": [query, {"term": {"leaf": False}}]}}


def _hits(index: ForestIndex, query: Query) -> Iterator[list[dict[str, Any]]]:
    for hits in index.search.pages(query, versions=True):
        for at in range(0, len(hits), _DELETED_AT_ONCE):
            yield hits[at : at + _DELETED_AT_ONCE]

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

    @property
    def checked(self) -> int:
        """How many documents were looked at."""
        return self.leaves + self.roots + self.pages + self.kept


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
    """Delete all expired pages and nodes; see `expiring`.

    Args:
        writer: The forest's owner.
        aging: How long nodes live.
        on_progress: Called with the number of documents checked since the last call.
    """
    expired = Expired()
    for after in expiring(writer, aging):
        on_progress(after.checked - expired.checked)
        expired = after
    return expired


def expiring(writer: ForestWriter, aging: Aging) -> Iterator[Expired]:
    """Delete expired pages and nodes, leaves before their roots, some at a time; yield what was done so far.

    What is written after it was found is kept. If it is not gone on with, the next run continues.

    Raises:
        ForestLost: Another process has taken the forest.
    """
    index = writer.index
    expired = Expired()
    index.refresh()
    live_since_ms = _live_since_ms(index, aging)
    if live_since_ms == NO_TIME:
        return
    # A page goes before its node: no page may name one that is gone.
    for name, query in (("pages", EVERY_PAGE), ("leaves", _LEAVES), ("roots", _ROOTS)):
        for hits in _hits(index, _expired(query, live_since_ms)):
            # A leaf refreshes its root, so none should have leaves; but no root may be deleted before its
            # leaves.
            with_leaves = (
                index.run(index.search.roots_with_leaves(hit["_id"] for hit in hits))
                if name == "roots"
                else frozenset()
            )
            deleted = writer.delete(hit for hit in hits if hit["_id"] not in with_leaves)
            expired = expired.model_copy(
                update={name: getattr(expired, name) + deleted, "kept": expired.kept + len(hits) - deleted}
            )
            yield expired
        index.refresh()


def _live_since_ms(index: ForestIndex, aging: Aging) -> int:
    return index.status().live_since_ms(aging)


def _expired(query: Query, live_since_ms: int) -> Query:
    return {"bool": {"filter": query, "must_not": {"range": {"seen": {"gte": live_since_ms}}}}}


def _hits(index: ForestIndex, query: Query) -> Iterator[Hits]:
    for hits in index.hit_pages(query, versions=True):
        yield from (list(some) for some in chunks(hits, _DELETED_AT_ONCE))

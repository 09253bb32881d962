"""Deletes expired nodes and content hashes, which no longer affect the assignment of articles."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pydantic

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.log import EVERY_LOG, stored_in_log
from esdedup.elastic.forest.search import EVERY_HASH, EVERY_NODE
from esdedup.elastic.forest.stored import Stored, StoredNode, packed_of, unpack
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query, chunks
from esdedup.errors import RetentionShorter
from esdedup.forest.model import NO_TIME, Aging
from esdedup.times import DAY_MS

_DELETED_AT_ONCE = 2_000
# The number of log documents deleted in one step; each has dozens or hundreds of nodes.
_LOGS_AT_ONCE = 10
_LEAVES, _ROOTS = (
    {"bool": {"filter": [EVERY_NODE, {"term": {"leaf": is_leaf}}]}} for is_leaf in (True, False)
)
# Content hashes are deleted before their nodes, so that no content hash refers to a deleted node.
_IN_ORDER: dict[str, Query] = {"pages": EVERY_HASH, "leaves": _LEAVES, "roots": _ROOTS}


class Expired(pydantic.BaseModel, frozen=True):
    """Counts of the expired documents that were deleted or, in a count, would be deleted."""

    leaves: int = 0
    roots: int = 0
    # Content hashes, not counting those stored with a node.
    pages: int = 0
    # Not deleted: documents written since they were found, roots with a leaf and, in a log, live nodes.
    kept: int = 0

    def plus(self, other: "Expired") -> "Expired":
        """Add the numbers of `other`."""
        names = type(self).model_fields
        return Expired(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def checked(self) -> int:
        """The number of documents examined."""
        return self.leaves + self.roots + self.pages + self.kept


Living = Callable[[bytes, int], Sequence[bytes]]
"""Given one document of a log and the minimum `seen` of a live node, returns the document's live records."""


def count_expired(index: ForestIndex, aging: Aging) -> Expired:
    """Count the expired nodes and content hashes that have not been deleted. Needs no lease."""
    live_since_ms = index.status().live_since_ms(aging)
    if live_since_ms == NO_TIME:
        return Expired()
    if index.log is None:
        count = index.search.count
        counts = {name: count(_expired(query, live_since_ms)) for name, query in _IN_ORDER.items()}
        return Expired(**{name: index.run(each) for name, each in counts.items()})
    done = Expired()
    for _, _, gone in _expired_logs(index, live_since_ms, _as_logged(index)):
        done = done.plus(gone)
    return done


def refuse_shorter(index: ForestIndex, aging: Aging) -> None:
    """Raise `RetentionShorter` if `aging` would make nodes live for less time than they do now."""
    status = index.status()
    days, fewer = (each.retention_ms / DAY_MS for each in (status.aging, aging))
    if status.stored_aging and fewer < days:
        since = [status.live_since_ms(each) for each in (status.aging, aging)]
        live, left = (index.run(index.nodes.counts(new_since_ms=ms, live_since_ms=ms)).live for ms in since)
        raise RetentionShorter(
            f"nodes of the forest {index.name!r} live {days:g} days; with {fewer:g}, {live - left:,} would "
            "expire now. Omit the retention, or change it with --change-retention (`change_retention`)",
            forest=index.name,
        )


def expire(
    writer: ForestWriter, aging: Aging, *, on_progress: Callable[[int], None] = lambda _: None
) -> Expired:
    """Delete all expired documents; `on_progress` gets the number of documents checked in each step."""
    done = Expired()
    for after in expiring(writer, aging):
        on_progress(after.checked - done.checked)
        done = after
    return done


def expiring(writer: ForestWriter, aging: Aging, *, living: Living | None = None) -> Iterator[Expired]:
    """Delete expired nodes and content hashes in steps; after each step, yield the total so far.

    Documents written since the search are kept. If the caller stops early, the next run continues.

    Args:
        living: For a forest with a log, looks up nodes in the owner's memory. None reads the log instead.
    """
    index = writer.index
    index.refresh()
    live_since_ms = index.status().live_since_ms(aging)
    if live_since_ms == NO_TIME:
        return
    if index.log is None:
        yield from _delete_nodes(writer, live_since_ms)
        return
    done = Expired()
    for hits, kept, gone in _expired_logs(index, live_since_ms, living or _as_logged(index)):
        if kept:
            writer.write(kept)
        if writer.delete(hits):
            done = done.plus(gone)
        yield done
    index.refresh()


def _as_logged(index: ForestIndex) -> Living:
    """Read a log; return a function that finds the live nodes and content hashes in one of its documents."""
    assert index.log is not None
    index.run(index.log.update())
    return index.log.living


def _expired_logs(
    index: ForestIndex, live_since_ms: int, living: Living
) -> Iterator[tuple[Hits, Sequence[bytes], Expired]]:
    """Yield expired documents, the nodes in them that later documents kept live, and counts of the rest."""
    relation = index.relation
    for page in index.log_pages(_expired(EVERY_LOG, live_since_ms), versions=True):
        for hits in chunks(page, _LOGS_AT_ONCE):
            # Read the documents one by one: a damaged document must not hide later documents.
            logs = packed_of(hits)
            kept = [each for log in logs for each in living(log, live_since_ms)]
            had = _count(each for log in logs for each in stored_in_log(log, relation))
            has = _count(each for packed in kept if (each := unpack(packed, relation)))
            gone = {name: getattr(had, name) - getattr(has, name) for name in _IN_ORDER}
            yield list(hits), kept, Expired(**gone, kept=len(kept))


def _count(found: Iterable[Stored]) -> Expired:
    stored = list(found)
    roots = sum(isinstance(each, StoredNode) and each.is_root for each in stored)
    hashes = sum(each.is_hash for each in stored)
    return Expired(leaves=len(stored) - roots - hashes, roots=roots, pages=hashes)


def _delete_nodes(writer: ForestWriter, live_since_ms: int) -> Iterator[Expired]:
    index, done = writer.index, Expired()
    for name, query in _IN_ORDER.items():
        pages = index.hit_pages(_expired(query, live_since_ms), versions=True)
        for hits in (some for page in pages for some in chunks(page, _DELETED_AT_ONCE)):
            with_leaves: set[str] = set()
            if name == "roots":
                # Expired roots should have no leaves, but check this, since no leaf may lose its root.
                with_leaves = index.run(index.search.roots_with_leaves(hit["_id"] for hit in hits))
            deleted = writer.delete(hit for hit in hits if hit["_id"] not in with_leaves)
            done = done.plus(Expired(**{name: deleted}, kept=len(hits) - deleted))
            yield done
        index.refresh()


def _expired(query: Query, live_since_ms: int) -> Query:
    return {"bool": {"filter": query, "must_not": {"range": {"seen": {"gte": live_since_ms}}}}}

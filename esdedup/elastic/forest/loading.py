"""Loads the live nodes and pages of a forest's index into memory."""

from collections.abc import Callable

from esdedup.elastic.forest.documents import live_filter, packed_of
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.matching import load_missing
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.requests import Query
from esdedup.errors import ForestFull
from esdedup.forest import NO_TIME, Aging, Nodes


def load_nodes(
    index: ForestIndex,
    *,
    aging: Aging,
    live_since_ms: int,
    memory_bytes: int,
    is_ended: Callable[[], bool],
) -> Nodes | None:
    """Load all that lives, as far as a refresh has shown it; None if it takes too much memory.

    More may be loaded after it.

    Args:
        index: The forest's.
        aging: How long nodes live.
        live_since_ms: The `seen` from which on (inclusive) they do.
        memory_bytes: The most that they may take.
        is_ended: Asked now and then; whether nobody wants them any more. Then the result is None.

    Raises:
        ServerError: Elasticsearch does not answer, or refuses.
    """
    lives = live_filter(live_since_ms)
    node_count = index.run(index.search.count({"bool": {"filter": [EVERY_NODE, *lives]}}))
    if node_count * index.relation.dtype.itemsize > memory_bytes:
        # The signatures alone take more.
        return None
    query: Query = {"bool": {"filter": [{"exists": {"field": "packed"}}, *lives]}}
    nodes = Nodes(index.relation, aging)
    for hits in index.hit_pages(query):
        nodes.load(packed_of(hits), live_since_ms=NO_TIME)
        if nodes.size_bytes > memory_bytes or is_ended():
            return None
    index.run(load_missing(nodes, index.search, live_since_ms=live_since_ms))
    return nodes if nodes.size_bytes <= memory_bytes else None


def load_log(
    index: ForestIndex, *, aging: Aging, live_since_ms: int, memory_bytes: int, on_read: Callable[[], None]
) -> Nodes:
    """Load all that lives of a forest's log.

    Args:
        index: The forest's.
        aging: How long nodes live.
        live_since_ms: The `seen` from which on (inclusive) they do.
        memory_bytes: The most that they may take.
        on_read: Called now and then.

    Raises:
        ForestFull: They take more.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    nodes = Nodes(index.relation, aging)
    for hits in index.log_pages():
        nodes.load_logs(packed_of(hits))
        on_read()
        # Some of them have expired.
        if nodes.size_bytes > 2 * memory_bytes:
            raise ForestFull.of(index.name, memory_bytes=memory_bytes)
    nodes.settle(live_since_ms=live_since_ms)
    if nodes.size_bytes > memory_bytes:
        raise ForestFull.of(index.name, memory_bytes=memory_bytes)
    return nodes

"""Loads the live nodes and content hashes of a forest into memory."""

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lookup import load_missing
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.forest.stored import live_filter, packed_of
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query
from esdedup.errors import ForestFull
from esdedup.forest import NO_TIME, Aging, Nodes
from esdedup.serial_thread import SerialThread


def load_log(
    index: ForestIndex, *, aging: Aging, live_since_ms: int, memory_bytes: int, on_read: Callable[[], None]
) -> Nodes:
    """Load the live nodes and content hashes of a log; call `on_read` after each page of hits.

    Raises `ForestFull` if the nodes take too much memory.
    """
    nodes = Nodes(index.relation, aging)
    for hits in index.log_pages():
        nodes.load_logs(packed_of(hits))
        on_read()
        # Allow twice the memory here, since some of the nodes have expired.
        if nodes.size_bytes > 2 * memory_bytes:
            raise ForestFull.of(index.name, memory_bytes=memory_bytes)
    nodes.settle(live_since_ms=live_since_ms)
    if nodes.size_bytes > memory_bytes:
        raise ForestFull.of(index.name, memory_bytes=memory_bytes)
    return nodes


# The thread leaves at most this many nodes to the method `nodes`, which loads them in about 10 ms.
_LEFT = 500


class BackgroundLoader:
    """Loads nodes in a thread, then the nodes that were written in the meantime."""

    def __init__(self, index: ForestIndex, *, aging: Aging, live_since_ms: int, memory_bytes: int) -> None:
        written = self._written = list[bytes]()
        # The minimum `seen` of a live node after the last of these writes.
        since_ms = self._live_since_ms = [live_since_ms]
        self._ended = threading.Event()
        is_ended = self._ended.is_set
        query: Query = {"bool": {"filter": [{"exists": {"field": "packed"}}, *live_filter(live_since_ms)]}}
        pages: Iterable[Hits] = index.hit_pages(query)
        if index.meta.shards > 1:
            # Take the snapshot now: during a batch, a search may see a leaf without its root.
            pages = itertools.chain(list(itertools.islice(pages, 1)), pages)

        def load() -> Nodes | None:
            relation, lives = index.relation, live_filter(since_ms[0])
            node_count = index.run(index.search.count({"bool": {"filter": [EVERY_NODE, *lives]}}))
            if node_count * relation.dtype.itemsize > memory_bytes or node_count > relation.most_nodes:
                # The signatures alone take too much memory, or no memory can hold the nodes.
                return None
            nodes = Nodes(relation, aging)
            for hits in pages:
                nodes.load(packed_of(hits), live_since_ms=NO_TIME)
                if nodes.size_bytes > memory_bytes or is_ended():
                    return None
            index.run(load_missing(nodes, index.search, live_since_ms=since_ms[0]))
            if nodes.size_bytes > memory_bytes:
                return None
            while not is_ended() and (count := len(written)) > _LEFT:
                _load_also(nodes, written[:count], since_ms[0])
                # The owner may have added more writes since.
                del written[:count]
            return nodes

        self._thread = SerialThread("esdedup-loading")
        self._loaded: Future[Nodes | None] = self._thread.begin(load)
        # The thread holds no reference to this object, so that it stops when the object is dropped.
        weakref.finalize(self, self._ended.set).atexit = False

    def end(self) -> None:
        """Stop loading."""
        self._ended.set()

    def put(self, written: Sequence[bytes], *, live_since_ms: int) -> None:
        """Add a write to be loaded, and the minimum `seen` of a live node after that write."""
        self._live_since_ms[0] = live_since_ms
        self._written += written

    def is_done(self, *, timeout_s: float) -> bool:
        """Wait for the loading to finish; return False if it takes longer than `timeout_s`."""
        return bool(wait([self._loaded], timeout_s).done)

    def nodes(self) -> Nodes | None:
        """Return all nodes, including those written so far; None if they take too much memory."""
        nodes = self._loaded.result()
        if nodes is not None:
            _load_also(nodes, self._written, self._live_since_ms[0])
        return nodes


def _load_also(nodes: Nodes, written: Sequence[bytes], live_since_ms: int) -> None:
    # Leave out nodes that have expired in the meantime, as `gather` does.
    nodes.load(written, live_since_ms=live_since_ms)
    nodes.settle()

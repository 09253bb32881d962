"""Loads the live nodes and pages of a forest's index into memory."""

import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from esdedup.elastic.forest.documents import live_filter, packed_of
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lookup import load_missing
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.requests import Query
from esdedup.errors import ForestFull
from esdedup.forest import NO_TIME, Aging, Nodes
from esdedup.serial_thread import SerialThread


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


# So much of what was written meanwhile is left to the thread that takes the nodes: some 10 ms.
_LEFT = 500


class BackgroundLoading:
    """Loads nodes in a thread, and then what was written meanwhile."""

    def __init__(self, index: ForestIndex, *, aging: Aging, live_since_ms: int, memory_bytes: int) -> None:
        """Begin; parameters are those of `load_nodes`."""
        self._written: list[bytes] = []
        # The `seen` from which on nodes live, when the last of that was written.
        self._live_since_ms = [live_since_ms]
        self._ended = threading.Event()
        self._thread = SerialThread("esdedup-loading")
        written, since_ms, is_ended = self._written, self._live_since_ms, self._ended.is_set
        self._loaded: Future[Nodes | None] = self._thread.begin(
            lambda: _load(
                index,
                written,
                since_ms,
                aging=aging,
                memory_bytes=memory_bytes,
                is_ended=is_ended,
            )
        )
        # The thread does not know this object.
        weakref.finalize(self, self._ended.set).atexit = False

    def end(self) -> None:
        """Load nothing more."""
        self._ended.set()

    def put(self, written: Sequence[bytes], *, live_since_ms: int) -> None:
        """Note what is written, and the `seen` from which on (inclusive) nodes live then."""
        self._live_since_ms[0] = live_since_ms
        self._written += written

    def is_done(self, *, timeout_s: float) -> bool:
        """Wait until `nodes` returns at once; return False if that takes longer."""
        return bool(wait([self._loaded], timeout_s).done)

    def nodes(self) -> Nodes | None:
        """Return all nodes, with what has been written by now; None if they take too much memory.

        Raises:
            ServerError: Elasticsearch did not answer, or refused.
        """
        nodes = self._loaded.result()
        if nodes is not None:
            _load_also(nodes, self._written, self._live_since_ms[0])
        return nodes


def _load(
    index: ForestIndex,
    written: list[bytes],
    since_ms: list[int],
    *,
    aging: Aging,
    memory_bytes: int,
    is_ended: Callable[[], bool],
) -> Nodes | None:
    nodes = load_nodes(
        index, aging=aging, live_since_ms=since_ms[0], memory_bytes=memory_bytes, is_ended=is_ended
    )
    while nodes is not None and not is_ended() and (count := len(written)) > _LEFT:
        _load_also(nodes, written[:count], since_ms[0])
        # Others may have come behind them.
        del written[:count]
    return nodes


def _load_also(nodes: Nodes, written: Sequence[bytes], live_since_ms: int) -> None:
    # Without what has expired since, as in `gather`.
    nodes.load(written, live_since_ms=live_since_ms)
    nodes.settle()

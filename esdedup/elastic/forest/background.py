"""`BackgroundLoading`: a forest's nodes are loaded into memory while batches go on."""

import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.loading import load_nodes
from esdedup.forest import Aging, Nodes
from esdedup.serial_thread import SerialThread

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

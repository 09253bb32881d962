"""`BackgroundLoading`: a forest's nodes are loaded into memory while batches go on."""

import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.loading import Loading, load_nodes
from esdedup.elastic.forest.stored import Stored
from esdedup.forest.memory_nodes import MemoryNodes
from esdedup.forest.model import Aging
from esdedup.serial_thread import SerialThread

# So much of what was written meanwhile is left to the thread that takes the nodes: some 10 ms.
_LEFT = 500


class BackgroundLoading:
    """Loads nodes in a thread, and then what was written meanwhile."""

    def __init__(self, index: ForestIndex, *, aging: Aging, live_since_ms: int, memory_bytes: int) -> None:
        """Begin; parameters are those of `load_nodes`."""
        self._written: list[Stored] = []
        self._ended = threading.Event()
        self._thread = SerialThread("esdedup-loading")
        written, is_ended = self._written, self._ended.is_set
        self._loaded: Future[Loading | None] = self._thread.begin(
            lambda: _load(
                index,
                written,
                aging=aging,
                live_since_ms=live_since_ms,
                memory_bytes=memory_bytes,
                is_ended=is_ended,
            )
        )
        # The thread does not know this object.
        weakref.finalize(self, self._ended.set).atexit = False

    def end(self) -> None:
        """Load nothing more."""
        self._ended.set()

    def put(self, stored: Sequence[Stored]) -> None:
        """Note what is written."""
        self._written += stored

    def is_done(self, *, timeout_s: float) -> bool:
        """Wait until `nodes` returns at once; return False if that takes longer."""
        return bool(wait([self._loaded], timeout_s).done)

    def nodes(self) -> MemoryNodes | None:
        """Return all nodes, with what has been written by now; None if they take too much memory.

        Raises:
            ServerError: Elasticsearch did not answer, or refused.
        """
        loading = self._loaded.result()
        if loading is None:
            return None
        loading.update(self._written)
        return loading.nodes


def _load(
    index: ForestIndex,
    written: list[Stored],
    *,
    aging: Aging,
    live_since_ms: int,
    memory_bytes: int,
    is_ended: Callable[[], bool],
) -> Loading | None:
    loading = load_nodes(
        index, aging=aging, live_since_ms=live_since_ms, memory_bytes=memory_bytes, is_ended=is_ended
    )
    while loading is not None and not is_ended() and (count := len(written)) > _LEFT:
        loading.update(written[:count])
        # Others may have come behind them.
        del written[:count]
    return loading

"""The memory that ten million nodes take, ours and the peer's, each in a process of its own."""

import multiprocessing
from datetime import timedelta

import numpy as np
import psutil

from benchmarks.fingerprints import arrivals_of, as_bytes, random_ones
from benchmarks.rows import FAISS, Row, less_is_better
from esdedup.forest import Aging, Forest, relation_of
from esdedup.forest.memory import MemoryStore
from esdedup.profile import CLASSIC

_NODES = 10_000_000
_FILLED_AT_ONCE = 5_000


def memory() -> list[Row]:
    """Compare all our arrays, and the growth of the process, with the growth of the peer's process."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        arrays, ours = pool.apply(_ours)
        theirs = pool.apply(_theirs)
    return [
        less_is_better("memory", f"ten million nodes, {what}", each, FAISS, theirs, "bytes a node")
        for what, each in (("all that a node needs", arrays), ("growth of the process", ours))
    ]


def _ours() -> tuple[float, float]:
    held = random_ones(_NODES, np.random.default_rng(_NODES))
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(CLASSIC))
    forest = Forest(store)
    before_bytes = _process_bytes()
    for at in range(0, _NODES, _FILLED_AT_ONCE):
        forest.assign(arrivals_of(held[at : at + _FILLED_AT_ONCE]), now_ms=0)
    return store.size_bytes / len(store), (_process_bytes() - before_bytes) / len(store)


def _theirs() -> float:
    import faiss

    held = random_ones(_NODES, np.random.default_rng(_NODES))
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    before_bytes = _process_bytes()
    for at in range(0, _NODES, _FILLED_AT_ONCE):
        index.add(as_bytes(held[at : at + _FILLED_AT_ONCE]))
    return (_process_bytes() - before_bytes) / _NODES


def _process_bytes() -> int:
    return psutil.Process().memory_info().rss

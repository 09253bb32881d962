"""The memory that very many nodes take, ours and the peer's, each in a process of its own."""

import ctypes
import multiprocessing
import multiprocessing.pool
from datetime import timedelta

import numpy as np
import psutil

from benchmarks.rows import FAISS, Row, less_is_better
from benchmarks.signatures import arrivals_of, as_bytes, random_ones
from esdedup.forest import Aging, Forest, relation_of
from esdedup.forest.memory import MemoryStore
from esdedup.profile import CLASSIC, VERIFIED, Profile

_MILLION, _LARGE = 1_000_000, 10_000_000
_FILLED_AT_ONCE = 5_000
_UNIT = "bytes a node"


def memory() -> list[Row]:
    """Compare all arrays of `classic`, and the growth of the process, with that of the peer's process."""
    with _process() as process:
        ours = process.apply(_ours, (CLASSIC, _LARGE))
        theirs = process.apply(_theirs, (CLASSIC, _LARGE))
    return [
        less_is_better("memory", f"ten million nodes, {what}", each, FAISS, theirs, _UNIT)
        for what, each in ours.items()
    ]


def memory_verified() -> list[Row]:
    """Measure `verified`; no peer keeps as much of a text."""
    with _process() as process:
        ours = process.apply(_ours, (VERIFIED, _MILLION))
    return [
        Row(table="memory-verified", case=f"one million nodes, {what}", ours=each, unit=_UNIT)
        for what, each in ours.items()
    ]


def _process() -> multiprocessing.pool.Pool:
    return multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1)


def _ours(profile: Profile, count: int) -> dict[str, float]:
    held = random_ones(profile, count, np.random.default_rng(count))
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(profile))
    forest = Forest(store)
    before_bytes = _process_bytes()
    for at in range(0, count, _FILLED_AT_ONCE):
        forest.assign(arrivals_of(profile, held[at : at + _FILLED_AT_ONCE]), now_ms=0)
    found = {
        "all that a node needs": store.size_bytes / len(store),
        "growth of the process": (_process_bytes() - before_bytes) / len(store),
    }
    if _give_back():
        found["growth without what its allocator keeps free"] = (_process_bytes() - before_bytes) / len(store)
    return found


def _theirs(profile: Profile, count: int) -> float:
    import faiss

    held = random_ones(profile, count, np.random.default_rng(count))
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    before_bytes = _process_bytes()
    for at in range(0, count, _FILLED_AT_ONCE):
        index.add(as_bytes(profile, held[at : at + _FILLED_AT_ONCE]))
    return (_process_bytes() - before_bytes) / count


def _give_back() -> bool:
    """Let the allocator give back what was freed; tell whether it can be told to (glibc)."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return False
    return True


def _process_bytes() -> int:
    return psutil.Process().memory_info().rss

"""Memory of ten million nodes, ours and the peer's, each in a process of its own."""

import contextlib
import ctypes
import multiprocessing
import multiprocessing.pool
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import psutil

from benchmarks.rows import FAISS, Row, less_is_better
from benchmarks.signatures import arrivals_of, as_bytes, random_ones
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.neighbours.relation import relation_of

_MILLION, _LARGE = 1_000_000, 10_000_000
_FILLED_AT_ONCE = 5_000
_UNIT = "bytes a node"
_IN_USE = "growth without freed memory that the allocator keeps"


def memory() -> list[Row]:
    """Compare all arrays of `classic`, and the growth of the process, with that of the peer's process."""
    with _process() as process:
        ours = process.apply(_ours, (CLASSIC, _LARGE))
        theirs = process.apply(_theirs, (CLASSIC, _LARGE))
    return [
        less_is_better("memory", f"ten million nodes, {what}", each, FAISS, theirs[what], _UNIT)
        for what, each in ours.items()
    ]


def memory_verified() -> list[Row]:
    """Measure `verified`; no peer stores as much of a text."""
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
    growth = _growth(
        lambda at: forest.assign(arrivals_of(profile, held[at : at + _FILLED_AT_ONCE]), now_ms=0), count
    )
    return {"arrays": store.size_bytes / len(store)} | growth


def _theirs(profile: Profile, count: int) -> dict[str, float]:
    import faiss

    held = random_ones(profile, count, np.random.default_rng(count))
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    growth = _growth(lambda at: index.add(as_bytes(profile, held[at : at + _FILLED_AT_ONCE])), count)
    # faiss does not report its size.
    return {"arrays": growth[_IN_USE]} | growth


def _growth(fill_from: Callable[[int], object], count: int) -> dict[str, float]:
    """Fill with so many nodes, in steps; return bytes a node by which the process has grown."""
    _give_back()
    before_bytes = _process_bytes()
    for at in range(0, count, _FILLED_AT_ONCE):
        fill_from(at)
    after_bytes = _process_bytes()
    _give_back()
    return {
        "growth of the process": (after_bytes - before_bytes) / count,
        _IN_USE: (_process_bytes() - before_bytes) / count,
    }


def _give_back() -> None:
    """Make the allocator return freed memory to the system, if it is glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _process_bytes() -> int:
    return psutil.Process().memory_info().rss

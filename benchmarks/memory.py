"""Memory of nodes, ours and the peers', each in a process of its own."""

import contextlib
import ctypes
import multiprocessing
import multiprocessing.pool
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import psutil

from benchmarks.rows import Row, less_is_better
from benchmarks.run import Run
from benchmarks.signatures import NOW_MS, Held, as_bytes
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.neighbours.relation import relation_of

_MILLION, _LARGE = 1_000_000, 10_000_000
_FILLED_AT_ONCE = 5_000
_UNIT = "bytes a node"
_ARRAYS = "arrays"
_GROWTH = "growth of the process"
_IN_USE = "the same without freed memory that the allocator keeps"


def memory(run: Run) -> list[Row]:
    """Measure `verified`, the default profile; no peer stores as much of a text."""
    count = run.size(_MILLION)
    with _process() as process:
        ours = process.apply(_ours, (VERIFIED, count))
    return [
        Row(table="memory", case=f"verified, {count:,} nodes, {what}", ours=each, unit=_UNIT)
        for what, each in ours.items()
    ]


def memory_classic(run: Run) -> list[Row]:
    """Compare all arrays of `classic`, and the growth of the process, with those of both peers' processes."""
    # Not imported by the processes that are measured.
    from benchmarks.in_memory import PEERS

    count = run.size(_LARGE)
    with _process() as process:
        ours = process.apply(_ours, (CLASSIC, count))
    rows = []
    for name in PEERS:
        with _process() as process:
            theirs = process.apply(_theirs, (name, count))
        rows += [
            less_is_better(
                "memory-classic", f"classic, {count:,} nodes, {what}", each, name, theirs[what], _UNIT
            )
            for what, each in ours.items()
        ]
    return rows


def _process() -> multiprocessing.pool.Pool:
    return multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1)


def _ours(profile: Profile, count: int) -> dict[str, float]:
    held = Held.random(profile, count, np.random.default_rng(count))
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(profile))
    forest = Forest(store)

    def fill(start: int, stop: int) -> None:
        forest.assign(held.arrivals(start, stop), now_ms=NOW_MS)

    growth = _growth(fill, count)
    return {_ARRAYS: store.size_bytes / len(store)} | growth


def _theirs(name: str, count: int) -> dict[str, float]:
    from benchmarks.in_memory import peer

    held = Held.random(CLASSIC, count, np.random.default_rng(count))
    index = peer(name)

    def fill(start: int, stop: int) -> None:
        index.add(as_bytes(CLASSIC, held.signatures[start:stop]))

    growth = _growth(fill, count)
    # faiss does not report its size.
    return {_ARRAYS: growth[_IN_USE]} | growth


def _growth(fill: Callable[[int, int], object], count: int) -> dict[str, float]:
    """Fill with so many nodes, in steps; return bytes a node by which the process has grown."""
    _give_back()
    before_bytes = _process_bytes()
    for start in range(0, count, _FILLED_AT_ONCE):
        fill(start, min(start + _FILLED_AT_ONCE, count))
    after_bytes = _process_bytes()
    _give_back()
    return {
        _GROWTH: (after_bytes - before_bytes) / count,
        _IN_USE: (_process_bytes() - before_bytes) / count,
    }


def _give_back() -> None:
    """Make the allocator return freed memory to the system, if it is glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _process_bytes() -> int:
    return psutil.Process().memory_info().rss

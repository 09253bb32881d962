"""Memory of nodes, ours and the peers', each in a process of its own."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np

from benchmarks.processes import give_back_memory, in_new_process, resident_bytes
from benchmarks.rows import Row, less_is_better
from benchmarks.run import Run
from benchmarks.signatures import NOW_MS, Held, as_bytes
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.forest.store import MemoryStore
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
    ours = in_new_process(_ours, VERIFIED, count)
    return [
        Row(table="memory", case=f"verified, {count:,} nodes, {what}", ours=each, unit=_UNIT)
        for what, each in ours.items()
    ]


def memory_classic(run: Run) -> list[Row]:
    """Compare all arrays of `classic`, and the growth of the process, with those of both peers' processes."""
    # Not imported by the processes that are measured.
    from benchmarks.in_memory import PEERS

    count = run.size(_LARGE)
    ours = in_new_process(_ours, CLASSIC, count)
    rows = []
    for name in PEERS:
        theirs = in_new_process(_theirs, name, count)
        rows += [
            less_is_better(
                "memory-classic", f"classic, {count:,} nodes, {what}", each, name, theirs[what], _UNIT
            )
            for what, each in ours.items()
        ]
    return rows


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
    give_back_memory()
    before_bytes = resident_bytes()
    for start in range(0, count, _FILLED_AT_ONCE):
        fill(start, min(start + _FILLED_AT_ONCE, count))
    after_bytes = resident_bytes()
    give_back_memory()
    return {_GROWTH: (after_bytes - before_bytes) / count, _IN_USE: (resident_bytes() - before_bytes) / count}

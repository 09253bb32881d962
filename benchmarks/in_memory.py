"""The forest in memory against faiss, one thread: looking up, adding, and all that a batch takes."""

import functools
import time
from datetime import timedelta

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.fingerprints import Fingerprints, arrivals_of, as_bytes, batch_of, biased, random_ones
from benchmarks.rows import FAISS, Row, duration_s, less_is_better, more_is_better, rate
from esdedup.forest import Aging, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.forest.near import HammingIndex

_BATCH = 1_000
_SMALL, _MILLION, _LARGE = 100_000, 1_000_000, 10_000_000
_FILLED_AT_ONCE = 50_000


class _TimedIndex(HammingIndex):
    """Counts how long it searches and adds."""

    def __init__(self) -> None:
        super().__init__()
        self.busy_s = 0.0

    def search(self, fingerprints: Fingerprints) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        started = time.perf_counter()
        found = super().search(fingerprints)
        self.busy_s += time.perf_counter() - started
        return found

    def add(self, fingerprints: Fingerprints) -> None:
        started = time.perf_counter()
        super().add(fingerprints)
        self.busy_s += time.perf_counter() - started


class Measured:
    """A forest of ours and an index of faiss with the same contents, and their batches' durations."""

    def __init__(self, held: Fingerprints, *, batches: int, peer_batches: int, seed: int = 7) -> None:
        faiss.omp_set_num_threads(1)
        random = np.random.default_rng(seed)
        index = _TimedIndex()
        # The forest's own index comes first; those of batches are not timed.
        first: list[HammingIndex] = [index]
        store = MemoryStore(
            aging=Aging.of(retention=timedelta(days=30)),
            new_near_index=lambda: first.pop() if first else HammingIndex(),
        )
        forest = Forest(store)
        for at in range(0, len(held), _FILLED_AT_ONCE):
            forest.assign(arrivals_of(held[at : at + _FILLED_AT_ONCE]), now_ms=0)
        theirs = faiss.IndexBinaryMultiHash(64, 4, 16)
        theirs.add(as_bytes(held))
        # Of ours: looking up and adding alone, and the whole of `assign`.
        self.index_s: list[float] = []
        self.whole_s: list[float] = []
        self.theirs_s: list[float] = []
        for number in range(batches):
            batch = batch_of(_BATCH, held, random)
            arrivals = arrivals_of(batch)
            index.busy_s = 0.0
            self.whole_s.append(duration_s(lambda arrivals=arrivals: forest.assign(arrivals, now_ms=0)))
            self.index_s.append(index.busy_s)
            if number < peer_batches:
                view = as_bytes(batch)
                # faiss counts up to a distance, exclusive.
                self.theirs_s.append(
                    duration_s(lambda view=view: (theirs.range_search(view, 4), theirs.add(view)))
                )


@functools.cache
def _measured(count: int, is_biased: bool = False) -> Measured:
    random = np.random.default_rng(count)
    held = biased(count, random) if is_biased else random_ones(count, random)
    return Measured(held, batches=300, peer_batches=5 if count == _LARGE else 30)


def forest() -> list[Row]:
    """Compare rates in batches of 1,000 with 20% near copies."""
    table, unit = "forest", "arrivals/s"
    cases = [
        ("one million nodes", _measured(_MILLION)),
        ("ten million nodes", _measured(_LARGE)),
        ("one million biased nodes", _measured(_MILLION, is_biased=True)),
    ]
    rows = []
    for name, one in cases:
        theirs = rate(_BATCH, one.theirs_s)
        for what, durations_s in (("look up and insert", one.index_s), ("all that assign does", one.whole_s)):
            ours = rate(_BATCH, durations_s)
            rows.append(more_is_better(table, f"{what}, {name}", ours, FAISS, theirs, unit))
    large = _measured(_LARGE)
    for what, durations_s in (
        ("look up and insert", large.index_s),
        ("all that assign does", large.whole_s),
    ):
        case = f"worst batch of 1,000 of 300, {what}, ten million nodes"
        rows.append(Row(table=table, case=case, ours=1_000 * max(durations_s), unit="ms"))
    return rows


def growth() -> list[Row]:
    """Compare how much dearer an arrival becomes from 100 thousand to ten million nodes."""
    small, large = _measured(_SMALL), _measured(_LARGE)
    theirs = rate(_BATCH, small.theirs_s) / rate(_BATCH, large.theirs_s)
    rows = []
    for what in ("index_s", "whole_s"):
        ours = rate(_BATCH, getattr(small, what)) / rate(_BATCH, getattr(large, what))
        name = "look up and insert" if what == "index_s" else "all that assign does"
        case = f"{name}, ten million against 100 thousand"
        rows.append(less_is_better("growth", case, ours, FAISS, theirs, "times"))
    return rows

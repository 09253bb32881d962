"""Looking up and adding fingerprints in memory, against faiss, one thread."""

import functools
import time
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.rows import Row, less_is_better, more_is_better, rate
from esdedup.forest.near import HammingIndex

_BATCH = 1_000
_NEAR_COPIES = 200
_FAISS = "faiss IndexBinaryMultiHash(64, 4, 16)"
_SMALL, _MILLION, _LARGE = 100_000, 1_000_000, 10_000_000
# What a node needs beside its place in the tables: `seen`, root, number of leaves, 4 bytes each.
_ATTRIBUTE_BYTES = 12

_Fingerprints = npt.NDArray[np.uint64]


class Measured:
    """An index of ours and one of faiss with the same contents, and their batches' durations."""

    def __init__(self, held: _Fingerprints, *, batches: int, peer_batches: int, seed: int = 7) -> None:
        faiss.omp_set_num_threads(1)
        random = np.random.default_rng(seed)
        ours, theirs = HammingIndex(), faiss.IndexBinaryMultiHash(64, 4, 16)
        for at in range(0, len(held), 100_000):
            ours.add(held[at : at + 100_000])
        before_bytes = psutil.Process().memory_info().rss
        theirs.add(_bytes(held))
        self.theirs_bytes_a_node = (psutil.Process().memory_info().rss - before_bytes) / len(held)
        self.ours_s, self.theirs_s = [], []
        for number in range(batches):
            batch = _arrivals(held, random)
            self.ours_s.append(_duration_s(lambda batch=batch: (ours.search(batch), ours.add(batch))))
            if number < peer_batches:
                view = _bytes(batch)
                # faiss counts up to a distance, exclusive.
                self.theirs_s.append(
                    _duration_s(lambda view=view: (theirs.range_search(view, 4), theirs.add(view)))
                )
        self.ours_bytes_a_node = ours.size_bytes / len(ours) + _ATTRIBUTE_BYTES

    @property
    def ours(self) -> float:
        return rate(_BATCH, self.ours_s)

    @property
    def theirs(self) -> float:
        return rate(_BATCH, self.theirs_s)


@functools.cache
def _measured(count: int, biased: bool = False) -> Measured:
    random = np.random.default_rng(count)
    held = _biased(count, random) if biased else random.integers(0, 2**64, count, np.uint64)
    return Measured(held, batches=300, peer_batches=5 if count == _LARGE else 30)


def forest() -> list[Row]:
    """Compare the rate of look-ups and additions, in batches of 1,000 with 20% near copies."""
    table, unit = "forest", "arrivals/s"
    rows = [
        more_is_better(table, f"look up and add, {name} nodes", one.ours, _FAISS, one.theirs, unit)
        for name, one in (
            ("one million", _measured(_MILLION)),
            ("ten million", _measured(_LARGE)),
            ("one million biased", _measured(_MILLION, biased=True)),
        )
    ]
    worst_ms = 1_000 * max(_measured(_LARGE).ours_s)
    return [
        *rows,
        Row(table=table, case="worst batch of 1,000 of 300, ten million nodes", ours=worst_ms, unit="ms"),
    ]


def memory() -> list[Row]:
    """Compare the memory of a node at ten million: our arrays, and how much the process grows by faiss."""
    large = _measured(_LARGE)
    case = "ten million nodes, ours with 12 bytes of attributes"
    ours, theirs = large.ours_bytes_a_node, large.theirs_bytes_a_node
    return [less_is_better("memory", case, ours, _FAISS, theirs, "bytes a node")]


def growth() -> list[Row]:
    """Compare how much dearer an arrival becomes from 100 thousand to ten million nodes."""
    small, large = _measured(_SMALL), _measured(_LARGE)
    ours, theirs = small.ours / large.ours, small.theirs / large.theirs
    return [
        less_is_better(
            "growth", "cost of an arrival, ten million against 100 thousand", ours, _FAISS, theirs, "times"
        )
    ]


def _arrivals(held: _Fingerprints, random: np.random.Generator) -> _Fingerprints:
    """Make a batch; some of it lies one to three bits from what is held."""
    batch = random.integers(0, 2**64, _BATCH, np.uint64)
    flips = np.uint64(1) << random.integers(0, 64, (_NEAR_COPIES, 3), np.uint64)
    copies = random.choice(held, _NEAR_COPIES)
    batch[:_NEAR_COPIES] = copies ^ np.bitwise_or.reduce(flips, axis=1)
    return batch


def _biased(count: int, random: np.random.Generator) -> _Fingerprints:
    """Make fingerprints whose bits are 1 with probabilities of 0.3 to 0.7, each its own."""
    chances = random.uniform(0.3, 0.7, 64)
    result = np.zeros(count, np.uint64)
    for bit, chance in enumerate(chances):
        result |= (random.random(count) < chance).astype(np.uint64) << np.uint64(bit)
    return result


def _bytes(fingerprints: _Fingerprints) -> Any:
    return fingerprints.view(np.uint8).reshape(-1, 8)


def _duration_s(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started

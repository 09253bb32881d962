"""Measures arrivals per second in memory, and memory per node."""

import gc
from collections.abc import Callable
from datetime import timedelta

import faiss
import numpy as np

from benchmarks.processes import give_back_memory, in_new_process, resident_bytes
from benchmarks.rows import Row, duration_s, less_is_better, more_is_better, rate
from benchmarks.server import Run
from benchmarks.signatures import NOW_MS, Held, as_bytes
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import NeighbourIndex, relation_of
from tests.support.assign import assign

_BATCH, _BATCHES = 1_000, 300
_SMALL, _MILLION, _LARGE = 100_000, 1_000_000, 10_000_000
_FILLED_AT_ONCE = 50_000
_UNIT = "arrivals/s"
_INDEX, _WHOLE = "look up and insert", "the whole of assign"
RADIUS = 4
"""The radius of searches by faiss, in bits, exclusive."""

PEERS = {
    "faiss IndexBinaryMultiHash(64, 4, 16)": (64, 4, 16, 0),
    "faiss IndexBinaryMultiHash(64, 2, 32), nflip = 1": (64, 2, 32, 1),
}
"""Two settings of faiss that find everything within 3 bits.

Each tuple has the bits per vector, the number of hashes, the bits per hash, and the number of bits to flip.
"""


def peer(name: str) -> faiss.IndexBinaryMultiHash:
    bits, hashes, hash_bits, flipped = PEERS[name]
    index = faiss.IndexBinaryMultiHash(bits, hashes, hash_bits)
    index.nflip = flipped
    return index


def forest(run: Run) -> list[Row]:
    """Compare rates of `verified`, the default profile.

    The peer holds one simhash for each node, and does not compare whole texts.
    """
    return _rows("forest", run, VERIFIED, _MILLION)


def forest_classic(run: Run) -> list[Row]:
    """Compare rates of `classic`, at 100 thousand and a million nodes."""
    return [
        *_rows("forest-classic", run, CLASSIC, _SMALL),
        *_rows("forest-classic", run, CLASSIC, _MILLION),
        *_rows("forest-classic", run, CLASSIC, _MILLION, are_biased=True),
    ]


def forest_large(run: Run) -> list[Row]:
    """Compare rates of both profiles at ten million nodes."""
    return [
        *_rows("forest-large", run, VERIFIED, _LARGE),
        *_rows("forest-large", run, CLASSIC, _LARGE),
        *_rows("forest-large", run, CLASSIC, _LARGE, are_biased=True),
    ]


def _rows(table: str, run: Run, profile: Profile, usual: int, *, are_biased: bool = False) -> list[Row]:
    """Measure batches of 1,000 arrivals with esdedup and both peers in turn; compare with the faster peer."""
    count = run.size(usual)
    held = Held.random(profile, count, np.random.default_rng(count), are_biased=are_biased)
    ours_s, theirs_s = _durations_s(held, batches=run.size(_BATCHES))
    rates = {name: rate(_BATCH, each) for name, each in theirs_s.items()}
    best = max(rates, key=rates.__getitem__)
    nodes = f"{profile.name}, {count:,} {'biased ' if are_biased else ''}nodes"
    rows = [
        more_is_better(table, f"{nodes}, {what}", rate(_BATCH, each), best, rates[best], _UNIT)
        for what, each in ours_s.items()
    ]
    rows += [
        Row(table=table, case=f"{nodes}, each peer", against=name, theirs=each, unit=_UNIT)
        for name, each in rates.items()
    ]
    worst = f"{nodes}, slowest of {len(theirs_s[best]):,} batches"
    return [
        *rows,
        *(
            less_is_better(
                table, f"{worst}, {what}", 1_000 * max(each), best, 1_000 * max(theirs_s[best]), "ms"
            )
            for what, each in ours_s.items()
        ),
    ]


def _durations_s(held: Held, *, batches: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the durations of batches: ours by operation, and the peers' by name."""
    faiss.omp_set_num_threads(1)
    random = np.random.default_rng(7)
    profile, relation = held.profile, relation_of(held.profile)
    index = NeighbourIndex(relation)
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation)
    peers = {name: peer(name) for name in PEERS}
    for at in range(0, len(held), _FILLED_AT_ONCE):
        some = held.signatures[at : at + _FILLED_AT_ONCE]
        index.add(some.tobytes())
        assign(store, held.arrivals(at, at + len(some)), now_ms=NOW_MS)
        for each in peers.values():
            each.add(as_bytes(profile, some))
    # Exclude all objects made so far from later garbage collections.
    gc.collect()
    gc.freeze()
    ours_s: dict[str, list[float]] = {_INDEX: [], _WHOLE: []}
    theirs_s: dict[str, list[float]] = {name: [] for name in PEERS}
    for number in range(batches):
        batch = held.batch(_BATCH, random)
        arrivals, view = held.arrivals_after(batch, number), as_bytes(profile, batch)
        ours_s[_WHOLE].append(duration_s(lambda arrivals=arrivals: assign(store, arrivals, now_ms=NOW_MS)))
        ours_s[_INDEX].append(
            duration_s(lambda batch=batch: (index.find_pairs(batch), index.add(batch.tobytes())))
        )
        for name, each in peers.items():
            theirs_s[name].append(
                duration_s(lambda each=each, view=view: (each.range_search(view, RADIUS), each.add(view)))
            )
    return ours_s, theirs_s


_MILLION_NODES, _MEMORY_LARGE = 1_000_000, 10_000_000
_ADDED_AT_ONCE = 5_000
_MEMORY_UNIT = "bytes a node"
_ARRAYS = "arrays"
_GROWTH = "growth of the process"
_IN_USE = "the same without freed memory that the allocator keeps"


def memory(run: Run) -> list[Row]:
    """Measure `verified`, the default profile; no peer stores as much of a text."""
    count = run.size(_MILLION_NODES)
    ours = in_new_process(_ours, VERIFIED, count)
    return [
        Row(table="memory", case=f"verified, {count:,} nodes, {what}", ours=each, unit=_MEMORY_UNIT)
        for what, each in ours.items()
    ]


def memory_classic(run: Run) -> list[Row]:
    """Compare all arrays of `classic`, and the growth of the process, with those of both peers."""
    from benchmarks.in_memory import PEERS

    count = run.size(_MEMORY_LARGE)
    ours = in_new_process(_ours, CLASSIC, count)
    rows = []
    for name in PEERS:
        theirs = in_new_process(_theirs, name, count)
        rows += [
            less_is_better(
                "memory-classic", f"classic, {count:,} nodes, {what}", each, name, theirs[what], _MEMORY_UNIT
            )
            for what, each in ours.items()
        ]
    return rows


def _ours(profile: Profile, count: int) -> dict[str, float]:
    held = Held.random(profile, count, np.random.default_rng(count))
    store = MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation_of(profile))

    def fill(start: int, stop: int) -> None:
        assign(store, held.arrivals(start, stop), now_ms=NOW_MS)

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
    """Add nodes in steps; return the growth of the process in bytes per node."""
    give_back_memory()
    before_bytes = resident_bytes()
    for start in range(0, count, _ADDED_AT_ONCE):
        fill(start, min(start + _ADDED_AT_ONCE, count))
    after_bytes = resident_bytes()
    give_back_memory()
    return {_GROWTH: (after_bytes - before_bytes) / count, _IN_USE: (resident_bytes() - before_bytes) / count}

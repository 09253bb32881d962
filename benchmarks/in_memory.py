"""The forest in memory against faiss, on one thread: look-up and insertion, and a whole batch."""

import gc
from datetime import timedelta

import faiss
import numpy as np

from benchmarks.rows import Row, duration_s, less_is_better, more_is_better, rate
from benchmarks.run import Run
from benchmarks.signatures import NOW_MS, Held, as_bytes
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import NeighbourIndex, relation_of

_BATCH, _BATCHES = 1_000, 300
_SMALL, _MILLION, _LARGE = 100_000, 1_000_000, 10_000_000
_FILLED_AT_ONCE = 50_000
_UNIT = "arrivals/s"
_INDEX, _WHOLE = "look up and insert", "the whole of assign"
RADIUS = 4
"""Of searches by faiss; exclusive."""

PEERS = {
    "faiss IndexBinaryMultiHash(64, 4, 16)": (64, 4, 16, 0),
    "faiss IndexBinaryMultiHash(64, 2, 32), nflip = 1": (64, 2, 32, 1),
}
"""Two settings that find everything within 3 bits: bits, hashes, bits of each, and bits to flip."""


def peer(name: str) -> faiss.IndexBinaryMultiHash:
    bits, hashes, hash_bits, flipped = PEERS[name]
    index = faiss.IndexBinaryMultiHash(bits, hashes, hash_bits)
    index.nflip = flipped
    return index


def forest(run: Run) -> list[Row]:
    """Compare rates of `verified`, the default profile.

    The peer holds one simhash a node, and does not compare whole texts.
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
    """Compare rates of both at ten million nodes."""
    return [
        *_rows("forest-large", run, VERIFIED, _LARGE),
        *_rows("forest-large", run, CLASSIC, _LARGE),
        *_rows("forest-large", run, CLASSIC, _LARGE, are_biased=True),
    ]


def _rows(table: str, run: Run, profile: Profile, usual: int, *, are_biased: bool = False) -> list[Row]:
    """Measure batches of 1,000 arrivals, ours and both peers' in turn; compare with the faster peer."""
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
    """Return the durations of batches: ours by what is done, and those of the peers by name."""
    faiss.omp_set_num_threads(1)
    random = np.random.default_rng(7)
    profile, relation = held.profile, relation_of(held.profile)
    index = NeighbourIndex(relation)
    forest = Forest(MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation))
    peers = {name: peer(name) for name in PEERS}
    for at in range(0, len(held), _FILLED_AT_ONCE):
        some = held.signatures[at : at + _FILLED_AT_ONCE]
        index.add(some.tobytes())
        forest.assign(held.arrivals(at, at + len(some)), now_ms=NOW_MS)
        for each in peers.values():
            each.add(as_bytes(profile, some))
    # All that the benchmarks import is not looked through again and again.
    gc.collect()
    gc.freeze()
    ours_s: dict[str, list[float]] = {_INDEX: [], _WHOLE: []}
    theirs_s: dict[str, list[float]] = {name: [] for name in PEERS}
    for number in range(batches):
        batch = held.batch(_BATCH, random)
        arrivals, view = held.arrivals_after(batch, number), as_bytes(profile, batch)
        ours_s[_WHOLE].append(duration_s(lambda arrivals=arrivals: forest.assign(arrivals, now_ms=NOW_MS)))
        ours_s[_INDEX].append(
            duration_s(lambda batch=batch: (index.find_pairs(batch), index.add(batch.tobytes())))
        )
        for name, each in peers.items():
            theirs_s[name].append(
                duration_s(lambda each=each, view=view: (each.range_search(view, RADIUS), each.add(view)))
            )
    return ours_s, theirs_s

"""The forest in memory against faiss, on one thread: look-up and insertion, and a whole batch."""

import functools
from datetime import timedelta

import faiss
import numpy as np

from benchmarks.rows import FAISS, Row, duration_s, less_is_better, more_is_better, rate
from benchmarks.signatures import Signatures, arrivals_of, as_bytes, batch_of, biased, random_ones
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.neighbours.relation import relation_of

_BATCH = 1_000
_SMALL, _MILLION, _LARGE = 100_000, 1_000_000, 10_000_000
_FILLED_AT_ONCE = 50_000
_UNIT = "arrivals/s"
_WHAT = {"index_s": "look up and insert", "whole_s": "the whole of assign"}


class Measured:
    """Durations of our index, our forest and an index of faiss with the same contents."""

    def __init__(self, profile: Profile, held: Signatures, *, batches: int, peer_batches: int) -> None:
        faiss.omp_set_num_threads(1)
        random = np.random.default_rng(7)
        relation = relation_of(profile)
        index = relation.new_index()
        forest = Forest(MemoryStore(aging=Aging.of(retention=timedelta(days=30)), relation=relation))
        for at in range(0, len(held), _FILLED_AT_ONCE):
            index.add(held[at : at + _FILLED_AT_ONCE])
            forest.assign(arrivals_of(profile, held[at : at + _FILLED_AT_ONCE]), now_ms=0)
        theirs = faiss.IndexBinaryMultiHash(64, 4, 16)
        theirs.add(as_bytes(profile, held))
        # Of each batch: look-up and insertion alone, and the whole of `assign`.
        self.index_s: list[float] = []
        self.whole_s: list[float] = []
        self.theirs_s: list[float] = []
        for number in range(batches):
            batch = batch_of(profile, _BATCH, held, random)
            arrivals = arrivals_of(profile, batch)
            self.whole_s.append(duration_s(lambda arrivals=arrivals: forest.assign(arrivals, now_ms=0)))
            self.index_s.append(duration_s(lambda batch=batch: (index.search(batch), index.add(batch))))
            if number < peer_batches:
                view = as_bytes(profile, batch)
                # The radius of faiss is exclusive.
                self.theirs_s.append(
                    duration_s(lambda view=view: (theirs.range_search(view, 4), theirs.add(view)))
                )


@functools.cache
def _measured(count: int, *, profile: Profile = CLASSIC, is_biased: bool = False) -> Measured:
    random = np.random.default_rng(count)
    held = biased(count, random) if is_biased else random_ones(profile, count, random)
    return Measured(profile, held, batches=300, peer_batches=5 if count == _LARGE else 30)


def forest() -> list[Row]:
    """Compare rates of `classic` in batches of 1,000 with 20% near copies."""
    rows = [
        *_rates("forest", "one million nodes", _measured(_MILLION)),
        *_rates("forest", "ten million nodes", _measured(_LARGE)),
        *_rates("forest", "one million biased nodes", _measured(_MILLION, is_biased=True)),
    ]
    for field, what in _WHAT.items():
        case = f"worst batch of 1,000 of 300, {what}, ten million nodes"
        rows.append(
            Row(table="forest", case=case, ours=1_000 * max(getattr(_measured(_LARGE), field)), unit="ms")
        )
    return rows


def forest_verified() -> list[Row]:
    """Compare rates of `verified`; the peer holds one simhash a node, and does not compare whole texts."""
    one = _measured(_MILLION, profile=VERIFIED)
    return _rates("forest-verified", "one million nodes", one, f"{FAISS}, one simhash a node")


def growth() -> list[Row]:
    """Compare how much slower an arrival becomes from 100 thousand to ten million nodes."""
    small, large = _measured(_SMALL), _measured(_LARGE)
    theirs = rate(_BATCH, small.theirs_s) / rate(_BATCH, large.theirs_s)
    rows = []
    for field, what in _WHAT.items():
        ours = rate(_BATCH, getattr(small, field)) / rate(_BATCH, getattr(large, field))
        case = f"{what}, ten million against 100 thousand"
        rows.append(less_is_better("growth", case, ours, FAISS, theirs, "times"))
    return rows


def _rates(table: str, name: str, one: Measured, against: str = FAISS) -> list[Row]:
    theirs = rate(_BATCH, one.theirs_s)
    return [
        more_is_better(table, f"{what}, {name}", rate(_BATCH, getattr(one, field)), against, theirs, _UNIT)
        for field, what in _WHAT.items()
    ]

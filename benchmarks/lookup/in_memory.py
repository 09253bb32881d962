"""Measures fixed tables for each scheme of `schemes`, and esdedup's own index, in memory on one thread."""

import functools
import statistics
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.lookup import fingerprints
from benchmarks.lookup.rows import MEMORY, Lookup, calculated
from benchmarks.lookup.schemes import ALL_VARIANTS, EXHAUSTIVE, EXPANSION, SCHEMES, Fingerprints, Scheme
from benchmarks.rows import duration_s
from benchmarks.server import Run
from esdedup.fingerprint.profile import CLASSIC
from esdedup.neighbours.relation import NeighbourIndex, relation_of

SIZES = (100_000, 1_000_000, 10_000_000)
OURS = "esdedup in memory: four blocks, built incrementally"
_MOST_DISTANCE_BITS = 3
_BATCH, _ROUNDS = 1_000, 5
# The number of arrivals in a round, for slow schemes.
_FEWER = {EXHAUSTIVE: 20, EXPANSION: 50}
# The number of fingerprints for which all variants can be stored.
_WITH_VARIANTS = 1_000
_ADDED_AT_ONCE = 50_000
# The number of arrivals whose results are compared with those of an exhaustive search.
_CHECKED = 20
# 2**64 divided by the golden ratio: spreads keys over buckets (Knuth, TAOCP 6.4).
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# The maximum number of keys that are looked up together, and of values that are read together.
_KEYS_AT_ONCE, _VALUES_AT_ONCE = 1 << 16, 1 << 22

Found = tuple[int, set[tuple[int, int]]]
"""The number of candidates that were read, and pairs of an arrival's position and a value near it."""
Search = Callable[[Fingerprints], Found]


def layouts(run: Run) -> list[Lookup]:
    """Measure each scheme at each size, with uniform and real fingerprints."""
    rows = []
    for kind, draw in fingerprints.kinds().items():
        for usual in SIZES:
            held = draw(run.size(usual), np.random.default_rng(usual))
            rows += [row for scheme in SCHEMES if (row := _measured(scheme, kind, held, draw))]
            rows.append(_ours(kind, held, draw))
        rows.append(_variants(kind, draw))
    return [*rows, *calculated(rows)]


def _measured(scheme: Scheme, kind: str, held: Fingerprints, draw: fingerprints.Draw) -> Lookup | None:
    if scheme == ALL_VARIANTS:
        return None
    made: list[Tables] = []
    stored_s = duration_s(lambda: made.append(Tables(scheme, held)))
    return _row(
        scheme.name, kind, held, draw, made[0].search, stored_s, made[0].size_bytes, _FEWER.get(scheme)
    )


def _variants(kind: str, draw: fingerprints.Draw) -> Lookup:
    """Measure the scheme that stores 43,745 keys for each fingerprint, at a size that fits into memory."""
    held = draw(_WITH_VARIANTS, np.random.default_rng(1))
    made: list[Tables] = []
    stored_s = duration_s(lambda: made.append(Tables(ALL_VARIANTS, held)))
    return _row(ALL_VARIANTS.name, kind, held, draw, made[0].search, stored_s, made[0].size_bytes)


def _ours(kind: str, held: Fingerprints, draw: fingerprints.Draw) -> Lookup:
    index = NeighbourIndex(relation_of(CLASSIC))

    def fill() -> None:
        for at in range(0, len(held), _ADDED_AT_ONCE):
            index.add(held[at : at + _ADDED_AT_ONCE].tobytes())

    def search(batch: Fingerprints) -> Found:
        positions, rows = index.find_pairs(batch)
        return 0, set(zip(positions.tolist(), held[rows].tolist(), strict=True))

    stored_s = duration_s(fill)
    return _row(OURS, kind, held, draw, search, stored_s, index.size_bytes, counts_candidates=False)


def _row(
    name: str,
    kind: str,
    held: Fingerprints,
    draw: fingerprints.Draw,
    search: Search,
    stored_s: float,
    size_bytes: int,
    batch_size: int | None = None,
    *,
    counts_candidates: bool = True,
) -> Lookup:
    random, size = np.random.default_rng(3), batch_size or _BATCH
    checked = fingerprints.arriving(held, draw, _CHECKED, random)
    _, found = search(checked)
    assert found == {
        (at, value)
        for at, one in enumerate(checked)
        for value in held[np.bitwise_count(held ^ one) <= _MOST_DISTANCE_BITS].tolist()
    }, name
    batches = [fingerprints.arriving(held, draw, size, random) for _ in range(_ROUNDS)]
    counts: list[int] = []

    def search_counting(batch: Fingerprints) -> None:
        counts.append(search(batch)[0])

    spent_s = [duration_s(functools.partial(search_counting, batch)) for batch in batches]
    return Lookup(
        table=MEMORY,
        kind=kind,
        scheme=name,
        fingerprints=len(held),
        candidates=sum(counts) / (size * _ROUNDS) if counts_candidates else None,
        lookup_us=statistics.median(spent_s) / size * 1e6,
        store_us=None if name == EXHAUSTIVE.name else stored_s / len(held) * 1e6,
        bytes_each=size_bytes / len(held),
    )


class Tables:
    """Fingerprints as a scheme stores them."""

    def __init__(self, scheme: Scheme, held: Fingerprints) -> None:
        self._scheme, self._held = scheme, held
        self._tables: list[HashTable] = []
        for table in range(0 if scheme.layout is None else len(scheme.layout.tables)):
            keys = scheme.stored(held, table)
            values = np.repeat(held, keys.shape[1])
            self._tables.append(HashTable(keys.ravel(), values, width_bits=scheme.width(table)))

    @property
    def size_bytes(self) -> int:
        return sum(table.size_bytes for table in self._tables) or self._held.nbytes

    def search(self, batch: Fingerprints) -> Found:
        read = 0
        found: set[tuple[int, int]] = set()
        for positions, values, count in self._read(batch):
            read += count
            near = np.bitwise_count(batch[positions] ^ values) <= _MOST_DISTANCE_BITS
            found.update(zip(positions[near].tolist(), values[near].tolist(), strict=True))
        return read, found

    def _read(self, batch: Fingerprints) -> Iterator[tuple[np.ndarray, Fingerprints, int]]:
        """Yield positions in a batch, candidates for the fingerprints there, and the number of candidates."""
        if self._scheme.layout is None:
            for at, one in enumerate(batch):
                near = np.flatnonzero(np.bitwise_count(self._held ^ one) <= _MOST_DISTANCE_BITS)
                yield np.full(len(near), at), self._held[near], len(self._held)
        for number, table in enumerate(self._tables):
            asked = self._scheme.asked(batch, number)
            for places, values in table.read(asked.ravel()):
                # Values of other keys in the bucket are not candidates, but reading them takes as much time.
                apart = np.bitwise_count(self._scheme.own(values, number) ^ asked.ravel()[places])
                fits = apart <= self._scheme.stored_distance_bits
                yield places[fits] // asked.shape[1], values[fits], int(fits.sum())


class HashTable:
    """Fingerprints by key; the fingerprints of a bucket are adjacent."""

    def __init__(self, keys: Fingerprints, values: Fingerprints, *, width_bits: int) -> None:
        """Make a table of keys, `width_bits` wide, and as many values: uint64 ``(n,)`` each."""
        bits = min(width_bits, max(1, len(keys).bit_length() - 1))
        self._shift = np.uint64(64 - bits)
        buckets = self._bucket(keys)
        self._values = values[np.argsort(buckets)]
        self._starts = np.zeros((1 << bits) + 1, np.uint32)
        np.cumsum(np.bincount(buckets, minlength=1 << bits), out=self._starts[1:])

    @property
    def size_bytes(self) -> int:
        return self._values.nbytes + self._starts.nbytes

    def read(self, keys: Fingerprints) -> Iterator[tuple[npt.NDArray[np.int64], Fingerprints]]:
        """Yield the contents of the buckets of `keys` in chunks: positions in `keys`, and values."""
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            buckets = self._bucket(keys[first : first + _KEYS_AT_ONCE])
            starts = self._starts[buckets].astype(np.int64)
            ends = np.cumsum(self._starts[buckets + 1] - starts)
            # Read at most a few million values together.
            cuts = np.searchsorted(ends, np.arange(0, ends[-1], _VALUES_AT_ONCE), "right")
            for start, stop in zip(cuts, [*cuts[1:], len(ends)], strict=True):
                counts = np.diff(ends[start:stop], prepend=ends[start - 1] if start else 0)
                at = np.arange(counts.sum()) + np.repeat(
                    starts[start:stop] - np.cumsum(counts) + counts, counts
                )
                yield np.repeat(np.arange(first + start, first + stop), counts), self._values[at]

    def _bucket(self, keys: Fingerprints) -> npt.NDArray[np.int64]:
        return (keys * _FACTOR >> self._shift).astype(np.int64)

"""Tables over the two halves of some bits of the fingerprint, and what becomes of halves that many share.

Within 3 bits, one of two halves differs in at most 1. So every fingerprint stands in two hash tables,
one for each half, whose address is the half's low bits. A search looks into the bucket of its own
address and of each address one bit away; bits above the address change no bucket. Tables grow a few
buckets at a time (linear hashing; Litwin, VLDB 1980), so that no addition is much slower than the
others.

A half that very many fingerprints share would make one bucket endless. Such a half is hot: what has it
moves into tables of the same kind over the two halves of the other bits, to which all that is hot in a
table goes. 32 bits become 16, and 8: of distinct fingerprints no more than 256 agree in all but 8 bits,
which a chain can hold.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.buckets import Buckets, Ints, Rows
from esdedup.neighbours.pairs import Pairs, pack

Fingerprints = npt.NDArray[np.uint64]

_FINGERPRINT_BITS = 64
_TAG_BITS = 32
# Slots taken of a bucket's eight, on average over all buckets.
_MEAN_LOAD = 5
_FIRST_LEVEL_BITS = 4
_LEAST_BITS = 8
# In a long chain: what more fingerprints share is hot; where more are left in all, everything is.
_HOT = 32
_CROWDED = 512
_QUERIES_AT_ONCE = 1_024
# Spreads the bits that fingerprints share over the addresses (Knuth's multiplicative hashing).
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclasses.dataclass(frozen=True)
class Queries:
    """What is searched."""

    # uint64 (n,); where a hot half one bit away is searched, with that half.
    fingerprints: Fingerprints
    # Whose query it is, int64 (n,).
    positions: npt.NDArray[np.int64]
    # How many bits have to differ yet, and how many may, inclusive, int8 (n,).
    least_bits: npt.NDArray[np.int8]
    most_bits: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.fingerprints)

    def part(self, first: int, last: int) -> "Queries":
        """Return the queries from `first` to before `last`."""
        return Queries(
            self.fingerprints[first:last],
            self.positions[first:last],
            self.least_bits[first:last],
            self.most_bits[first:last],
        )


class HalfKeyTables:
    """Rows of fingerprints, few of them equal, by the halves of those bits in which not all of them agree."""

    def __init__(
        self,
        held: Fingerprints,
        *,
        shift: int = 0,
        bits: int = _FINGERPRINT_BITS,
        tag_shift: int | None = None,
    ) -> None:
        """Make it empty.

        Args:
            held: All fingerprints by row, uint64; grows in place.
            shift: Where the bits begin whose halves are taken.
            bits: How many; what lies outside of them is searched as it is.
            tag_shift: Where the tags begin; the other half where it is None.
        """
        half = bits // 2
        upper, lower = shift + half, shift
        self._tables = (
            _Table(held, shift=upper, bits=half, other_shift=lower, tag_shift=tag_shift, is_first=True),
            _Table(held, shift=lower, bits=half, other_shift=upper, tag_shift=tag_shift, is_first=False),
        )

    @property
    def size_bytes(self) -> int:
        """The memory of all tables, without the fingerprints."""
        return sum(table.size_bytes for table in self._tables)

    def add(self, fingerprints: Fingerprints, rows: Rows) -> None:
        """Add fingerprints, ``(n,)``, that have these rows; `held` has them already."""
        for table in self._tables:
            table.add(fingerprints, rows)

    def are_hot(self, fingerprints: Fingerprints) -> npt.NDArray[np.bool_]:
        """Tell of each fingerprint whether a half of it is hot, bool ``(n,)``."""
        return np.logical_or(*(table.are_hot(fingerprints) for table in self._tables))

    def search(self, queries: Queries, *, max_distance_bits: int) -> Iterator[Pairs]:
        """Find all pairs within the distance; none of the queries' distances may be more.

        Yields:
            Pairs without repeats, in any order, as uint64: the query's position, then the row, 32 bits each.
        """
        # HalfKeyTables that are equal are found by the first table.
        tables = self._tables if max_distance_bits else self._tables[:1]
        for first in range(0, len(queries), _QUERIES_AT_ONCE):
            part = queries.part(first, first + _QUERIES_AT_ONCE)
            for table in tables:
                yield from table.search(part, max_distance_bits=max_distance_bits)


class _Table:
    """Rows by one half of their fingerprint."""

    def __init__(
        self,
        held: Fingerprints,
        *,
        shift: int,
        bits: int,
        other_shift: int,
        tag_shift: int | None,
        is_first: bool,
    ) -> None:
        self._held = held
        self._bits, self._other_shift = bits, other_shift
        self._shift = np.uint64(shift)
        self._tag_shift = np.uint64(other_shift if tag_shift is None else tag_shift)
        own, other = ((1 << bits) - 1) << shift, ((1 << bits) - 1) << other_shift
        self._own, self._other = np.uint64(own), np.uint64(other)
        self._shared = np.uint64((1 << _FINGERPRINT_BITS) - 1 - own - other)
        self._is_first = is_first
        # Buckets below `_split` have been split at this level already.
        self._level_bits = _FIRST_LEVEL_BITS
        self._split = 0
        self._count = 0
        self._buckets = Buckets()
        self._buckets.grow(1 << _FIRST_LEVEL_BITS)
        # Fingerprints without the other half, sorted.
        self._hot = np.zeros(0, np.uint64)
        self._hot_halves: HalfKeyTables | None = None

    @property
    def size_bytes(self) -> int:
        """The memory of the buckets, and of all that is nested for hot halves."""
        nested = 0 if self._hot_halves is None else self._hot_halves.size_bytes
        return self._buckets.size_bytes + self._hot.nbytes + nested

    def add(self, fingerprints: Fingerprints, rows: Rows) -> None:
        """Add fingerprints, ``(n,)``, that have these rows; what has a hot half goes to the nested tables."""
        if self._hot_halves is not None:
            hot = self.are_hot(fingerprints)
            self._hot_halves.add(fingerprints[hot], rows[hot])
            fingerprints, rows = fingerprints[~hot], rows[~hot]
        split = self._split_for(len(rows))
        if len(split):
            fingerprints = np.concatenate((fingerprints, self._held[split]))
            rows = np.concatenate((rows, split))
        long = self._put(fingerprints, rows)
        if len(long) and self._bits > _LEAST_BITS:
            self._relieve(long)

    def are_hot(self, fingerprints: Fingerprints) -> npt.NDArray[np.bool_]:
        """Tell of fingerprints of any shape, bool of the same, whether this table's half of them is hot."""
        if not len(self._hot):
            return np.zeros(fingerprints.shape, np.bool_)
        halves = fingerprints & ~self._other
        found: npt.NDArray[np.bool_] = (
            self._hot.take(np.searchsorted(self._hot, halves), mode="clip") == halves
        )
        return found

    def search(self, queries: Queries, *, max_distance_bits: int) -> Iterator[Pairs]:
        """Find the pairs whose own halves differ in one bit at most.

        The second table leaves out what the first finds.

        Yields:
            Pairs as `HalfKeyTables.search` has them, uint64 ``(m,)``.
        """
        flips = self._flips(min(self._level_bits + 1, self._bits) if max_distance_bits else 0)
        buckets = self._addresses(queries.fingerprints, flips)
        tags = self._tags(queries.fingerprints)
        for probes, rows in self._buckets.near(buckets, tags, max_distance_bits):
            numbers = probes // len(flips)
            differences = queries.fingerprints[numbers] ^ self._held[rows]
            distances = np.bitwise_count(differences)
            near = (distances >= queries.least_bits[numbers]) & (distances <= queries.most_bits[numbers])
            near &= differences & self._shared == 0
            near &= np.bitwise_count(differences & self._own) <= 1
            if not self._is_first:
                # The others are found by the first table.
                near &= np.bitwise_count(differences & self._other) > 1
            # The last bit of an address leads back where the bucket has not been split yet.
            near &= (probes % len(flips) == 0) | (buckets.reshape(-1)[probes] != buckets[numbers, 0])
            yield pack(queries.positions[numbers[near]], rows[near])
        if self._hot_halves is not None:
            yield from self._hot_halves.search(
                self._among_hot(queries, max_distance_bits), max_distance_bits=max_distance_bits
            )

    def _among_hot(self, queries: Queries, max_distance_bits: int) -> Queries:
        """Return the queries that remain for the hot halves at most one bit away."""
        flips = self._flips(self._bits if max_distance_bits else 0) << self._shift
        halves = queries.fingerprints[:, None] ^ flips
        numbers, ways = np.nonzero(self.are_hot(halves))
        flipped = (ways > 0).astype(np.int8)
        most = queries.most_bits[numbers] - flipped
        # What differs less in the other half is found by the first table.
        least = np.maximum(queries.least_bits[numbers] - flipped, np.int8(0 if self._is_first else 2))
        possible = least <= most
        numbers, ways = numbers[possible], ways[possible]
        return Queries(
            queries.fingerprints[numbers] ^ flips[ways],
            queries.positions[numbers],
            least[possible],
            most[possible],
        )

    def _flips(self, bits: int) -> Fingerprints:
        """Return no flip, then one of each of the half's low bits, uint64 ``(1 + bits,)``."""
        return np.concatenate(([0], 1 << np.arange(bits))).astype(np.uint64)

    def _tags(self, fingerprints: Fingerprints) -> Rows:
        return (fingerprints >> self._tag_shift & np.uint64((1 << _TAG_BITS) - 1)).astype(np.uint32)

    def _addresses(self, fingerprints: Fingerprints, flips: Fingerprints) -> Ints:
        """Return buckets, ``(n, flips)``: by one more bit where the bucket has been split."""
        halves = fingerprints >> self._shift & np.uint64((1 << self._bits) - 1)
        if self._shared:
            spread = (fingerprints & self._shared) * _SPREAD
            spread ^= spread >> np.uint64(32)
            halves ^= spread * _SPREAD >> np.uint64(32)
        halves &= np.uint64((2 << self._level_bits) - 1)
        addresses = halves.astype(np.int64)[:, None] ^ flips.astype(np.int64)
        addresses -= (addresses >= self._bucket_count).astype(np.int64) << self._level_bits
        return addresses

    @property
    def _bucket_count(self) -> int:
        return (1 << self._level_bits) + self._split

    def _put(self, fingerprints: Fingerprints, rows: Rows) -> Ints:
        buckets = self._addresses(fingerprints, self._flips(0)).reshape(-1)
        order = np.argsort(buckets)
        return self._buckets.put(buckets[order], self._tags(fingerprints)[order], rows[order])

    def _split_for(self, count: int) -> Rows:
        """Make buckets for so many more rows; return those that lose their place by that."""
        taken_out = [np.zeros(0, np.uint32)]
        bucket_count = int((self._count + count) / _MEAN_LOAD)
        if not self._count and bucket_count > self._bucket_count:
            self._level_bits = bucket_count.bit_length() - 1
            self._split = bucket_count - (1 << self._level_bits)
            self._buckets.grow(bucket_count)
        while self._bucket_count < bucket_count:
            more = min(bucket_count - self._bucket_count, (1 << self._level_bits) - self._split)
            self._buckets.grow(self._bucket_count + more)
            taken_out.append(self._buckets.take_out(slice(self._split, self._split + more)))
            self._split += more
            if self._split == 1 << self._level_bits:
                self._level_bits += 1
                self._split = 0
        self._count += count
        return np.concatenate(taken_out)

    def _relieve(self, buckets: Ints) -> None:
        """Move what fills these buckets to the hot halves."""
        rows = self._buckets.take_out(buckets)
        fingerprints = self._held[rows]
        halves, numbers, counts = np.unique(
            fingerprints & ~self._other, return_inverse=True, return_counts=True
        )
        hot = counts > _HOT
        # Different halves crowd a bucket where the low bits of many are the same.
        _, places = np.unique(self._addresses(halves, self._flips(0))[:, 0], return_inverse=True)
        hot |= np.bincount(places, np.where(hot, 0, counts))[places] > _CROWDED
        if hot.any():
            if self._hot_halves is None:
                self._hot_halves = HalfKeyTables(
                    self._held, shift=self._other_shift, bits=self._bits, tag_shift=int(self._tag_shift)
                )
            self._hot = np.insert(self._hot, np.searchsorted(self._hot, halves[hot]), halves[hot])
            moved = hot[numbers]
            self._hot_halves.add(fingerprints[moved], rows[moved])
            self._count -= int(np.count_nonzero(moved))
            fingerprints, rows = fingerprints[~moved], rows[~moved]
        self._put(fingerprints, rows)

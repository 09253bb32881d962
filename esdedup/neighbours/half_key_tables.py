"""Hash tables of fingerprints by half keys, with nested tables for keys that very many share.

Two fingerprints within 3 bits differ in at most 1 bit in one of their halves. So every fingerprint is in
two hash tables, one for each half, and a search reads the bucket of the query's half and those of all
halves one bit away. Where only equal fingerprints are searched for, one table is enough.

A half that very many fingerprints share would overfill one bucket. Such a half is hot. Fingerprints
with a hot half move to nested tables of the same kind, over the halves of the other bits: 32 bits become
16, and 8. At most 256 distinct fingerprints agree in all but 8 bits, and a chain of buckets can hold
those.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.buckets import Buckets
from esdedup.neighbours.half_key import Fingerprints, HalfKey
from esdedup.neighbours.hot_limits import HotLimits
from esdedup.neighbours.linear_hashing import LinearHashing
from esdedup.neighbours.pairs import Pairs, pack
from esdedup.neighbours.queries import Queries
from esdedup.neighbours.slots import Ints, Rows, Tags

_FINGERPRINT_BITS = 64
# The size of a tag, and the rows of a bucket on average, eight of which need no chain. A search for equal
# fingerprints reads one bucket, so that chains cost little, ...
_EXACT_TAG_BITS, _EXACT_LOAD = 8, 24
# ... and one within some bits reads some twenty; its tags must tell fingerprints apart by their distance.
_NEAR_TAG_BITS, _NEAR_LOAD = 16, 6
# Halves of this many bits are never hot.
_LEAST_BITS = 8
# So many queries, each with its buckets, fit the processor's cache.
_QUERIES_AT_ONCE, _EXACT_QUERIES_AT_ONCE = 1_024, 16_384


class HalfKeyTables:
    """Rows searched by the distance of their fingerprints. Few fingerprints may be equal."""

    def __init__(
        self,
        fingerprints: Fingerprints,
        *,
        shift: int = 0,
        bits: int = _FINGERPRINT_BITS,
        limits: HotLimits,
        max_distance_bits: int,
    ) -> None:
        """Make empty tables.

        Args:
            fingerprints: All fingerprints by row, uint64; the owner grows it in place.
            shift: The lowest of the bits that are halved.
            bits: How many bits are halved. All other bits must be equal for two fingerprints to match.
            limits: When a key is hot.
            max_distance_bits: The largest distance that searches will ask for, inclusive, 0 to 3.
        """
        half = bits // 2
        upper = HalfKey(shift=shift + half, other_shift=shift, bits=half)
        lower = HalfKey(shift=shift, other_shift=shift + half, bits=half)
        # The first table finds all equal fingerprints.
        keys = (upper, lower) if max_distance_bits else (upper,)
        self._tables = [
            _Table(
                fingerprints,
                key,
                is_first=key is upper,
                limits=limits,
                max_distance_bits=max_distance_bits,
            )
            for key in keys
        ]

    @property
    def size_bytes(self) -> int:
        """The memory of all tables, without the fingerprints."""
        return sum(table.size_bytes for table in self._tables)

    def add(self, fingerprints: Fingerprints, rows: Rows) -> None:
        """Add rows, uint32 ``(n,)``, and their fingerprints, uint64 ``(n,)``."""
        for table in self._tables:
            table.add(fingerprints, rows)

    def remove(self, fingerprints: Fingerprints, rows: Rows) -> None:
        """Remove rows that are there, uint32 ``(n,)``, with their fingerprints, uint64 ``(n,)``."""
        for table in self._tables:
            table.remove(fingerprints, rows)

    def are_hot(self, fingerprints: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return which fingerprints have a hot half: bool ``(n,)``."""
        are_hot: npt.NDArray[np.bool_] = np.any(
            [table.are_hot(fingerprints) for table in self._tables], axis=0
        )
        return are_hot

    def search(self, queries: Queries, *, max_distance_bits: int) -> Iterator[Pairs]:
        """Find the rows within the distances of queries.

        Args:
            queries: What to search for.
            max_distance_bits: At least every query's `most_bits`; 0 to 3.

        Yields:
            Packed pairs of a query's position and a row, ``(m,)``, without repeats, in any order.
        """
        # The first table finds all equal fingerprints.
        tables = self._tables if max_distance_bits else self._tables[:1]
        at_once = _QUERIES_AT_ONCE if max_distance_bits else _EXACT_QUERIES_AT_ONCE
        for first in range(0, len(queries), at_once):
            part = queries.part(first, first + at_once)
            for table in tables:
                yield from table.search(part, max_distance_bits=max_distance_bits)


class _Table:
    """Rows by one half key of their fingerprints.

    The first table finds the pairs whose keys differ in at most one bit; the second finds the other pairs,
    so that none is found twice.
    """

    def __init__(
        self,
        fingerprints: Fingerprints,
        key: HalfKey,
        *,
        is_first: bool,
        limits: HotLimits,
        max_distance_bits: int,
    ) -> None:
        self._fingerprints = fingerprints
        self._key = key
        self._is_first = is_first
        self._limits = limits
        self._max_distance_bits = max_distance_bits
        self._hashing = LinearHashing()
        tag_bits, self._mean_load = (
            (_NEAR_TAG_BITS, _NEAR_LOAD) if max_distance_bits else (_EXACT_TAG_BITS, _EXACT_LOAD)
        )
        # A tag has the highest bits of the half masked out of the key, and no others.
        used_bits = min(tag_bits, key.bits)
        self._tag_shift = np.uint64(key.other_shift + key.bits - used_bits)
        self._tag_mask = np.uint64((1 << used_bits) - 1)
        self._tag_dtype = np.dtype(f"u{tag_bits // 8}")
        self._buckets = Buckets(tag_bits=tag_bits, long_chain=limits.chain_length)
        self._buckets.grow(self._hashing.bucket_count)
        # How many rows the buckets hold.
        self._count = 0
        # Sorted.
        self._hot_keys = np.zeros(0, np.uint64)
        self._hot_tables: HalfKeyTables | None = None

    @property
    def size_bytes(self) -> int:
        """The memory of the buckets and of the nested tables."""
        nested = 0 if self._hot_tables is None else self._hot_tables.size_bytes
        return self._buckets.size_bytes + self._hot_keys.nbytes + nested

    def add(self, fingerprints: Fingerprints, rows: Rows) -> None:
        """Add rows, uint32 ``(n,)``, and their fingerprints, uint64 ``(n,)``."""
        if self._hot_tables is not None:
            is_hot = self.are_hot(fingerprints)
            self._hot_tables.add(fingerprints[is_hot], rows[is_hot])
            fingerprints, rows = fingerprints[~is_hot], rows[~is_hot]
        displaced = self._make_room(len(rows))
        if len(displaced):
            fingerprints = np.concatenate((fingerprints, self._fingerprints[displaced]))
            rows = np.concatenate((rows, displaced))
        long_chains = self._put(fingerprints, rows)
        if len(long_chains) and self._key.bits > _LEAST_BITS:
            self._relieve(long_chains)

    def remove(self, fingerprints: Fingerprints, rows: Rows) -> None:
        """Remove rows that are there, uint32 ``(n,)``, with their fingerprints, uint64 ``(n,)``.

        A key that was hot stays so, and buckets stay: what is added later needs them.
        """
        if self._hot_tables is not None:
            is_hot = self.are_hot(fingerprints)
            self._hot_tables.remove(fingerprints[is_hot], rows[is_hot])
            fingerprints, rows = fingerprints[~is_hot], rows[~is_hot]
        self._count -= len(rows)
        self._buckets.remove(self._buckets_near(fingerprints, 0)[:, 0], rows)

    def are_hot(self, fingerprints: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return which fingerprints, of any shape, have a hot key in this table: bool of that shape."""
        if not len(self._hot_keys):
            return np.zeros(fingerprints.shape, np.bool_)
        keys = self._key.of(fingerprints)
        is_hot: npt.NDArray[np.bool_] = (
            self._hot_keys.take(np.searchsorted(self._hot_keys, keys), mode="clip") == keys
        )
        return is_hot

    def search(self, queries: Queries, *, max_distance_bits: int) -> Iterator[Pairs]:
        """Find this table's part of the pairs that `HalfKeyTables.search` finds."""
        buckets = self._buckets_near(queries.fingerprints, max_distance_bits)
        tags = self._tags(queries.fingerprints)
        probe_count = buckets.shape[1]
        # Where the key differs in one bit, the tag may differ in one fewer.
        most_bits = np.full(probe_count, max(0, max_distance_bits - 1), np.uint16)
        most_bits[0] = max_distance_bits
        for probes, rows in self._buckets.search(buckets, tags, most_bits):
            numbers = probes // probe_count
            # Flipping the highest address bit leads to the same bucket if that has not been split.
            is_new = (probes % probe_count == 0) | (buckets.reshape(-1)[probes] != buckets[numbers, 0])
            is_found = is_new & self._are_matches(queries, numbers, rows)
            yield pack(queries.positions[numbers[is_found]], rows[is_found])
        if self._hot_tables is not None:
            hot_queries = self._hot_queries(queries, max_distance_bits)
            yield from self._hot_tables.search(hot_queries, max_distance_bits=max_distance_bits)

    def _buckets_near(self, fingerprints: Fingerprints, max_distance_bits: int) -> Ints:
        """Return the bucket of each key, then those of all keys one bit away: int64 ``(n, probes)``."""
        bits = min(self._hashing.address_bits, self._key.bits) if max_distance_bits else 0
        return self._hashing.buckets_of(self._key.hashes_of(fingerprints), self._key.flips(bits))

    def _are_matches(self, queries: Queries, numbers: Ints, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows match their queries and are not left to the other table: bool ``(n,)``."""
        differences = queries.fingerprints[numbers] ^ self._fingerprints[rows]
        distances = np.bitwise_count(differences)
        matches = self._key.are_near(differences)
        matches &= (distances >= queries.least_bits[numbers]) & (distances <= queries.most_bits[numbers])
        if not self._is_first:
            matches &= ~self._key.others_are_near(differences)
        return matches

    def _hot_queries(self, queries: Queries, max_distance_bits: int) -> Queries:
        """Return queries for the nested tables: one for each hot key at most one bit from a query's key."""
        flips = self._key.flips(self._key.bits if max_distance_bits else 0) << np.uint64(self._key.shift)
        numbers, chosen = np.nonzero(self.are_hot(queries.fingerprints[:, None] ^ flips))
        # The flipped bit uses up one of the bits that may differ.
        spent = (chosen > 0).astype(np.int8)
        most_bits = queries.most_bits[numbers] - spent
        # The first table finds the rows that differ in fewer than 2 bits of the other half.
        least_bits = np.maximum(queries.least_bits[numbers] - spent, np.int8(0 if self._is_first else 2))
        possible = least_bits <= most_bits
        numbers, chosen = numbers[possible], chosen[possible]
        return Queries(
            queries.fingerprints[numbers] ^ flips[chosen],
            queries.positions[numbers],
            least_bits[possible],
            most_bits[possible],
        )

    def _tags(self, fingerprints: Fingerprints) -> Tags:
        return (fingerprints >> self._tag_shift & self._tag_mask).astype(self._tag_dtype)

    def _put(self, fingerprints: Fingerprints, rows: Rows) -> Ints:
        """Put rows into their buckets; return the buckets whose chains have become long, ``(m,)``."""
        buckets = self._buckets_near(fingerprints, 0)[:, 0]
        order = np.argsort(buckets)
        return self._buckets.add(buckets[order], self._tags(fingerprints)[order], rows[order])

    def _make_room(self, count: int) -> Rows:
        """Add buckets for `count` more rows; return the rows of buckets split by that, uint32 ``(m,)``."""
        was_empty = not self._count
        self._count += count
        bucket_count = self._count // self._mean_load
        if was_empty:
            self._hashing.start_with(bucket_count)
        split = self._hashing.grow_to(bucket_count)
        self._buckets.grow(self._hashing.bucket_count)
        displaced = [self._buckets.empty(np.arange(part.start, part.stop)) for part in split]
        return np.concatenate([np.zeros(0, np.uint32), *displaced])

    def _relieve(self, buckets: Ints) -> None:
        """Look for hot keys in these buckets, and move their rows to the nested tables."""
        rows = self._buckets.empty(buckets)
        fingerprints = self._fingerprints[rows]
        keys, numbers, counts = np.unique(self._key.of(fingerprints), return_inverse=True, return_counts=True)
        is_hot = self._too_frequent(keys, counts)
        moves = is_hot[numbers]
        if moves.any():
            self._hot_keys = np.insert(
                self._hot_keys, np.searchsorted(self._hot_keys, keys[is_hot]), keys[is_hot]
            )
            self._nested().add(fingerprints[moves], rows[moves])
            self._count -= int(np.count_nonzero(moves))
        self._put(fingerprints[~moves], rows[~moves])

    def _too_frequent(self, keys: Fingerprints, counts: Ints) -> npt.NDArray[np.bool_]:
        """Return which distinct keys are hot, given how many rows have each: bool ``(n,)``."""
        is_hot: npt.NDArray[np.bool_] = counts > self._limits.max_per_key
        # Many keys with few rows each overfill one bucket if their lowest bits are equal.
        _, places = np.unique(self._buckets_near(keys, 0)[:, 0], return_inverse=True)
        left = np.bincount(places, np.where(is_hot, 0, counts))
        is_hot |= left[places] > self._limits.max_per_bucket
        return is_hot

    def _nested(self) -> HalfKeyTables:
        """Return the nested tables, made when they are first needed."""
        if self._hot_tables is None:
            self._hot_tables = HalfKeyTables(
                self._fingerprints,
                shift=self._key.other_shift,
                bits=self._key.bits,
                limits=self._limits,
                max_distance_bits=self._max_distance_bits,
            )
        return self._hot_tables

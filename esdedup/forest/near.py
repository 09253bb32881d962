"""Which fingerprints lie within three bits of each other, in memory.

Of two fingerprints within 3 bits, one of the two 32-bit halves differs in at most 1 bit. So every
fingerprint stands in two hash tables, one for each half, whose address is the half's low bits. A
search looks into the bucket of its own address and of each address one bit away: some 20 buckets a
half, each one line of the processor's cache. Bits above the address change no bucket. Tables grow a
few buckets at a time (linear hashing; Litwin, VLDB 1980), so that no addition is much slower than
the others.
"""

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.simhash import distance_bits

_Rows = npt.NDArray[np.int64]

MAX_DISTANCE_BITS = 3
"""What two halves can promise: 3 bits in two halves leave one with 1 at most."""

_HALF_BITS = 32
# One line of the cache is eight fingerprints; five of the slots are taken on average.
_SLOTS = 8
_MEAN_LOAD = 5
_FIRST_LEVEL_BITS = 4
_SPILLED = np.uint8(_SLOTS + 1)
_EMPTY = np.uint32(0xFFFF_FFFF)
# Arrays grow by this part of their size: large steps would show as pauses.
_GROWTH = 16
# So many queries at once keep what they look at in the cache.
_QUERIES_AT_ONCE = 128


class HammingIndex:
    """Fingerprints by row, searched by distance. At most 4,294,967,294 of them."""

    def __init__(self, *, max_distance_bits: int = MAX_DISTANCE_BITS) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Inclusive, 0 to 3.

        Raises:
            SettingError: The distance is more than this index finds.
        """
        if not 0 <= max_distance_bits <= MAX_DISTANCE_BITS:
            raise SettingError(f"max_distance_bits is {max_distance_bits}; it must be from 0 to 3")
        self._tables = (_HalfTable(_HALF_BITS, max_distance_bits), _HalfTable(0, max_distance_bits))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return sum(table.size_bytes for table in self._tables)

    def add(self, fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add uint64 ``(n,)``; they get the next rows, in their order."""
        rows = np.arange(self._count, self._count + len(fingerprints), dtype=np.uint32)
        self._count += len(fingerprints)
        for table in self._tables:
            table.add(fingerprints, rows)

    def search(self, fingerprints: npt.NDArray[np.uint64]) -> tuple[_Rows, _Rows]:
        """Find all pairs within the distance.

        Returns:
            Positions in `fingerprints` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        found = [table.search(fingerprints) for table in self._tables]
        # Both halves find a pair that differs in neither of them much.
        keys = np.unique(np.concatenate(found))
        return (keys >> np.uint64(_HALF_BITS)).astype(np.int64), (keys & np.uint64(_EMPTY)).astype(np.int64)


class _Buckets:
    """Buckets of eight slots, and where the rest of a full one stands."""

    def __init__(self) -> None:
        self.fingerprints = np.zeros((0, _SLOTS), np.uint64)
        self.rows = np.zeros((0, _SLOTS), np.uint32)
        # Slots taken; `_SPILLED` where there is a rest.
        self.fill = np.zeros(0, np.uint8)
        # The overflow bucket with the rest; 0 is none.
        self.rest = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return len(self.fill)

    @property
    def size_bytes(self) -> int:
        return self.fingerprints.nbytes + self.rows.nbytes + self.fill.nbytes + self.rest.nbytes

    def grow(self, count: int) -> None:
        """Make room for `count` buckets at least."""
        before = len(self)
        if count > before:
            size = max(count, before + before // _GROWTH)
            # In place: where the memory can be extended, nothing is copied.
            self.fingerprints.resize((size, _SLOTS), refcheck=False)
            self.rows.resize((size, _SLOTS), refcheck=False)
            self.fill.resize(size, refcheck=False)
            self.rest.resize(size, refcheck=False)
            self.rows[before:] = _EMPTY

    def put(
        self, buckets: _Rows, slots: _Rows, fingerprints: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]
    ) -> None:
        at = buckets * _SLOTS + slots
        self.fingerprints.reshape(-1)[at] = fingerprints
        self.rows.reshape(-1)[at] = rows

    def near(
        self, buckets: _Rows, fingerprints: npt.NDArray[np.uint64], max_distance_bits: int
    ) -> tuple[_Rows, npt.NDArray[np.uint32]]:
        """Compare each fingerprint with the slots of its buckets.

        Args:
            buckets: ``(n, probes)``.
            fingerprints: ``(n,)``.
            max_distance_bits: Inclusive.

        Returns:
            Positions in `fingerprints`, and rows.
        """
        held = self.fingerprints.take(buckets.reshape(-1), axis=0).reshape(len(fingerprints), -1)
        hits = np.flatnonzero(distance_bits(held, fingerprints[:, None]) <= max_distance_bits)
        slots = buckets.reshape(-1)[hits // _SLOTS] * _SLOTS + hits % _SLOTS
        rows = self.rows.reshape(-1)[slots]
        taken = rows != _EMPTY
        return hits[taken] // held.shape[1], rows[taken]


class _HalfTable:
    """Fingerprints by one of their halves."""

    def __init__(self, shift: int, max_distance_bits: int) -> None:
        self._shift = np.uint64(shift)
        self._max_distance_bits = max_distance_bits
        # Buckets below `_split` have been split at this level already.
        self._level_bits = _FIRST_LEVEL_BITS
        self._split = 0
        self._count = 0
        self._main = _Buckets()
        self._main.grow(1 << _FIRST_LEVEL_BITS)
        self._overflow = _Buckets()
        self._overflow.grow(2)
        self._unused = [1]

    @property
    def size_bytes(self) -> int:
        return self._main.size_bytes + self._overflow.size_bytes

    def add(self, fingerprints: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        self._count += len(fingerprints)
        self._split_until(-(-self._count // _MEAN_LOAD))
        self._insert(fingerprints, rows)

    def search(self, fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return pairs as keys: the position in `fingerprints`, then the row, 32 bits each."""
        flips = np.concatenate(([0], 1 << np.arange(self._level_bits + 1))).astype(np.uint64)
        found = [np.zeros(0, np.uint64)]
        spilled_queries, rests = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
        for first in range(0, len(fingerprints), _QUERIES_AT_ONCE):
            queries = fingerprints[first : first + _QUERIES_AT_ONCE]
            buckets = self._addresses((queries >> self._shift)[:, None] ^ flips)
            positions, rows = self._main.near(buckets, queries, self._max_distance_bits)
            found.append(_pair_keys(positions + first, rows))
            spilled = np.flatnonzero(self._main.fill.take(buckets.reshape(-1)) == _SPILLED)
            spilled_queries.append(spilled // len(flips) + first)
            rests.append(self._main.rest[buckets.reshape(-1)[spilled]])
        positions_left, rest = np.concatenate(spilled_queries), np.concatenate(rests)
        while len(rest):
            at = rest.astype(np.int64)
            positions, rows = self._overflow.near(
                at[:, None], fingerprints[positions_left], self._max_distance_bits
            )
            found.append(_pair_keys(positions_left[positions], rows))
            rest = self._overflow.rest[at]
            more = rest != 0
            positions_left, rest = positions_left[more], rest[more]
        return np.concatenate(found)

    def _addresses(self, halves: npt.NDArray[np.uint64]) -> _Rows:
        """Return the bucket of each half: by one more bit where the bucket has been split."""
        wide = (halves & np.uint64((2 << self._level_bits) - 1)).astype(np.int64)
        return np.where(wide < self._bucket_count, wide, wide & ((1 << self._level_bits) - 1))

    @property
    def _bucket_count(self) -> int:
        return (1 << self._level_bits) + self._split

    def _insert(self, fingerprints: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        buckets = self._addresses(fingerprints >> self._shift)
        order = np.argsort(buckets, kind="stable")
        buckets, fingerprints, rows = buckets[order], fingerprints[order], rows[order]
        slots = np.minimum(self._main.fill[buckets], _SLOTS) + _rank(buckets)
        fits = slots < _SLOTS
        self._main.put(buckets[fits], slots[fits], fingerprints[fits], rows[fits])
        last = np.flatnonzero(np.diff(buckets, append=-1))
        taken = slots[last] + 1
        spilled = self._main.fill[buckets[last]] == _SPILLED
        self._main.fill[buckets[last]] = np.where(spilled, _SPILLED, np.minimum(taken, _SLOTS))
        if not fits.all():
            self._spill(buckets[~fits], fingerprints[~fits], rows[~fits])

    def _spill(
        self, buckets: _Rows, fingerprints: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]
    ) -> None:
        """Put what full buckets cannot take (sorted by bucket) into overflow buckets, newest first."""
        while len(buckets):
            heads = self._main.rest[buckets].astype(np.int64)
            room = np.where(
                heads != 0, _SLOTS - np.minimum(self._overflow.fill[heads], _SLOTS).astype(np.int64), 0
            )
            first = np.flatnonzero(np.diff(buckets, prepend=-1))
            full = first[room[first] == 0]
            if len(full):
                fresh = self._fresh(len(full))
                self._overflow.rest[fresh] = self._main.rest[buckets[full]]
                self._main.rest[buckets[full]] = fresh
                self._main.fill[buckets[full]] = _SPILLED
                continue
            slots = _SLOTS - room + _rank(buckets)
            fits = slots < _SLOTS
            self._overflow.put(heads[fits], slots[fits], fingerprints[fits], rows[fits])
            np.maximum.at(self._overflow.fill, heads[fits], (slots[fits] + 1).astype(np.uint8))
            buckets, fingerprints, rows = buckets[~fits], fingerprints[~fits], rows[~fits]

    def _fresh(self, count: int) -> _Rows:
        """Take overflow buckets that are empty."""
        if len(self._unused) < count:
            before = len(self._overflow)
            self._overflow.grow(before + max(count, before // _GROWTH))
            self._unused += range(before, len(self._overflow))
        fresh = self._unused[-count:]
        del self._unused[-count:]
        return np.array(fresh, np.int64)

    def _split_until(self, bucket_count: int) -> None:
        while self._bucket_count < bucket_count:
            count = min(bucket_count - self._bucket_count, (1 << self._level_bits) - self._split)
            self._main.grow(self._bucket_count + count)
            fingerprints, rows = self._take_out(slice(self._split, self._split + count))
            self._split += count
            if self._split == 1 << self._level_bits:
                self._level_bits += 1
                self._split = 0
            self._insert(fingerprints, rows)

    def _take_out(self, buckets: slice) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Empty buckets, with what they have spilled; return what was in them."""
        held, rows = [self._main.fingerprints[buckets]], [self._main.rows[buckets]]
        rest = self._main.rest[buckets][self._main.fill[buckets] == _SPILLED].astype(np.int64)
        while len(rest):
            held.append(self._overflow.fingerprints[rest])
            rows.append(self._overflow.rows[rest])
            self._overflow.rows[rest] = _EMPTY
            self._overflow.fill[rest] = 0
            self._unused += rest.tolist()
            rest = self._overflow.rest[rest].astype(np.int64)
            rest = rest[rest != 0]
        all_rows = np.concatenate(rows)
        taken = all_rows != _EMPTY
        contents = np.concatenate(held)[taken], all_rows[taken]
        self._main.rows[buckets] = _EMPTY
        self._main.fill[buckets] = 0
        self._main.rest[buckets] = 0
        return contents


def _rank(groups: _Rows) -> _Rows:
    """Number the members of each group, from 0; `groups` is sorted."""
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.arange(len(groups)) - np.repeat(first, np.diff(first, append=len(groups)))


def _pair_keys(positions: _Rows, rows: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    return positions.astype(np.uint64) << np.uint64(_HALF_BITS) | rows

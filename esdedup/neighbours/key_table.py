"""A hash table in arrays: for each 64-bit key a few numbers, whole batches at a time."""

import itertools
import sys

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Values = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

_FREE, _ONE = np.uint64(0), np.uint64(1)
# Stands for the key 0.
_ZERO = np.uint64(0x9E3779B97F4A7C15)
# The keys of a bucket fill a line of the processor's cache, and are compared at once.
_SLOTS = 8
# Of an empty table, which many stay, and of one that has grown once.
_FIRST_BUCKETS, _NEXT_BUCKETS = 1 << 5, 1 << 14
# Of the slots. Beyond, many buckets are full, and their keys are in the next.
_MOST_FILLED = 0.6
_MOVED_AT_ONCE = 4_096
_LITTLE = sys.byteorder == "little"


class KeyTable:
    """Maps keys to rows of numbers. Nothing is ever removed.

    Keys must be hashes: their low bits choose the bucket. A key whose bucket is full is in the next.
    """

    def __init__(self, columns: int) -> None:
        """Make an empty table, with so many numbers of 32 bits to a key."""
        self._keys = np.zeros((_FIRST_BUCKETS, _SLOTS), np.uint64)
        self._values = np.zeros((_FIRST_BUCKETS * _SLOTS, columns), np.uint32)
        self._count = 0

    def emptied(self) -> "KeyTable":
        """Return an empty table with as much room, so that it need not grow again."""
        table = KeyTable(self._values.shape[1])
        table._keys, table._values = np.zeros_like(self._keys), np.zeros_like(self._values)
        return table

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory of the table, including the room for more keys."""
        return self._keys.nbytes + self._values.nbytes

    @staticmethod
    def bytes_for(count: int, *, columns: int) -> int:
        """Return the memory of a table that has grown to hold so many keys."""
        slot_bytes = np.dtype(np.uint64).itemsize + columns * np.dtype(np.uint32).itemsize
        return _buckets_for(count, _FIRST_BUCKETS) * _SLOTS * slot_bytes

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Values]:
        """Return which keys are there, bool ``(n,)``, and their values, ``(n, columns)``; 0 for others."""
        found, places = self._find(_stored(keys))
        values = self._values.take(places, axis=0)
        values[~found] = 0
        return found, values

    def put(self, keys: Keys, values: Values) -> Values:
        """Set the values of keys, and return the values before, ``(n, columns)``, 0 for new keys.

        Args:
            keys: Each of them once, ``(n,)``.
            values: ``(n, columns)``.
        """
        keys = _stored(keys)
        self._grow(self._count + len(keys))
        found, places = self._find(keys)
        before = self._values.take(places, axis=0)
        before[~found] = 0
        self._values[places[found]] = values[found]
        self._add(keys[~found], values[~found], places[~found])
        return before

    def all(self) -> tuple[Keys, Values]:
        """Return all keys and their values; the key 0 as another."""
        filled = self._keys.reshape(-1).nonzero()[0]
        return self._keys.reshape(-1)[filled], self._values[filled]

    def _find(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Ints]:
        """Return which keys are there, and their places; for others free places, perhaps one for several."""
        return self._find_from(keys, (keys & np.uint64(len(self._keys) - 1)).view(np.int64))

    def _find_from(self, keys: Keys, buckets: Ints) -> tuple[npt.NDArray[np.bool_], Ints]:
        """Search from these buckets on."""
        held = self._keys.take(buckets, axis=0)
        # The slots of a bucket as the bytes of a number: which have the key, and which are free.
        matches, free = ((held == each).view(np.uint64)[:, 0] for each in (keys[:, None], _FREE))
        found = matches > 0
        slots = _first_byte(np.where(found, matches, free))
        places = buckets * _SLOTS + slots
        passed = (slots == _SLOTS).nonzero()[0]
        if len(passed):
            # Their buckets are full.
            after = (buckets[passed] + 1) & (len(self._keys) - 1)
            found[passed], places[passed] = self._find_from(keys[passed], after)
        return found, places

    def _add(self, keys: Keys, values: Values, places: Ints) -> None:
        """Add keys that are not there, beginning with these free places."""
        self._count += len(keys)
        held = self._keys.reshape(-1)
        while len(keys):
            # Of several keys for one place, the last gets it.
            held[places], self._values[places] = keys, values
            lost = (held.take(places) != keys).nonzero()[0]
            if not len(lost):
                return
            keys, values = keys.take(lost), values.take(lost, axis=0)
            _, places = self._find(keys)

    def _grow(self, count: int) -> None:
        """Make room for so many keys."""
        buckets = _buckets_for(count, len(self._keys))
        if buckets == len(self._keys):
            return
        keys, values = self._keys, self._values.reshape(len(self._keys), _SLOTS, -1)
        self._keys = np.zeros((buckets, _SLOTS), np.uint64)
        self._values = np.zeros((buckets * _SLOTS, values.shape[2]), np.uint32)
        self._count = 0
        # Keys of one bucket would compete for places, so they are moved one after the other.
        for start, slot in itertools.product(range(0, len(keys), _MOVED_AT_ONCE), range(_SLOTS)):
            some = keys[start : start + _MOVED_AT_ONCE, slot]
            filled = some != _FREE
            moved = some[filled]
            self._add(moved, values[start : start + _MOVED_AT_ONCE, slot][filled], self._find(moved)[1])


def _buckets_for(count: int, buckets: int) -> int:
    """Return how many buckets a table with so many now needs to hold so many keys."""
    before = buckets
    while count > _MOST_FILLED * _SLOTS * buckets:
        buckets *= 2
    return buckets if buckets == before else max(buckets, _NEXT_BUCKETS)


def _first_byte(numbers: Keys) -> npt.NDArray[np.uint8]:
    """Return the place in memory of the first byte of each number that is not 0; `_SLOTS` if none is."""
    if not _LITTLE:
        numbers = numbers.byteswap()
    below = (numbers & (~numbers + _ONE)) - _ONE
    return np.bitwise_count(below) >> np.uint8(3)


def _stored(keys: Keys) -> Keys:
    return np.where(keys == _FREE, _ZERO, keys)

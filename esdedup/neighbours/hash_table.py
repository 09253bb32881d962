"""A hash table from 64-bit keys to a few 32-bit numbers, with its entries in columns."""

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.columns import grow

Keys = npt.NDArray[np.uint64]
Values = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]

_EMPTY = np.uint32(0xFFFF_FFFF)
_FIRST_BITS = 4
# Of the slots, at most this share is taken: searches of fuller tables take many steps.
_FULLEST = 0.75
# 2^64 divided by the golden ratio: multiplied by it, keys that differ anywhere differ in their high bits.
_MIXER = np.uint64(0x9E37_79B9_7F4A_7C15)


class HashTable:
    """Maps uint64 keys to rows of uint32 numbers; at most 4,294,967,294 keys, which stay for good.

    Entries stand in the order in which they came. Slots hold their places, by open addressing: an entry is
    in its key's own slot or, if that was taken, in the next free one.
    """

    def __init__(self, width: int) -> None:
        """Make an empty table.

        Args:
            width: How many numbers each key has.
        """
        self._keys = np.zeros(0, np.uint64)
        self._values = np.zeros((0, width), np.uint32)
        self._count = 0
        self._bits = _FIRST_BITS
        self._slots = np.full(1 << self._bits, _EMPTY)

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory of all arrays, including the room for more keys."""
        return self._keys.nbytes + self._values.nbytes + self._slots.nbytes

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Values]:
        """Return which keys are in the table, bool ``(n,)``, and their numbers, uint32 ``(n, width)``.

        Keys that are not have zeros.
        """
        entries = self._find(keys)
        found = entries >= 0
        values = np.zeros((len(keys), self._values.shape[1]), np.uint32)
        values[found] = self._values[entries[found]]
        return found, values

    def put(self, keys: Keys, values: Values) -> None:
        """Give keys their numbers, whether they are in the table or not.

        Args:
            keys: ``(n,)``, each once.
            values: ``(n, width)``.
        """
        entries = self._find(keys)
        is_new = entries < 0
        first, self._count = self._count, self._count + int(np.count_nonzero(is_new))
        entries[is_new] = np.arange(first, self._count)
        grow(self._keys, self._count)
        grow(self._values, self._count)
        self._keys[entries] = keys
        self._values[entries] = values
        if self._count > _FULLEST * len(self._slots):
            while self._count > _FULLEST * (1 << self._bits):
                self._bits += 1
            self._slots = np.full(1 << self._bits, _EMPTY)
            self._place(np.arange(self._count))
        else:
            self._place(entries[is_new])

    def _own_slots(self, keys: Keys) -> Ints:
        return ((keys * _MIXER) >> np.uint64(64 - self._bits)).astype(np.int64)

    def _find(self, keys: Keys) -> Ints:
        """Return the entry of each key, -1 for none: int64 ``(n,)``."""
        entries = np.full(len(keys), -1)
        slots = self._own_slots(keys)
        open_ = np.arange(len(keys))
        while len(open_):
            there = self._slots[slots]
            is_taken = there != _EMPTY
            open_, slots, there = open_[is_taken], slots[is_taken], there[is_taken]
            is_it = self._keys[there] == keys[open_]
            entries[open_[is_it]] = there[is_it]
            open_, slots = open_[~is_it], self._next(slots[~is_it])
        return entries

    def _place(self, entries: Ints) -> None:
        """Put entries, which have no slot yet, into free slots."""
        slots = self._own_slots(self._keys[entries])
        while len(entries):
            is_free = self._slots[slots] == _EMPTY
            # Of several entries for one free slot, the last gets it.
            self._slots[slots[is_free]] = entries[is_free]
            is_open = self._slots[slots] != entries
            entries, slots = entries[is_open], self._next(slots[is_open])

    def _next(self, slots: Ints) -> Ints:
        return (slots + 1) & (len(self._slots) - 1)

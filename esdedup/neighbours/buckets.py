"""Buckets of a hash table: a few slots each, and chains of overflow buckets for what they cannot take.

A slot is a tag and a row, 4 bytes each. The tag is 32 bits of the row's fingerprint: rows whose tag is
too far from the query's are no answer, and that is decided within one line of the processor's cache.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.columns import grow

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint32]
Tags = npt.NDArray[np.uint32]

SLOTS = 8
"""Slots of a main bucket."""

OVERFLOW_SLOTS = 8
"""Slots of an overflow bucket."""

LONG_CHAIN = 8
"""From how many overflow buckets on a chain is worth a look."""

_SPILLED = np.uint8(SLOTS + 1)
_EMPTY = np.uint32(0xFFFF_FFFF)
# So many slots compared at once keep what is looked at in the cache.
_SLOTS_AT_ONCE = 1 << 16


class _Slots:
    """Buckets as columns."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.tags = np.zeros((0, slots), np.uint32)
        # `_EMPTY` where nothing is.
        self.rows = np.zeros((0, slots), np.uint32)
        # Slots taken; `_SPILLED` where there is a rest.
        self.fill = np.zeros(0, np.uint8)
        # The overflow bucket with the rest; 0 is none.
        self.rest = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return len(self.fill)

    @property
    def size_bytes(self) -> int:
        """The memory of the four columns, with what they have ahead."""
        return self.tags.nbytes + self.rows.nbytes + self.fill.nbytes + self.rest.nbytes

    def grow(self, count: int) -> None:
        """Make room for `count` buckets at least, the new ones empty."""
        before = len(self)
        for column in (self.tags, self.rows, self.fill, self.rest):
            grow(column, count)
        self.rows[before:] = _EMPTY

    def put(self, buckets: Ints, slots: Ints, tags: Tags, rows: Rows) -> None:
        """Write tags and rows, all ``(n,)``, to these slots of these buckets; `fill` is left as it is."""
        at = buckets * self.slots + slots
        self.tags.reshape(-1)[at] = tags
        self.rows.reshape(-1)[at] = rows

    def near(self, buckets: Ints, tags: Tags, max_distance_bits: int) -> Iterator[tuple[Ints, Rows]]:
        """Compare each tag, ``(n,)``, with the slots of its buckets, ``(n, probes)``.

        Yields:
            Positions in the flat `buckets`, and the rows there whose tags are near, both ``(m,)``.
        """
        width = buckets.shape[1] * self.slots
        step = max(1, _SLOTS_AT_ONCE // width)
        for first in range(0, len(buckets), step):
            probes = buckets[first : first + step].reshape(-1)
            held = self.tags.take(probes, axis=0).reshape(-1, width)
            held ^= tags[first : first + step, None]
            hits = np.flatnonzero(np.bitwise_count(held) <= max_distance_bits)
            if len(hits):
                positions = hits // self.slots
                rows = self.rows.reshape(-1)[probes[positions] * self.slots + hits % self.slots]
                taken = rows != _EMPTY
                yield positions[taken] + first * buckets.shape[1], rows[taken]


class Buckets:
    """Numbered buckets, each as large as it has to be."""

    def __init__(self) -> None:
        self._main = _Slots(SLOTS)
        self._overflow = _Slots(OVERFLOW_SLOTS)
        # Number 0 stands for none.
        self._overflow.grow(1)
        # By overflow bucket: how long the chain is that starts here.
        self._lengths = np.zeros(1, np.uint32)
        self._unused: list[int] = []

    @property
    def size_bytes(self) -> int:
        """The memory of all columns."""
        return self._main.size_bytes + self._overflow.size_bytes + self._lengths.nbytes

    def grow(self, count: int) -> None:
        """Make room for buckets 0 to `count` - 1."""
        self._main.grow(count)

    def near(self, buckets: Ints, tags: Tags, max_distance_bits: int) -> Iterator[tuple[Ints, Rows]]:
        """Compare tags with what is in buckets.

        Args:
            buckets: ``(n, probes)``.
            tags: ``(n,)``.
            max_distance_bits: Inclusive.

        Yields:
            Positions in the flat `buckets`, and the rows there whose tags are near, both ``(m,)``.
        """
        yield from self._main.near(buckets, tags, max_distance_bits)
        flat = buckets.reshape(-1)
        left = np.flatnonzero(self._main.fill.take(flat) == _SPILLED)
        rest = self._main.rest[flat[left]].astype(np.int64)
        while len(rest):
            their_tags = tags[left // buckets.shape[1]]
            for positions, rows in self._overflow.near(rest[:, None], their_tags, max_distance_bits):
                yield left[positions], rows
            rest = self._overflow.rest[rest].astype(np.int64)
            more = rest != 0
            left, rest = left[more], rest[more]

    def put(self, buckets: Ints, tags: Tags, rows: Rows) -> Ints:
        """Add rows and their tags, ``(n,)``, each to its bucket; `buckets` is sorted.

        Returns:
            The buckets, each once, whose chain has reached a power of two of at least `LONG_CHAIN` by this.
        """
        if not len(buckets):
            return buckets
        first, sizes = _runs(buckets)
        each = buckets[first]
        fills = self._main.fill[each]
        taken = np.minimum(fills, SLOTS).astype(np.int64)
        slots = np.arange(len(buckets)) + np.repeat(taken - first, sizes)
        self._main.fill[each] = np.where(fills == _SPILLED, _SPILLED, np.minimum(taken + sizes, SLOTS))
        fits = slots < SLOTS
        self._main.put(buckets[fits], slots[fits], tags[fits], rows[fits])
        return self._spill(buckets[~fits], tags[~fits], rows[~fits])

    def take_out(self, buckets: slice | Ints) -> Rows:
        """Empty buckets, and return the rows that were in them and their chains, ``(m,)`` in any order.

        Args:
            buckets: Without repeats; a slice for neighbours.
        """
        found = [self._main.rows[buckets].reshape(-1)]
        rest = self._main.rest[buckets][self._main.fill[buckets] == _SPILLED].astype(np.int64)
        while len(rest):
            found.append(self._overflow.rows[rest].reshape(-1))
            self._overflow.rows[rest] = _EMPTY
            self._overflow.fill[rest] = 0
            self._unused += rest.tolist()
            rest = self._overflow.rest[rest].astype(np.int64)
            rest = rest[rest != 0]
        rows = np.concatenate(found)
        self._main.rows[buckets] = _EMPTY
        self._main.fill[buckets] = 0
        self._main.rest[buckets] = 0
        taken: Rows = rows[rows != _EMPTY]
        return taken

    def _spill(self, buckets: Ints, tags: Tags, rows: Rows) -> Ints:
        """Put what full buckets cannot take into their chains, at the front; `buckets` is sorted."""
        if not len(buckets):
            return buckets
        first, sizes = _runs(buckets)
        spilled = buckets[first]
        heads = self._main.rest[spilled].astype(np.int64)
        lengths = self._lengths[heads].astype(np.int64)
        fills = np.where(heads != 0, self._overflow.fill[heads], OVERFLOW_SLOTS).astype(np.int64)
        # Slots are counted from the head's first on, through the fresh buckets of the same chain.
        ends = fills + sizes
        fresh_counts = (ends - 1) // OVERFLOW_SLOTS
        fresh = self._fresh(int(fresh_counts.sum()))
        starts = np.cumsum(fresh_counts) - fresh_counts

        group = np.repeat(np.arange(len(first)), sizes)
        slots = np.arange(len(buckets)) + (fills - first)[group]
        step = slots // OVERFLOW_SLOTS
        into = heads[group]
        into[step > 0] = fresh[(starts[group] + step - 1)[step > 0]]
        self._overflow.put(into, slots % OVERFLOW_SLOTS, tags, rows)

        chain = np.repeat(np.arange(len(first)), fresh_counts)
        place = np.arange(len(fresh)) - starts[chain]
        self._overflow.fill[fresh] = OVERFLOW_SLOTS
        self._overflow.rest[fresh[1:]] = fresh[:-1]
        begun = place == 0
        self._overflow.rest[fresh[begun]] = heads[chain[begun]]
        self._lengths[fresh] = lengths[chain] + place + 1
        grown = fresh_counts > 0
        heads[grown] = fresh[(starts + fresh_counts - 1)[grown]]
        self._overflow.fill[heads] = (ends - 1) % OVERFLOW_SLOTS + 1
        self._main.rest[spilled] = heads
        self._main.fill[spilled] = _SPILLED
        after = lengths + fresh_counts
        # Exclusive or is more than the length before where a higher bit has come.
        return spilled[(after >= LONG_CHAIN) & (after ^ lengths > lengths)]

    def _fresh(self, count: int) -> Ints:
        """Take overflow buckets that are empty."""
        if len(self._unused) < count:
            before = len(self._overflow)
            self._overflow.grow(before + count)
            grow(self._lengths, len(self._overflow))
            self._unused += range(before, len(self._overflow))
        fresh = np.array(self._unused[len(self._unused) - count :], np.int64)
        del self._unused[len(self._unused) - count :]
        return fresh


def _runs(groups: Ints) -> tuple[Ints, Ints]:
    """Return where each group begins and its size; `groups` is sorted and not empty."""
    changes = np.flatnonzero(groups[1:] != groups[:-1])
    first = np.zeros(len(changes) + 1, np.int64)
    first[1:] = changes + 1
    sizes = np.empty_like(first)
    sizes[:-1] = first[1:] - first[:-1]
    sizes[-1] = len(groups) - first[-1]
    return first, sizes

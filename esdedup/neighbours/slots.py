"""Buckets with a fixed number of slots, stored as columns.

A slot holds a tag and a row. A tag is 8 or 16 bits of the row's fingerprint. A row whose tag differs from the
query's in too many bits is rejected without a look at its fingerprint, and the tags of a bucket lie in one
line of the processor's cache.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.columns import grow

Bits = npt.NDArray[np.uint16]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint32]
Tags = npt.NDArray[Any]
"""Uint8, which can only be compared for equality, or uint16."""

SLOTS = 8
"""Slots of a bucket."""

_EMPTY = np.uint32(0xFFFF_FFFF)
# Comparing this many slots at once keeps the temporary arrays in the processor's cache.
_SLOTS_AT_ONCE = 1 << 18


class Slots:
    """Numbered buckets of `SLOTS` slots. The slots taken come before those that are free."""

    def __init__(self, tag_bits: int) -> None:
        """Make no buckets yet, for tags of 8 or 16 bits."""
        self._tags = np.zeros((0, SLOTS), np.dtype(f"u{tag_bits // 8}"))
        # `_EMPTY` where a slot is free.
        self._rows = np.zeros((0, SLOTS), np.uint32)
        self._next = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return len(self._next)

    @property
    def size_bytes(self) -> int:
        """The memory of all columns, including the room for more buckets."""
        return self._tags.nbytes + self._rows.nbytes + self._next.nbytes

    def grow(self, count: int) -> None:
        """Make room for at least `count` buckets; the new ones are empty and have no chain."""
        before = len(self)
        for column in (self._tags, self._rows, self._next):
            grow(column, count)
        self._rows[before:] = _EMPTY

    def add(self, buckets: Ints, tags: Tags, rows: Rows) -> Bools:
        """Add rows with their tags, each to a bucket, as long as that has free slots.

        Args:
            buckets: int64 ``(n,)``, equal ones next to each other; not empty.
            tags: ``(n,)``.
            rows: ``(n,)``.

        Returns:
            Which rows were added: bool ``(n,)``. Of each bucket's rows these are the first.
        """
        starts, sizes = runs_of(buckets)
        slots = np.arange(len(buckets)) + np.repeat(self.taken(buckets[starts]) - starts, sizes)
        is_added: Bools = slots < SLOTS
        places = (buckets * SLOTS + slots)[is_added]
        self._tags.reshape(-1)[places] = tags[is_added]
        self._rows.reshape(-1)[places] = rows[is_added]
        return is_added

    def compare(self, buckets: Ints, tags: Tags, most_bits: Bits) -> Iterator[tuple[Ints, Rows]]:
        """Compare each query's tag with the tags in its buckets.

        Args:
            buckets: int64 ``(n, probes)``.
            tags: Of the queries, ``(n,)``.
            most_bits: The greatest distance between two tags, inclusive, for each probe: ``(probes,)``.

        Yields:
            Positions in the flattened `buckets`, int64 ``(m,)``, and the rows there with a near tag,
            uint32 ``(m,)``.
        """
        probe_count = buckets.shape[1]
        width = probe_count * SLOTS
        step = max(1, _SLOTS_AT_ONCE // width)
        slots_most_bits = most_bits.repeat(SLOTS)
        for first in range(0, len(buckets), step):
            probes = buckets[first : first + step].reshape(-1)
            held = self._tags.take(probes, axis=0).reshape(-1, width)
            near = np.flatnonzero(_are_near(held, tags[first : first + step, None], slots_most_bits))
            if len(near):
                positions = near // SLOTS
                rows = self._rows.reshape(-1)[probes[positions] * SLOTS + near % SLOTS]
                is_taken = rows != _EMPTY
                yield positions[is_taken] + first * probe_count, rows[is_taken]

    def empty(self, buckets: Ints) -> Rows:
        """Empty buckets, given without repeats; return the rows that were in them, uint32 ``(m,)``."""
        rows = self._rows.take(buckets, axis=0)
        removed: Rows = rows[rows != _EMPTY]
        self._rows[buckets] = _EMPTY
        return removed

    def pop(self, buckets: Ints) -> tuple[Tags, Rows]:
        """Remove and return the last tag and row of buckets, given without repeats; none may be empty."""
        places = buckets * SLOTS + self.taken(buckets) - 1
        tags, rows = self._tags.reshape(-1)[places], self._rows.reshape(-1)[places]
        self._rows.reshape(-1)[places] = _EMPTY
        return tags, rows

    def replace(self, buckets: Ints, rows: Rows, new_tags: Tags, new_rows: Rows) -> Bools:
        """Put others in the place of rows, each in a bucket; return which rows were there: bool ``(n,)``."""
        found = np.flatnonzero(self._rows.take(buckets, axis=0) == rows[:, None])
        positions = found // SLOTS
        places = buckets[positions] * SLOTS + found % SLOTS
        self._tags.reshape(-1)[places] = new_tags[positions]
        self._rows.reshape(-1)[places] = new_rows[positions]
        were_there = np.zeros(len(rows), bool)
        were_there[positions] = True
        return were_there

    def taken(self, buckets: Ints) -> Ints:
        """Return how many slots of each bucket are taken: int64 ``(n,)``."""
        are_taken = self._rows.take(buckets, axis=0) != _EMPTY
        # Eight slots as one number, of which each that is taken sets one bit.
        counts: Ints = np.bitwise_count(are_taken.view(np.uint64)[:, 0]).astype(np.int64)
        return counts

    def fill(self, bucket: int) -> None:
        """Take all slots of an empty bucket, which must never be searched."""
        self._rows[bucket] = 0

    def next_of(self, buckets: Ints) -> npt.NDArray[np.uint32]:
        """Return the overflow bucket that each bucket links to, 0 for none: uint32 ``(n,)``."""
        return self._next.take(buckets)

    def set_next(self, buckets: Ints, following: npt.NDArray[np.integer] | int) -> None:
        """Link each bucket to an overflow bucket, 0 for none."""
        self._next[buckets] = following


def runs_of(groups: Ints) -> tuple[Ints, Ints]:
    """Return the start and the size of each run of equal values, int64 ``(runs,)`` each.

    Args:
        groups: ``(n,)``, not empty.
    """
    changes = np.flatnonzero(groups[1:] != groups[:-1])
    starts = np.zeros(len(changes) + 1, np.int64)
    starts[1:] = changes + 1
    sizes = np.empty_like(starts)
    sizes[:-1] = starts[1:] - starts[:-1]
    sizes[-1] = len(groups) - starts[-1]
    return starts, sizes


def _are_near(one: Tags, other: Tags, most_bits: Bits) -> Bools:
    """Return which tags differ in at most so many bits; `one` may be overwritten."""
    if one.dtype == np.uint8:
        equal: Bools = one == other
        return equal
    one ^= other
    # numpy counts the bits of bytes ten times as fast as those of larger numbers. Multiplying adds the counts
    # of both bytes of a tag in its upper byte.
    counts = np.bitwise_count(one.view(np.uint8)).view(np.uint16)
    counts *= np.uint16(0x0101)
    near: Bools = counts < (most_bits + np.uint16(1)) << np.uint16(8)
    return near

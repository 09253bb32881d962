"""Buckets with a fixed number of slots, stored as columns.

A slot holds a tag and a row, 4 bytes each. A tag is 32 bits of the row's fingerprint. A row whose tag
differs from the query's in too many bits is rejected without a look at its fingerprint, and the tags of
a bucket lie in one line of the processor's cache.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.columns import grow

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint32]
Tags = npt.NDArray[np.uint32]

SLOTS = 8
"""Slots of a bucket."""

SPILLED = np.uint8(SLOTS + 1)
"""In `Slots.fill`: the bucket is full, and more rows are in its chain."""

_EMPTY = np.uint32(0xFFFF_FFFF)
# Comparing this many slots at once keeps the temporary arrays in the processor's cache.
_SLOTS_AT_ONCE = 1 << 16


class Slots:
    """Numbered buckets of `SLOTS` slots."""

    def __init__(self) -> None:
        self._tags = np.zeros((0, SLOTS), np.uint32)
        # `_EMPTY` where a slot is free.
        self._rows = np.zeros((0, SLOTS), np.uint32)
        self.fill = np.zeros(0, np.uint8)
        """By bucket: the number of slots taken, or `SPILLED`."""
        self._next = np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return len(self.fill)

    @property
    def size_bytes(self) -> int:
        """The memory of all columns, including the room for more buckets."""
        return self._tags.nbytes + self._rows.nbytes + self.fill.nbytes + self._next.nbytes

    def grow(self, count: int) -> None:
        """Make room for at least `count` buckets; the new ones are empty and have no chain."""
        before = len(self)
        for column in (self._tags, self._rows, self.fill, self._next):
            grow(column, count)
        self._rows[before:] = _EMPTY

    def add(self, buckets: Ints, tags: Tags, rows: Rows) -> npt.NDArray[np.bool_]:
        """Add rows with their tags, each to a bucket, as long as that has free slots.

        Args:
            buckets: int64 ``(n,)``, equal ones next to each other; not empty.
            tags: ``(n,)``.
            rows: ``(n,)``.

        Returns:
            Which rows were added: bool ``(n,)``. Of each bucket's rows these are the first.
        """
        starts, sizes = runs_of(buckets)
        distinct = buckets[starts]
        fill = self.fill[distinct]
        taken = np.minimum(fill, SLOTS).astype(np.int64)
        slots = np.arange(len(buckets)) + np.repeat(taken - starts, sizes)
        is_added: npt.NDArray[np.bool_] = slots < SLOTS
        places = (buckets * SLOTS + slots)[is_added]
        self._tags.reshape(-1)[places] = tags[is_added]
        self._rows.reshape(-1)[places] = rows[is_added]
        # A bucket that has spilled stays so: `SPILLED` is more than any number of slots.
        self.fill[distinct] = np.maximum(fill, np.minimum(taken + sizes, SLOTS))
        return is_added

    def compare(self, buckets: Ints, tags: Tags, max_distance_bits: int) -> Iterator[tuple[Ints, Rows]]:
        """Compare each query's tag with the tags in its buckets.

        Args:
            buckets: int64 ``(n, probes)``.
            tags: Of the queries, ``(n,)``.
            max_distance_bits: Between two tags, inclusive.

        Yields:
            Positions in the flattened `buckets`, int64 ``(m,)``, and the rows there with a near tag,
            uint32 ``(m,)``.
        """
        probe_count = buckets.shape[1]
        width = probe_count * SLOTS
        step = max(1, _SLOTS_AT_ONCE // width)
        for first in range(0, len(buckets), step):
            probes = buckets[first : first + step].reshape(-1)
            differences = self._tags.take(probes, axis=0).reshape(-1, width)
            differences ^= tags[first : first + step, None]
            near = np.flatnonzero(np.bitwise_count(differences) <= max_distance_bits)
            if len(near):
                positions = near // SLOTS
                rows = self._rows.reshape(-1)[probes[positions] * SLOTS + near % SLOTS]
                is_taken = rows != _EMPTY
                yield positions[is_taken] + first * probe_count, rows[is_taken]

    def remove_rows(self, buckets: slice | Ints) -> Rows:
        """Empty buckets, given without repeats; return the rows that were in them, uint32 ``(m,)``."""
        rows = self._rows[buckets]
        removed: Rows = rows[rows != _EMPTY]
        self._rows[buckets] = _EMPTY
        self.fill[buckets] = 0
        return removed

    def next_of(self, buckets: slice | Ints) -> Ints:
        """Return the overflow bucket that each bucket links to, 0 for none: int64 ``(n,)``."""
        return self._next[buckets].astype(np.int64)

    def set_next(self, buckets: slice | Ints, following: Ints | int) -> None:
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

"""Rows with the fingerprint of an earlier row."""

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.buckets import Rows

_ROW_BITS = np.uint64(32)
_ROW = np.uint64(0xFFFF_FFFF)

Pairs = npt.NDArray[np.uint64]


class DuplicateRows:
    """Which rows are copies of which: no table has to hold a fingerprint twice."""

    def __init__(self) -> None:
        # The earlier row, then the copy, 32 bits each; sorted.
        self._pairs = np.zeros(0, np.uint64)

    @property
    def size_bytes(self) -> int:
        """The memory that the copies take."""
        return self._pairs.nbytes

    def add(self, originals: Rows, rows: Rows) -> None:
        """Add rows that are copies of other rows, ``(n,)`` each."""
        if len(rows):
            pairs = np.sort(originals.astype(np.uint64) << _ROW_BITS | rows)
            self._pairs = np.insert(self._pairs, np.searchsorted(self._pairs, pairs), pairs)

    def with_copies(self, pairs: Pairs) -> Pairs:
        """Add to pairs of a query's position and a row, 32 bits each, those with the row's copies."""
        if not len(self._pairs):
            return pairs
        originals = pairs << _ROW_BITS
        first = np.searchsorted(self._pairs, originals)
        counts = np.searchsorted(self._pairs, originals | _ROW, side="right") - first
        # Each range of `_pairs`, one after the other.
        at = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        more = np.repeat(pairs & ~_ROW, counts)
        more |= self._pairs[at] & _ROW
        return np.concatenate((pairs, more))

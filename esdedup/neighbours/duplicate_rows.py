"""Rows whose fingerprint equals that of an earlier row."""

import numpy as np

from esdedup.neighbours.pairs import Pairs, firsts_of, pack, seconds_of
from esdedup.neighbours.slots import Ints, Rows


class DuplicateRows:
    """Which rows duplicate which earlier row, so that tables need to hold each fingerprint only once."""

    def __init__(self) -> None:
        # uint32 (duplicates,) each, sorted by original; an original is never a duplicate itself.
        self._originals: Rows = np.zeros(0, np.uint32)
        self._duplicates: Rows = np.zeros(0, np.uint32)

    @property
    def size_bytes(self) -> int:
        """The memory of both columns."""
        return self._originals.nbytes + self._duplicates.nbytes

    def add(self, originals: Rows, duplicates: Rows) -> None:
        """Add rows and the earlier rows they duplicate, uint32 ``(n,)`` each."""
        if not len(duplicates):
            return
        order = np.argsort(originals, kind="stable")
        originals, duplicates = originals[order], duplicates[order]
        places = self._originals.searchsorted(originals, side="right")
        self._originals = np.insert(self._originals, places, originals)
        self._duplicates = np.insert(self._duplicates, places, duplicates)

    def with_duplicates(self, pairs: Pairs) -> Pairs:
        """Return pairs of a query's position and a row, ``(n,)``, then those with its duplicates."""
        if not len(self._originals):
            return pairs
        # In the dtype of the column, which would otherwise be converted as a whole.
        rows = seconds_of(pairs).astype(np.uint32)
        starts = self._originals.searchsorted(rows)
        counts = self._originals.searchsorted(rows, side="right") - starts
        added = pack(firsts_of(pairs).repeat(counts), self._duplicates[_ranges(starts, counts)])
        return np.concatenate((pairs, added))


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of ranges, one range after the other; each has `counts` numbers from `starts` on."""
    numbers = np.arange(counts.sum())
    numbers += np.repeat(starts - counts.cumsum() + counts, counts)
    return numbers

"""Rows whose fingerprint equals that of an earlier row."""

import numpy as np

from esdedup.neighbours.pairs import Pairs, firsts_of, pack, seconds_of
from esdedup.neighbours.slots import Ints, Rows


class DuplicateRows:
    """Maps rows to their later duplicates, so that tables need to hold each fingerprint only once."""

    def __init__(self) -> None:
        # Pairs of an original and its duplicate, sorted; an original is never a duplicate itself.
        self._pairs: Pairs = np.zeros(0, np.uint64)

    @property
    def size_bytes(self) -> int:
        """The memory of the pairs."""
        return self._pairs.nbytes

    def add(self, originals: Rows, duplicates: Rows) -> None:
        """Add rows and the earlier rows they duplicate, uint32 ``(n,)`` each."""
        if len(duplicates):
            pairs = np.sort(pack(originals, duplicates))
            self._pairs = np.insert(self._pairs, self._pairs.searchsorted(pairs), pairs)

    def with_duplicates(self, pairs: Pairs) -> Pairs:
        """Return pairs of a query's position and a row, ``(n,)``, then pairs with the row's duplicates."""
        if not len(self._pairs):
            return pairs
        rows, zero = seconds_of(pairs), np.zeros(1, np.uint32)
        starts = self._pairs.searchsorted(pack(rows, zero))
        counts = self._pairs.searchsorted(pack(rows + 1, zero)) - starts
        duplicates = seconds_of(self._pairs[_ranges(starts, counts)])
        added = pack(firsts_of(pairs).repeat(counts), duplicates)
        return np.concatenate((pairs, added))


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of ranges, one range after the other; each has `counts` numbers from `starts` on."""
    numbers = np.arange(counts.sum())
    numbers += np.repeat(starts - counts.cumsum() + counts, counts)
    return numbers

"""Rows whose fingerprint equals that of another row."""

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.pairs import Pairs, firsts_of, pack, seconds_of
from esdedup.neighbours.slots import Bools, Ints, Rows


class DuplicateRows:
    """Maps rows to their duplicates, so that tables need to hold each fingerprint only once."""

    def __init__(self) -> None:
        # Pairs of an original and its duplicate, sorted; an original is never a duplicate itself.
        self._pairs: Pairs = np.zeros(0, np.uint64)

    @property
    def size_bytes(self) -> int:
        """The memory of the pairs."""
        return self._pairs.nbytes

    def add(self, originals: Rows, duplicates: Rows) -> None:
        """Add rows and the rows that they duplicate, uint32 ``(n,)`` each."""
        if len(duplicates):
            pairs = np.sort(pack(originals, duplicates))
            self._pairs = np.insert(self._pairs, self._pairs.searchsorted(pairs), pairs)

    def with_duplicates(self, pairs: Pairs) -> Pairs:
        """Return pairs of a query's position and a row, ``(n,)``, then pairs with the row's duplicates."""
        if not len(self._pairs):
            return pairs
        starts, counts = self._find(seconds_of(pairs))
        duplicates = seconds_of(self._pairs[_ranges(starts, counts)])
        added = pack(firsts_of(pairs).repeat(counts), duplicates)
        return np.concatenate((pairs, added))

    def remove(self, rows: Rows) -> Bools:
        """Remove rows, uint32 ``(n,)``, as duplicates; return which of them were that."""
        if not len(self._pairs):
            return np.zeros(len(rows), bool)
        duplicates = seconds_of(self._pairs)
        is_removed = np.isin(duplicates, rows)
        self._pairs = self._pairs[~is_removed]
        were_duplicates: Bools = np.isin(rows, duplicates[is_removed])
        return were_duplicates

    def pop(self, rows: Rows) -> Rows:
        """Remove all duplicates of rows, uint32 ``(n,)``, each once, and return them."""
        places = _ranges(*self._find(rows))
        duplicates = seconds_of(self._pairs[places]).astype(np.uint32)
        self._pairs = np.delete(self._pairs, places)
        return duplicates

    def _find(self, rows: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return where the duplicates of rows begin, and how many there are: int64 ``(n,)`` each."""
        starts = self._pairs.searchsorted(pack(rows, np.zeros(1, np.uint32)))
        ends = self._pairs.searchsorted(pack(rows, np.full(1, 0xFFFF_FFFF, np.uint32)), side="right")
        return starts, ends - starts


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of ranges, one range after the other; each has `counts` numbers from `starts` on."""
    numbers = np.arange(counts.sum())
    numbers += np.repeat(starts - counts.cumsum() + counts, counts)
    return numbers

"""Fingerprints of a column, searched by Hamming distance: hash tables, and what these cannot hold."""

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.duplicate_rows import DuplicateRows
from esdedup.neighbours.half_key_tables import HalfKeyTables
from esdedup.neighbours.hot_limits import HotLimits
from esdedup.neighbours.pairs import Pairs, firsts_of, seconds_of
from esdedup.neighbours.queries import Queries
from esdedup.neighbours.slots import Bools, Rows

Fingerprints = npt.NDArray[np.uint64]

# Long chains are relieved after each part of this size, which bounds how far one part overfills a bucket.
_ADDED_AT_ONCE = 8_192
# Of rows added together; the tables may hold so many equal fingerprints.
_MOST_EQUAL = 8


class HammingTables:
    """Finds rows of a column of fingerprints by distance."""

    def __init__(self, column: Fingerprints, *, max_distance_bits: int, hot_limits: HotLimits) -> None:
        """Make empty tables.

        Args:
            column: Fingerprints by row, uint64; the owner grows it in place, and writes what it adds.
            max_distance_bits: Inclusive, 0 to 3.
            hot_limits: When a half key gets nested tables; they affect speed, not results.
        """
        self._column = column
        self._max_distance_bits = max_distance_bits
        self._tables = HalfKeyTables(column, limits=hot_limits, max_distance_bits=max_distance_bits)
        self._duplicates = DuplicateRows()

    @property
    def size_bytes(self) -> int:
        """The memory that they take, without the column."""
        return self._tables.size_bytes + self._duplicates.size_bytes

    def add(self, rows: Rows) -> None:
        """Add rows, uint32 ``(n,)``, which are not there."""
        for first in range(0, len(rows), _ADDED_AT_ONCE):
            self._add(rows[first : first + _ADDED_AT_ONCE])

    def remove(self, rows: Rows) -> None:
        """Remove rows, uint32 ``(n,)``, which are there; their fingerprints must still be in the column."""
        rows = rows[~self._duplicates.remove(rows)]
        self._tables.remove(self._column[rows], rows)
        # One of a removed row's duplicates takes its place.
        self.add(self._duplicates.pop(rows))

    def search(self, fingerprints: Fingerprints) -> Pairs:
        """Return packed pairs of a position in `fingerprints`, ``(n,)``, and a row within the distance.

        Sorted, without repeats.
        """
        queries = Queries.within(fingerprints, self._max_distance_bits)
        found = self._tables.search(queries, max_distance_bits=self._max_distance_bits)
        pairs = np.concatenate([np.zeros(0, np.uint64), *map(self._duplicates.with_duplicates, found)])
        pairs.sort()
        return pairs

    def _add(self, rows: Rows) -> None:
        fingerprints = self._column[rows]
        originals = self._originals(fingerprints, rows)
        is_new: Bools = originals == rows
        if not is_new.all():
            self._duplicates.add(originals[~is_new], rows[~is_new])
            fingerprints, rows = fingerprints[is_new], rows[is_new]
        self._tables.add(fingerprints, rows)

    def _originals(self, fingerprints: Fingerprints, rows: Rows) -> Rows:
        """Return the row that each of the new `rows` duplicates, or the row itself: ``(n,)``.

        Finds duplicates only where there may be many of them: more than a few within the batch, or of earlier
        rows that have a hot half. The tables may hold each of the others.
        """
        originals = rows.copy()
        ordered = np.sort(fingerprints)
        if (ordered[_MOST_EQUAL:] == ordered[:-_MOST_EQUAL]).any():
            _, first, numbers, counts = np.unique(
                fingerprints, return_index=True, return_inverse=True, return_counts=True
            )
            are_many = counts[numbers] > _MOST_EQUAL
            originals[are_many] = rows[first[numbers[are_many]]]
        hot = np.flatnonzero(self._tables.are_hot(fingerprints))
        if len(hot):
            for pairs in self._tables.search(Queries.within(fingerprints[hot], 0), max_distance_bits=0):
                originals[hot[firsts_of(pairs)]] = seconds_of(pairs)
        return originals

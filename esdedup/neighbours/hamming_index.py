"""An index in memory of fingerprints, searched by Hamming distance."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.neighbours.columns import grow
from esdedup.neighbours.duplicate_rows import DuplicateRows
from esdedup.neighbours.half_key_tables import HalfKeyTables, HotLimits
from esdedup.neighbours.pairs import firsts_of, seconds_of
from esdedup.neighbours.queries import Queries

MAX_DISTANCE_BITS = 3
"""The largest distance that two half keys can search: up to it, one half differs in at most 1 bit."""

_HOT_LIMITS = HotLimits()
# Long chains are relieved after each part of this size, which bounds how far one part overfills a bucket.
_ADDED_AT_ONCE = 8_192


class Matches(NamedTuple):
    """What an index finds for a batch of signatures."""

    # Pairs that are near each other: a position in the batch and a row, int64 (pairs,) each, without
    # repeats, ordered by position, then by row.
    positions: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    # Representatives of the batch, uint64 (postings,), and rows indexed under them, int64 (postings,);
    # no pair twice.
    posting_keys: npt.NDArray[np.uint64]
    postings: npt.NDArray[np.int64]


class HammingIndex:
    """Fingerprints by row, searched by distance. Holds at most 4,294,967,294 of them."""

    def __init__(
        self, *, max_distance_bits: int = MAX_DISTANCE_BITS, hot_limits: HotLimits = _HOT_LIMITS
    ) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Inclusive, 0 to 3.
            hot_limits: When a half key gets nested tables; they affect speed, not results.

        Raises:
            SettingError: The distance is out of range.
        """
        if not 0 <= max_distance_bits <= MAX_DISTANCE_BITS:
            raise SettingError(f"max_distance_bits is {max_distance_bits}; it must be from 0 to 3")
        self._max_distance_bits = max_distance_bits
        # By row, with room for more.
        self._fingerprints = np.zeros(0, np.uint64)
        self._count = 0
        self._tables = HalfKeyTables(
            self._fingerprints, limits=hot_limits, max_distance_bits=max_distance_bits
        )
        self._duplicates = DuplicateRows()

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._fingerprints.nbytes + self._tables.size_bytes + self._duplicates.size_bytes

    def add(self, fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add fingerprints, uint64 ``(n,)``; they get the next rows, in their order."""
        for first in range(0, len(fingerprints), _ADDED_AT_ONCE):
            self._add(fingerprints[first : first + _ADDED_AT_ONCE])

    def find_pairs(
        self, fingerprints: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find the rows within the distance of each fingerprint, uint64 ``(n,)``.

        Returns:
            Positions in `fingerprints` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        queries = Queries.within(fingerprints, self._max_distance_bits)
        found = self._tables.search(queries, max_distance_bits=self._max_distance_bits)
        pairs = np.concatenate([np.zeros(0, np.uint64), *map(self._duplicates.with_duplicates, found)])
        pairs.sort()
        return firsts_of(pairs), seconds_of(pairs)

    def search(self, signatures: npt.NDArray[np.uint64]) -> Matches:
        """Find pairs as `find_pairs` does. There are no postings, since equal texts share one node."""
        return Matches(*self.find_pairs(signatures), np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def signatures(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return the fingerprints of rows, uint64 ``(n,)``."""
        return self._fingerprints[rows]

    def _add(self, fingerprints: npt.NDArray[np.uint64]) -> None:
        rows = np.arange(self._count, self._count + len(fingerprints), dtype=np.uint32)
        self._count += len(fingerprints)
        grow(self._fingerprints, self._count)
        self._fingerprints[rows[0] : self._count] = fingerprints
        originals = self._originals(fingerprints, rows)
        is_new = originals == rows
        if not is_new.all():
            self._duplicates.add(originals[~is_new], rows[~is_new])
            fingerprints, rows = fingerprints[is_new], rows[is_new]
        self._tables.add(fingerprints, rows)

    def _originals(
        self, fingerprints: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        """Return the earlier row that each of the new `rows` duplicates, or the row itself: ``(n,)``.

        Finds all duplicates within the batch. Finds duplicates of earlier rows only if they have a hot half:
        others are few, and the tables may hold each of them.
        """
        originals = rows.copy()
        ordered = np.sort(fingerprints)
        if (ordered[1:] == ordered[:-1]).any():
            _, first, numbers = np.unique(fingerprints, return_index=True, return_inverse=True)
            originals = rows[first[numbers]]
        hot = np.flatnonzero(self._tables.are_hot(fingerprints))
        if len(hot):
            for pairs in self._tables.search(Queries.within(fingerprints[hot], 0), max_distance_bits=0):
                originals[hot[firsts_of(pairs)]] = seconds_of(pairs)
        return originals

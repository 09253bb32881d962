"""Which fingerprints lie within three bits of each other, in memory."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.neighbours.columns import grow
from esdedup.neighbours.duplicate_rows import DuplicateRows
from esdedup.neighbours.half_key_tables import HalfKeyTables, Queries
from esdedup.neighbours.pairs import firsts_of, seconds_of

MAX_DISTANCE_BITS = 3
"""What two halves can promise: 3 bits in two halves leave one with 1 at most."""

# Tables are repaired after so many: what one addition can do to a bucket is bounded by it.
_ADDED_AT_ONCE = 8_192


class Matches(NamedTuple):
    """What an index finds for a batch of signatures."""

    # Pairs that are near: a position in the batch, and a row, int64 (pairs,) each, without repeats,
    # ordered by position, then by row.
    positions: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    # Representatives of the batch, uint64 (postings,), and the rows indexed under them, int64; no pair twice.
    posting_keys: npt.NDArray[np.uint64]
    postings: npt.NDArray[np.int64]


class HammingIndex:
    """Fingerprints by row, searched by distance. At most 4,294,967,294 of them."""

    def __init__(self, *, max_distance_bits: int = MAX_DISTANCE_BITS) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Inclusive, 0 to 3.

        Raises:
            SettingError: The distance is more than this index finds.
        """
        if not 0 <= max_distance_bits <= MAX_DISTANCE_BITS:
            raise SettingError(f"max_distance_bits is {max_distance_bits}; it must be from 0 to 3")
        self._max_distance_bits = max_distance_bits
        # By row, with room for more.
        self._held = np.zeros(0, np.uint64)
        self._count = 0
        self._halves = HalfKeyTables(self._held)
        self._duplicates = DuplicateRows()

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._held.nbytes + self._halves.size_bytes + self._duplicates.size_bytes

    def add(self, fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add uint64 ``(n,)``; they get the next rows, in their order."""
        for first in range(0, len(fingerprints), _ADDED_AT_ONCE):
            self._add(fingerprints[first : first + _ADDED_AT_ONCE])

    def find_pairs(
        self, fingerprints: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find all pairs within the distance.

        Returns:
            Positions in `fingerprints` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        queries = _queries(fingerprints, self._max_distance_bits)
        found = self._halves.search(queries, max_distance_bits=self._max_distance_bits)
        pairs = np.concatenate([np.zeros(0, np.uint64), *map(self._duplicates.with_duplicates, found)])
        pairs.sort()
        return firsts_of(pairs), seconds_of(pairs)

    def search(self, signatures: npt.NDArray[np.uint64]) -> Matches:
        """Find all pairs within the distance. Nobody carries anything: equal texts are one node."""
        return Matches(*self.find_pairs(signatures), np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def signatures(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return what was added, by row."""
        return self._held[rows]

    def _add(self, fingerprints: npt.NDArray[np.uint64]) -> None:
        rows = np.arange(self._count, self._count + len(fingerprints), dtype=np.uint32)
        self._count += len(fingerprints)
        grow(self._held, self._count)
        self._held[rows[0] : self._count] = fingerprints
        originals = self._originals(fingerprints, rows)
        new = originals == rows
        if not new.all():
            self._duplicates.add(originals[~new], rows[~new])
            fingerprints, rows = fingerprints[new], rows[new]
        self._halves.add(fingerprints, rows)

    def _originals(
        self, fingerprints: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        """Return the row each of the new `rows` is a copy of: an earlier one, or itself."""
        originals = rows.copy()
        ordered = np.sort(fingerprints)
        if (ordered[1:] == ordered[:-1]).any():
            _, first, numbers = np.unique(fingerprints, return_index=True, return_inverse=True)
            originals = rows[first[numbers]]
        # Duplicates of a fingerprint that is not hot are few, and may stand in the tables.
        hot = np.flatnonzero(self._halves.are_hot(fingerprints))
        if len(hot):
            queries = _queries(fingerprints[hot], 0)
            for pairs in self._halves.search(queries, max_distance_bits=0):
                originals[hot[firsts_of(pairs)]] = seconds_of(pairs)
        return originals


def _queries(fingerprints: npt.NDArray[np.uint64], max_distance_bits: int) -> Queries:
    count = len(fingerprints)
    return Queries(
        fingerprints,
        np.arange(count),
        np.zeros(count, np.int8),
        np.full(count, max_distance_bits, np.int8),
    )

"""An index in memory of fingerprints, searched by Hamming distance."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.neighbours.columns import grow
from esdedup.neighbours.hamming_tables import HammingTables
from esdedup.neighbours.hot_limits import HotLimits
from esdedup.neighbours.numbers import Numbers
from esdedup.neighbours.pairs import firsts_of, seconds_of

MAX_DISTANCE_BITS = 3
"""The largest distance that two half keys can search: up to it, one half differs in at most 1 bit."""

_HOT_LIMITS = HotLimits()


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
        # By row, with room for more.
        self._fingerprints = np.zeros(0, np.uint64)
        self._rows = Numbers()
        self._tables = HammingTables(
            self._fingerprints, max_distance_bits=max_distance_bits, hot_limits=hot_limits
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._fingerprints.nbytes + self._tables.size_bytes + self._rows.size_bytes

    def add(self, fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Add fingerprints, uint64 ``(n,)``; return their rows, int64 ``(n,)``."""
        rows = self._rows.take(len(fingerprints))
        grow(self._fingerprints, self._rows.end)
        self._fingerprints[rows] = fingerprints
        self._tables.add(rows.astype(np.uint32))
        return rows

    def remove(self, rows: npt.NDArray[np.int64]) -> None:
        """Remove rows that are there, each once, ``(n,)``; they are given out again."""
        self._tables.remove(rows.astype(np.uint32))
        self._rows.give_back(rows)

    def find_pairs(
        self, fingerprints: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find the rows within the distance of each fingerprint, uint64 ``(n,)``.

        Returns:
            Positions in `fingerprints` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        pairs = self._tables.search(fingerprints)
        return firsts_of(pairs), seconds_of(pairs)

    def search(self, signatures: npt.NDArray[np.uint64]) -> Matches:
        """Find pairs as `find_pairs` does. There are no postings, since equal texts share one node."""
        return Matches(*self.find_pairs(signatures), np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def signatures(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return the fingerprints of rows, uint64 ``(n,)``."""
        return self._fingerprints[rows]

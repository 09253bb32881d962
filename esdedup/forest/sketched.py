"""Which texts have a representative in common and agree as a whole, in memory."""

from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.agreement import REPRESENTATIVES, SIGNATURE, Agreement
from esdedup.forest.buckets import grow
from esdedup.forest.near import HammingIndex

Signatures = npt.NDArray[Any]

# Pairs compared at once: their sketches should stay in the processor's cache.
_COMPARED_AT_ONCE = 8_192
_ROW_BITS = np.uint64(32)
_ROW = np.uint64(0xFFFF_FFFF)
PLACES = np.array([1 << place for place in range(REPRESENTATIVES)], np.uint8)
"""The bit of each place in `listed`."""


class SketchedIndex:
    """Signatures of `verified` by row. At most 4,294,967,294 representatives."""

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Of two representatives, inclusive, 0 to 3.
            agreement: Of two whole texts.
        """
        self._agreement = agreement
        self._representatives = HammingIndex(max_distance_bits=max_distance_bits)
        # By representative: the row of its text; with room for more.
        self._rows = np.zeros(0, np.uint32)
        # By row, with room for more.
        self._held = np.zeros(0, SIGNATURE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._representatives.size_bytes + self._rows.nbytes + self._held.nbytes

    def add(self, signatures: Signatures) -> None:
        """Add signatures, `SIGNATURE` ``(n,)``; they get the next rows, and are found as listed."""
        own, places = are_listed(signatures).nonzero()
        first = len(self._representatives)
        self._representatives.add(signatures["representatives"][own, places].astype(np.uint64, copy=False))
        grow(self._rows, len(self._representatives))
        self._rows[first : len(self._representatives)] = own + self._count
        grow(self._held, self._count + len(signatures))
        self._held[self._count : self._count + len(signatures)] = signatures
        self._count += len(signatures)

    def search(self, signatures: Signatures) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find all pairs with a representative in common that agree.

        Returns:
            Positions in `signatures` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        own, simhashes = _distinct(signatures)
        queries, found = self._representatives.search(simhashes)
        pairs = own[queries].astype(np.uint64) << _ROW_BITS | self._rows[found]
        # np.unique would hash them, slowly, since they are alike.
        pairs.sort()
        pairs = pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]
        positions, rows = (pairs >> _ROW_BITS).astype(np.int64), (pairs & _ROW).astype(np.int64)
        agree = np.zeros(len(pairs), bool)
        for first in range(0, len(pairs), _COMPARED_AT_ONCE):
            some = slice(first, first + _COMPARED_AT_ONCE)
            agree[some] = self._agreement.agree(signatures[positions[some]], self._held[rows[some]])
        return positions[agree], rows[agree]

    def carriers(self, signatures: Signatures) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Find which rows are listed under a representative of one of `signatures`.

        Returns:
            Representatives, uint64, and rows, int64 ``(pairs,)`` each, without repeats.
        """
        simhashes = np.unique(_distinct(signatures)[1])
        queries, found = self._representatives.equal(simhashes)
        return simhashes[queries], self._rows[found].astype(np.int64)

    def signatures(self, rows: npt.NDArray[np.int64]) -> Signatures:
        """Return what was added, by row."""
        return self._held[rows]


def are_listed(signatures: Signatures) -> npt.NDArray[np.bool_]:
    """Tell under which representatives each node is listed: bool ``(n, s)``."""
    listed: npt.NDArray[np.bool_] = (signatures["listed"][:, None] & PLACES) != 0
    return listed


def are_first(simhashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Tell which of each row's values are the first of their kind in it: bool ``(n, s)``."""
    first = np.ones(simhashes.shape, bool)
    for place in range(1, simhashes.shape[1]):
        first[:, place] = (simhashes[:, :place] != simhashes[:, place, None]).all(axis=1)
    return first


def _distinct(signatures: Signatures) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the row of each distinct representative, and the representative."""
    rows, places = are_first(signatures["representatives"]).nonzero()
    return rows, signatures["representatives"][rows, places].astype(np.uint64, copy=False)

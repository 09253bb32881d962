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
_ROW_BITS = 32
_ROW = 0xFFFF_FFFF
# What is compared of two whole texts: the signature without its representatives.
_TEXT = np.dtype([(name, SIGNATURE[name]) for name in ("sketch", "runs", "letters")])
# A number of a representative among those of its text takes two bits.
_NUMBER_SHIFTS = (2 * np.arange(REPRESENTATIVES)).astype(np.uint8)
_NUMBER = np.uint8(3)


class SketchedIndex:
    """Signatures of `verified` by row. At most 4,294,967,294 representatives."""

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Of two representatives, inclusive, 0 to 3.
            agreement: Of two whole texts.
        """
        self._agreement = agreement
        # The distinct ones of each text, text by text.
        self._representatives = HammingIndex(max_distance_bits=max_distance_bits)
        # By row, each with room for more: the first of its representatives, ...
        self._first = np.zeros(0, np.uint32)
        # ... which of them stand in which place of the signature, two bits a place, ...
        self._numbers = np.zeros(0, np.uint8)
        # ... and the rest of the signature.
        self._texts = np.zeros(0, _TEXT)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        columns = (self._first, self._numbers, self._texts)
        return self._representatives.size_bytes + sum(column.nbytes for column in columns)

    def add(self, signatures: Signatures) -> None:
        """Add signatures, `SIGNATURE` ``(n,)``; they get the next rows, in their order."""
        simhashes = signatures["representatives"]
        originals = _originals(simhashes)
        are_new = originals == np.arange(REPRESENTATIVES)
        counts = are_new.sum(axis=1)
        numbers = np.take_along_axis(are_new.cumsum(axis=1) - 1, originals, axis=1).astype(np.uint8)
        before, self._count = self._count, self._count + len(signatures)
        for column in (self._first, self._numbers, self._texts):
            grow(column, self._count)
        self._first[before : self._count] = len(self._representatives) + counts.cumsum() - counts
        self._numbers[before : self._count] = np.bitwise_or.reduce(numbers << _NUMBER_SHIFTS, axis=1)
        for name in _TEXT.names or ():
            self._texts[name][before : self._count] = signatures[name]
        self._representatives.add(simhashes[are_new].astype(np.uint64, copy=False))

    def search(self, signatures: Signatures) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find all pairs with a representative in common that agree.

        Returns:
            Positions in `signatures` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        simhashes = signatures["representatives"]
        own, places = (_originals(simhashes) == np.arange(REPRESENTATIVES)).nonzero()
        queries, found = self._representatives.search(simhashes[own, places].astype(np.uint64, copy=False))
        texts = self._first[: self._count].searchsorted(found.astype(np.uint32), side="right") - 1
        pairs = np.unique(own[queries] << _ROW_BITS | texts)
        positions, rows = pairs >> _ROW_BITS, pairs & _ROW
        agree = np.zeros(len(pairs), bool)
        for first in range(0, len(pairs), _COMPARED_AT_ONCE):
            some = slice(first, first + _COMPARED_AT_ONCE)
            agree[some] = self._agreement.agree(signatures[positions[some]], self._texts[rows[some]])
        return positions[agree], rows[agree]

    def signatures(self, rows: npt.NDArray[np.int64]) -> Signatures:
        """Return what was added, by row."""
        signatures = np.zeros(len(rows), SIGNATURE)
        for name in _TEXT.names or ():
            signatures[name] = self._texts[name][rows]
        numbers = self._numbers[rows, None] >> _NUMBER_SHIFTS & _NUMBER
        signatures["representatives"] = self._representatives.signatures(self._first[rows, None] + numbers)
        return signatures


def _originals(simhashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the first place in its row where each simhash stands: int64 ``(n, s)``."""
    originals: npt.NDArray[np.int64] = (simhashes[:, :, None] == simhashes[:, None, :]).argmax(axis=2)
    return originals

"""Which texts have a representative in common and agree as a whole, in memory."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.signature import SIGNATURE, Signatures, are_first, are_indexed
from esdedup.neighbours.columns import grow
from esdedup.neighbours.hamming_index import HammingIndex, Matches
from esdedup.neighbours.pairs import distinct, firsts_of, pack, seconds_of

# Pairs compared at once: their sketches should stay in the processor's cache.
_COMPARED_AT_ONCE = 8_192


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
        # By row, with room for more: the first of the representatives that it is indexed under, ...
        self._first = np.zeros(0, np.uint32)
        # ... and its signature.
        self._held = np.zeros(0, SIGNATURE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._representatives.size_bytes + self._first.nbytes + self._held.nbytes

    def add(self, signatures: Signatures) -> None:
        """Add signatures, `SIGNATURE` ``(n,)``; they get the next rows, and are found as indexed."""
        indexed = are_indexed(signatures)
        counts = indexed.sum(axis=1)
        before, self._count = self._count, self._count + len(signatures)
        for column in (self._first, self._held):
            grow(column, self._count)
        self._first[before : self._count] = len(self._representatives) + counts.cumsum() - counts
        self._held[before : self._count] = signatures
        self._representatives.add(signatures["representatives"][indexed].astype(np.uint64, copy=False))

    def search(self, signatures: Signatures) -> Matches:
        """Find all pairs with a representative in common that agree, and who carries one of them."""
        own, places = are_first(signatures["representatives"]).nonzero()
        simhashes = signatures["representatives"][own, places].astype(np.uint64, copy=False)
        queries, found = self._representatives.find_pairs(simhashes)
        rows_found = self._first[: self._count].searchsorted(found.astype(np.uint32), side="right") - 1
        pairs = distinct(pack(own[queries], rows_found))
        positions, rows = firsts_of(pairs), seconds_of(pairs)
        agree = np.zeros(len(pairs), bool)
        for first in range(0, len(pairs), _COMPARED_AT_ONCE):
            some = slice(first, first + _COMPARED_AT_ONCE)
            agree[some] = self._agreement.agree(signatures[positions[some]], self._held[rows[some]])
        is_same = self._representatives.signatures(found) == simhashes[queries]
        queries, postings = queries[is_same], rows_found[is_same]
        # What several of the batch have was looked up several times.
        _, first_of_each = np.unique(simhashes[queries], return_index=True)
        once = np.isin(queries, queries[first_of_each])
        return Matches(positions[agree], rows[agree], simhashes[queries[once]], postings[once])

    def signatures(self, rows: npt.NDArray[np.int64]) -> Signatures:
        """Return what was added, by row."""
        return self._held[rows]

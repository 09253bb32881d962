"""An index in memory of signatures of `verified`: texts that have a representative in common and agree."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.signature import SIGNATURE, Signatures, are_first, are_indexed
from esdedup.neighbours.columns import grow
from esdedup.neighbours.hamming_index import HammingIndex, Matches
from esdedup.neighbours.pairs import distinct, firsts_of, pack, seconds_of

# The sketches of this many pairs fit the processor's cache.
_COMPARED_AT_ONCE = 8_192

Ints = npt.NDArray[np.int64]
Simhashes = npt.NDArray[np.uint64]


class SketchedIndex:
    """Signatures by row. Holds at most 4,294,967,294 representatives."""

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Between two representatives in common, inclusive, 0 to 3.
            agreement: When two whole texts agree.
        """
        self._agreement = agreement
        # Representatives of all signatures, in the order of their rows.
        self._representatives = HammingIndex(max_distance_bits=max_distance_bits)
        # By row, with room for more: the number of the first representative it is indexed under, ...
        self._first = np.zeros(0, np.uint32)
        # ... and its signature.
        self._signatures = np.zeros(0, SIGNATURE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._representatives.size_bytes + self._first.nbytes + self._signatures.nbytes

    def add(self, signatures: Signatures) -> None:
        """Add signatures, `SIGNATURE` ``(n,)``; they get the next rows.

        A row is found by the representatives that its signature is indexed under.
        """
        indexed = are_indexed(signatures)
        counts = indexed.sum(axis=1)
        before, self._count = self._count, self._count + len(signatures)
        for column in (self._first, self._signatures):
            grow(column, self._count)
        self._first[before : self._count] = len(self._representatives) + counts.cumsum() - counts
        self._signatures[before : self._count] = signatures
        self._representatives.add(signatures["representatives"][indexed].astype(np.uint64, copy=False))

    def search(self, signatures: Signatures) -> Matches:
        """Find the rows that agree with each signature and have a representative in common with it.

        Postings cover all representatives of the batch, whether or not the texts agree.
        """
        owners, places = are_first(signatures["representatives"]).nonzero()
        simhashes = signatures["representatives"][owners, places].astype(np.uint64, copy=False)
        queries, found = self._representatives.find_pairs(simhashes)
        found_rows = self._rows_of(found)
        candidates = distinct(pack(owners[queries], found_rows))
        positions, rows = firsts_of(candidates), seconds_of(candidates)
        agree = self._agree(signatures, positions, rows)
        is_equal = self._representatives.signatures(found) == simhashes[queries]
        keys, postings = _postings(simhashes, queries[is_equal], found_rows[is_equal])
        return Matches(positions[agree], rows[agree], keys, postings)

    def signatures(self, rows: Ints) -> Signatures:
        """Return the signatures of rows, `SIGNATURE` ``(n,)``."""
        return self._signatures[rows]

    def _rows_of(self, representatives: Ints) -> Ints:
        """Return the row of each representative, given by its number: int64 ``(n,)``."""
        first = self._first[: self._count]
        # Convert the numbers to the column's dtype, or the whole column would be converted.
        return first.searchsorted(representatives.astype(np.uint32), side="right") - 1

    def _agree(self, signatures: Signatures, positions: Ints, rows: Ints) -> npt.NDArray[np.bool_]:
        """Return which pairs of a signature's position and a row agree: bool ``(n,)``."""
        agree = np.zeros(len(rows), bool)
        for first in range(0, len(rows), _COMPARED_AT_ONCE):
            some = slice(first, first + _COMPARED_AT_ONCE)
            agree[some] = self._agreement.agree(signatures[positions[some]], self._signatures[rows[some]])
        return agree


def _postings(simhashes: Simhashes, queries: Ints, rows: Ints) -> tuple[Simhashes, Ints]:
    """Return each simhash with the rows that have it, ``(postings,)`` each, no pair twice.

    Args:
        simhashes: By query.
        queries: ``(n,)``; several of them may have the same simhash, and then the same rows.
        rows: The row found by each query, ``(n,)``.
    """
    keys = simhashes[queries]
    _, first = np.unique(keys, return_index=True)
    once = np.isin(queries, queries[first])
    return keys[once], rows[once]

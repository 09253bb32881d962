"""An index in memory of signatures of `verified`: texts that have a representative in common and agree."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.signature import SIGNATURE, Signatures, are_distinct, are_indexed, are_minhashes
from esdedup.neighbours.columns import grow
from esdedup.neighbours.hamming_index import HammingIndex, Matches
from esdedup.neighbours.pairs import Pairs, distinct, firsts_of, pack, seconds_of

# The sketches of this many pairs fit the processor's cache.
_COMPARED_AT_ONCE = 8_192

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Representatives = npt.NDArray[np.uint64]


class SketchedIndex:
    """Signatures by row. Holds at most 4,294,967,294 representatives of each kind."""

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Between two simhashes in common, inclusive, 0 to 3; minhashes must be equal.
            agreement: When two whole texts agree.
        """
        self._agreement = agreement
        self._simhashes, self._minhashes = _OfOneKind(max_distance_bits), _OfOneKind(0)
        # By row, with room for more.
        self._signatures = np.zeros(0, SIGNATURE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._simhashes.size_bytes + self._minhashes.size_bytes + self._signatures.nbytes

    def add(self, signatures: Signatures) -> None:
        """Add signatures, `SIGNATURE` ``(n,)``; they get the next rows.

        A row is found by the representatives that its signature is indexed under.
        """
        before, self._count = self._count, self._count + len(signatures)
        grow(self._signatures, self._count)
        self._signatures[before : self._count] = signatures
        for of_kind, representatives, indexed in self._by_kind(signatures, are_indexed(signatures)):
            of_kind.add(representatives, indexed)

    def search(self, signatures: Signatures) -> Matches:
        """Find the rows that agree with each signature and have a representative in common with it.

        Postings cover all representatives of the batch, whether or not the texts agree.
        """
        found = [
            of_kind.search(representatives, chosen)
            for of_kind, representatives, chosen in self._by_kind(
                signatures, are_distinct(signatures["representatives"])
            )
        ]
        pairs, keys, postings = (np.concatenate(parts) for parts in zip(*found, strict=True))
        candidates = distinct(pairs)
        positions, rows = firsts_of(candidates), seconds_of(candidates)
        agree = self._agree(signatures, positions, rows)
        return Matches(positions[agree], rows[agree], keys, postings)

    def signatures(self, rows: Ints) -> Signatures:
        """Return the signatures of rows, `SIGNATURE` ``(n,)``."""
        return self._signatures[rows]

    def _by_kind(
        self, signatures: Signatures, chosen: Bools
    ) -> list[tuple["_OfOneKind", Representatives, Bools]]:
        """Return for each kind its index, all representatives, and which of the chosen are of that kind."""
        representatives = np.ascontiguousarray(signatures["representatives"], np.uint64)
        of_minhashes = are_minhashes(representatives)
        return [
            (self._simhashes, representatives, chosen & ~of_minhashes),
            (self._minhashes, representatives, chosen & of_minhashes),
        ]

    def _agree(self, signatures: Signatures, positions: Ints, rows: Ints) -> Bools:
        """Return which pairs of a signature's position and a row agree: bool ``(n,)``."""
        agree = np.zeros(len(rows), bool)
        for first in range(0, len(rows), _COMPARED_AT_ONCE):
            some = slice(first, first + _COMPARED_AT_ONCE)
            agree[some] = self._agreement.agree(signatures[positions[some]], self._signatures[rows[some]])
        return agree


class _OfOneKind:
    """The representatives of one kind, several to a row."""

    def __init__(self, max_distance_bits: int) -> None:
        """Make an empty index of representatives that match within so many bits, 0 to 3."""
        # In the order of their rows.
        self._index = HammingIndex(max_distance_bits=max_distance_bits)
        # By row, with room for more: the number of its first representative in the index.
        self._first = np.zeros(0, np.uint32)
        self._count = 0

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""
        return self._index.size_bytes + self._first.nbytes

    def add(self, representatives: Representatives, chosen: Bools) -> None:
        """Add the chosen representatives of the next rows, ``(n, s)`` each."""
        counts = chosen.sum(axis=1)
        before, self._count = self._count, self._count + len(representatives)
        grow(self._first, self._count)
        self._first[before : self._count] = len(self._index) + counts.cumsum() - counts
        self._index.add(representatives[chosen])

    def search(self, representatives: Representatives, chosen: Bools) -> tuple[Pairs, Representatives, Ints]:
        """Find the rows with a representative that matches one of those chosen, ``(n, s)`` each.

        Returns:
            Packed pairs of a position and a row, with repeats; and postings: each representative with the
            rows that have it, ``(postings,)`` each, no pair twice.
        """
        owners, places = chosen.nonzero()
        queried = representatives[owners, places]
        queries, found = self._index.find_pairs(queried)
        rows = self._rows_of(found)
        is_equal = self._index.signatures(found) == queried[queries]
        keys, postings = _postings(queried, queries[is_equal], rows[is_equal])
        return pack(owners[queries], rows), keys, postings

    def _rows_of(self, representatives: Ints) -> Ints:
        """Return the row of each representative, given by its number: int64 ``(n,)``."""
        first = self._first[: self._count]
        # Convert the numbers to the column's dtype, or the whole column would be converted.
        return first.searchsorted(representatives.astype(np.uint32), side="right") - 1


def _postings(representatives: Representatives, queries: Ints, rows: Ints) -> tuple[Representatives, Ints]:
    """Return each representative with the rows that have it, ``(postings,)`` each, no pair twice.

    Args:
        representatives: By query.
        queries: ``(n,)``; several of them may have the same representative, and then the same rows.
        rows: The row found by each query, ``(n,)``.
    """
    keys = representatives[queries]
    _, first = np.unique(keys, return_index=True)
    once = np.isin(queries, queries[first])
    return keys[once], rows[once]

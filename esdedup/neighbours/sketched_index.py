"""An index in memory of signatures of `verified`: texts that have a representative in common and agree."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.signature import (
    REPRESENTATIVES,
    SIGNATURE,
    Signatures,
    are_distinct,
    are_indexed,
    are_minhashes,
)
from esdedup.neighbours.columns import grow
from esdedup.neighbours.hamming_index import Matches
from esdedup.neighbours.hamming_tables import HammingTables
from esdedup.neighbours.hot_limits import HotLimits
from esdedup.neighbours.numbers import Numbers
from esdedup.neighbours.pairs import Pairs, distinct, firsts_of, pack, seconds_of

# The sketches of this many pairs fit the processor's cache.
_COMPARED_AT_ONCE = 8_192
# What a signature has besides its representatives, by the names that it has there.
_OTHERS = [name for name in SIGNATURE.names or () if name != "representatives"]
_TEXT = np.dtype([(name, SIGNATURE[name]) for name in _OTHERS])

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Representatives = npt.NDArray[np.uint64]


class SketchedIndex:
    """Signatures by row. Holds at most 477,218,588 of them."""

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Between two simhashes in common, inclusive, 0 to 3; minhashes must be equal.
            agreement: When two whole texts agree.
        """
        self._agreement = agreement
        self._rows = Numbers()
        # By row, with room for more. The representatives have numbers: those of a row follow each other.
        self._representatives = np.zeros(0, np.uint64)
        self._texts = np.zeros(0, _TEXT)
        self._simhashes, self._minhashes = (
            HammingTables(self._representatives, max_distance_bits=bits, hot_limits=HotLimits())
            for bits in (max_distance_bits, 0)
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        tables = self._simhashes.size_bytes + self._minhashes.size_bytes
        return tables + self._representatives.nbytes + self._texts.nbytes + self._rows.size_bytes

    def add(self, signatures: Signatures) -> Ints:
        """Add signatures, `SIGNATURE` ``(n,)``; return their rows, int64 ``(n,)``.

        A row is found by the representatives that its signature is indexed under.
        """
        rows = self._rows.take(len(signatures))
        grow(self._representatives, self._rows.end * REPRESENTATIVES)
        grow(self._texts, self._rows.end)
        self._representatives[_numbers_of(rows)] = signatures["representatives"]
        self._texts[rows] = signatures[_OTHERS]
        for tables, numbers in self._indexed(rows):
            tables.add(numbers)
        return rows

    def remove(self, rows: Ints) -> None:
        """Remove rows that are there, each once, ``(n,)``; they are given out again."""
        for tables, numbers in self._indexed(rows):
            tables.remove(numbers)
        self._rows.give_back(rows)

    def search(self, signatures: Signatures) -> Matches:
        """Find the rows that agree with each signature and have a representative in common with it.

        Postings cover all representatives of the batch, whether or not the texts agree.
        """
        representatives = np.ascontiguousarray(signatures["representatives"], np.uint64)
        chosen, of_minhashes = are_distinct(representatives), are_minhashes(representatives)
        found = [
            self._search(self._simhashes, representatives, chosen & ~of_minhashes),
            self._search(self._minhashes, representatives, chosen & of_minhashes),
        ]
        pairs, keys, postings = (np.concatenate(parts) for parts in zip(*found, strict=True))
        candidates = distinct(pairs)
        positions, rows = firsts_of(candidates), seconds_of(candidates)
        agree = self._agree(signatures, positions, rows)
        return Matches(positions[agree], rows[agree], keys, postings)

    def signatures(self, rows: Ints) -> Signatures:
        """Return the signatures of rows, `SIGNATURE` ``(n,)``."""
        signatures = np.empty(len(rows), SIGNATURE)
        signatures["representatives"] = self._representatives[_numbers_of(rows)]
        texts = self._texts[rows]
        for name in _OTHERS:
            signatures[name] = texts[name]
        return signatures

    def _indexed(self, rows: Ints) -> list[tuple[HammingTables, npt.NDArray[np.uint32]]]:
        """Return for each kind its tables, and the numbers of the representatives that rows are found by."""
        numbers = _numbers_of(rows)
        of_minhashes = are_minhashes(self._representatives[numbers])
        indexed = are_indexed(self._texts[rows])
        return [
            (self._simhashes, numbers[indexed & ~of_minhashes].astype(np.uint32)),
            (self._minhashes, numbers[indexed & of_minhashes].astype(np.uint32)),
        ]

    def _search(
        self, tables: HammingTables, representatives: Representatives, chosen: Bools
    ) -> tuple[Pairs, Representatives, Ints]:
        """Find the rows with a representative that matches one of those chosen, ``(n, s)`` each.

        Returns:
            Packed pairs of a position and a row, with repeats; and postings: each representative with the
            rows that have it, ``(postings,)`` each, no pair twice.
        """
        owners, places = chosen.nonzero()
        queried = representatives[owners, places]
        found = tables.search(queried)
        queries, numbers = firsts_of(found), seconds_of(found)
        rows = numbers // REPRESENTATIVES
        is_equal = self._representatives[numbers] == queried[queries]
        keys, postings = _postings(queried, queries[is_equal], rows[is_equal])
        return pack(owners[queries], rows), keys, postings

    def _agree(self, signatures: Signatures, positions: Ints, rows: Ints) -> Bools:
        """Return which pairs of a signature's position and a row agree: bool ``(n,)``."""
        agree = np.zeros(len(rows), bool)
        for first in range(0, len(rows), _COMPARED_AT_ONCE):
            some = slice(first, first + _COMPARED_AT_ONCE)
            agree[some] = self._agreement.agree(signatures[positions[some]], self._texts[rows[some]])
        return agree


def _numbers_of(rows: Ints) -> Ints:
    """Return the numbers of the representatives of rows: int64 ``(n, REPRESENTATIVES)``."""
    return rows[:, None] * REPRESENTATIVES + np.arange(REPRESENTATIVES)


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

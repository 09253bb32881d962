"""The relation of a profile: which signatures are near each other, and which may share a tree."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.bands import Layout
from esdedup.fingerprint.signature import PLACES, SIGNATURE, are_distinct, are_indexed, are_minhashes
from esdedup.fingerprint.simhash import from_hex

Signatures = npt.NDArray[Any]
Representatives = npt.NDArray[np.uint64]


class Relation:
    """How a profile compares, names and indexes signatures.

    Profiles with one simhash for each text: texts within a distance are near, and all may join. `verified`:
    texts are near that have a representative in common and agree as a whole.
    """

    def __init__(self, *, max_distance_bits: int, agreement: Agreement | None) -> None:
        """Compare as a profile does.

        Args:
            max_distance_bits: Between two simhashes in common, inclusive, 0 to 3; minhashes must be equal.
            agreement: When two whole texts agree; None if they are not compared.
        """
        self.max_distance_bits = max_distance_bits
        self._agreement = agreement
        self.dtype: np.dtype[Any] = np.dtype("<u8") if agreement is None else SIGNATURE
        """Of a signature, whose bytes are the same on every machine."""
        self.id_bytes = 8 if agreement is None else 16
        """The length of a node id, which has two hex digits for each byte."""
        self.core = _core.Relation(max_distance_bits, None if agreement is None else agreement.core)
        """The same in the crate."""

    @property
    def max_postings(self) -> int:
        """At most this many nodes made within the retention are indexed under one representative."""
        # Equal texts share one node, so where texts are not compared any limit is never reached.
        return 2**31 if self._agreement is None else self._agreement.max_postings

    def ids(self, signatures: Signatures) -> list[str]:
        """Return the node id of each signature; ids are equal exactly if all that is compared is equal.

        The simhash in hex; of `verified` a 128-bit MurmurHash3 of everything but `indexed`.
        """
        return self.written_ids(self.core.ids(signatures.tobytes()))

    def written_ids(self, ids: bytes) -> list[str]:
        """Return the node ids of a column of the crate in hex."""
        digits, size = ids.hex(), 2 * self.id_bytes
        return [digits[at : at + size] for at in range(0, len(digits), size)]

    def signature_of(self, node_id: str) -> bytes | None:
        """Return the signature with that node id, None if it cannot be computed from the id."""
        return from_hex([node_id]).astype(self.dtype).tobytes() if self._agreement is None else None

    def representatives(self, signatures: Signatures) -> Representatives:
        """Return the representatives of texts: uint64 ``(n, s)``.

        If two texts are near, a representative of one is within `max_distance_bits` of one of the other,
        by `representatives.distances_bits`.
        """
        if self._agreement is None:
            return signatures.astype(np.uint64, copy=False)[:, None]
        return np.ascontiguousarray(signatures["representatives"], np.uint64)

    def are_exact(self, representatives: Representatives) -> npt.NDArray[np.bool_]:
        """Return which representatives are near equal ones only: bool of the same shape."""
        if self._agreement is None:
            return np.zeros(representatives.shape, bool)
        return are_minhashes(representatives)

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return which representatives do not repeat an earlier one of the same text: bool ``(n, s)``."""
        return are_distinct(self.representatives(signatures))

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return which representatives each node is indexed under, and so found by: bool ``(n, s)``."""
        if self._agreement is None:
            return np.ones((len(signatures), 1), bool)
        return are_indexed(signatures)

    def terms(self, signatures: bytes, layout: Layout, *, are_indexed: bool) -> list[list[str]]:
        """Return the keys of each of some signatures, as terms for an inverted index.

        Args:
            signatures: One after the other.
            layout: Of the band keys.
            are_indexed: Whether only the representatives count that each is indexed under, as a node; else
                all that differ from each other.
        """
        return self.core.terms(signatures, layout.tables, layout.written, are_indexed)

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:
        """Return the signatures, indexed under the given representatives, bool ``(n, s)``."""
        if self._agreement is None:
            return signatures
        marked = signatures.copy()
        marked["indexed"] = (indexed * PLACES).sum(axis=1)
        return marked

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Return which texts may be in the tree of a root, row by row: bool ``(n,)``."""
        if self._agreement is None:
            return np.ones(len(signatures), bool)
        return Comparison.of(signatures, roots, self._agreement).may_join


class Rules(Protocol):
    """The settings that define a relation: those of a profile, or those stored with a forest."""

    @property
    def max_distance_bits(self) -> int:
        """The largest distance between two simhashes in common, inclusive."""

    @property
    def agreement(self) -> Agreement | None:
        """When two whole texts agree; None if they are not compared."""


def relation_of(rules: Rules) -> Relation:
    """Return the relation that these rules define."""
    return Relation(max_distance_bits=rules.max_distance_bits, agreement=rules.agreement)

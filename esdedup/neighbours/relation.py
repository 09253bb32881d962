"""The relation of a profile: which signatures are near each other, and which may share a tree."""

from typing import Any, Protocol

import mmh3
import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import WIDTH_BITS
from esdedup.fingerprint.signature import PLACES, SIGNATURE, are_distinct, are_indexed, are_minhashes
from esdedup.fingerprint.simhash import from_hex, to_hex
from esdedup.fingerprint.sketch import resemblance
from esdedup.neighbours.hamming_index import HammingIndex, Matches
from esdedup.neighbours.sketched_index import SketchedIndex

Signatures = npt.NDArray[Any]


class NeighbourIndex(Protocol):
    """Signatures by row, searched for those near given ones.

    Nearness is symmetric, and equal signatures are near. Rows of an index from which nothing was removed are
    numbered from 0 on, as they were added. Later their order tells nothing.
    """

    def __len__(self) -> int:
        """Return how many signatures it holds."""

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""

    def add(self, signatures: Signatures) -> npt.NDArray[np.int64]:
        """Add signatures; return their rows: int64 ``(n,)``. Rows that were removed are used again first."""

    def remove(self, rows: npt.NDArray[np.int64]) -> None:
        """Forget rows that it holds, each given once, ``(n,)``; its memory stays for those added later."""

    def search(self, signatures: Signatures) -> Matches:
        """Find the rows near each signature, and those indexed under the same representatives."""

    def signatures(self, rows: npt.NDArray[np.int64]) -> Signatures:
        """Return the signatures of rows."""


class Relation(Protocol):
    """How a profile compares, names and indexes signatures."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of a signature, whose bytes are the same on every machine."""

    @property
    def id_bytes(self) -> int:
        """The length of a node id, which has two hex digits for each byte."""

    @property
    def max_distance_bits(self) -> int:
        """The largest distance between two simhashes in common, inclusive."""

    @property
    def max_postings(self) -> int:
        """At most this many nodes made within the retention are indexed under one representative."""

    def new_index(self) -> NeighbourIndex:
        """Return an empty index."""

    def ids(self, signatures: Signatures) -> list[str]:
        """Return the node id of each signature; ids are equal exactly if all that is compared is equal."""

    def signature_of(self, node_id: str) -> bytes | None:
        """Return the signature with that node id, None if it cannot be computed from the id."""

    def representatives(self, signatures: Signatures) -> npt.NDArray[np.uint64]:
        """Return the representatives of texts: uint64 ``(n, s)``.

        If two texts are near, a representative of one is within `max_distance_bits` of one of the other,
        by `representatives.distances_bits`.
        """

    def are_exact(self, representatives: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return which representatives are near equal ones only: bool of the same shape."""

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return which representatives do not repeat an earlier one of the same text: bool ``(n, s)``."""

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return which representatives each node is indexed under, and so found by: bool ``(n, s)``."""

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:
        """Return the signatures, indexed under the given representatives, bool ``(n, s)``."""

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts agree as a whole, row by row: bool ``(n,)``.

        Texts that agree are near if they also have a representative in common.
        """

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Return which texts may be in the tree of a root, row by row: bool ``(n,)``."""

    def resemblance(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.float64]:
        """Return how much texts resemble roots, row by row: float64 ``(n,)``, 0 to 1.

        Equal on every machine, to the last bit: it decides between several roots.
        """


class ByDistance:
    """The relation of profiles with one simhash per text: texts within a distance are near.

    Every text may join the tree of every root.
    """

    dtype = np.dtype("<u8")
    id_bytes = 8
    # Never reached: equal texts share one node.
    max_postings = 2**31

    def __init__(self, *, max_distance_bits: int) -> None:
        """Compare simhashes by distance.

        Args:
            max_distance_bits: Inclusive, 0 to 3.
        """
        self.max_distance_bits = max_distance_bits

    def new_index(self) -> HammingIndex:
        """Return an empty index."""
        return HammingIndex(max_distance_bits=self.max_distance_bits)

    def ids(self, signatures: Signatures) -> list[str]:
        """Return the simhashes in hex."""
        return to_hex(signatures)

    def signature_of(self, node_id: str) -> bytes | None:
        """Return the simhash that the id spells."""
        return from_hex([node_id]).astype(self.dtype).tobytes()

    def representatives(self, signatures: Signatures) -> npt.NDArray[np.uint64]:
        """Return the signatures, which are simhashes: uint64 ``(n, 1)``."""
        return signatures.astype(np.uint64, copy=False)[:, None]

    def are_exact(self, representatives: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return False for all: they are simhashes."""
        return np.zeros(representatives.shape, bool)

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return True for the one representative of each text: bool ``(n, 1)``."""
        return np.ones((len(signatures), 1), bool)

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return True for the one representative of each text: bool ``(n, 1)``."""
        return np.ones((len(signatures), 1), bool)

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:  # noqa: ARG002
        """Return the signatures unchanged: every node is indexed."""
        return signatures

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return True for all: whole texts are not compared."""
        return np.ones(len(one), bool)

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return True for all."""
        return np.ones(len(signatures), bool)

    def resemblance(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.float64]:
        """Return the share of bits that two simhashes have in common: float64 ``(n,)``."""
        distances_bits = np.bitwise_count(signatures ^ roots)
        return np.asarray(1 - distances_bits / WIDTH_BITS, np.float64)


class ByAgreement:
    """The relation of `verified`: texts with a representative in common that agree as a whole are near."""

    dtype = SIGNATURE
    id_bytes = 16

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Compare representatives by distance, and whole texts by `agreement`.

        Args:
            max_distance_bits: Between two representatives in common, inclusive, 0 to 3.
            agreement: When two whole texts agree.
        """
        self.max_distance_bits = max_distance_bits
        self.max_postings = agreement.max_postings
        self._agreement = agreement

    def new_index(self) -> SketchedIndex:
        """Return an empty index."""
        return SketchedIndex(max_distance_bits=self.max_distance_bits, agreement=self._agreement)

    def ids(self, signatures: Signatures) -> list[str]:
        """Return a 128-bit hash of all that is compared, in hex; that excludes `indexed`."""
        compared = signatures.copy()
        compared["indexed"] = 0
        size, data = SIGNATURE.itemsize, compared.tobytes()
        return [mmh3.hash_bytes(data[at : at + size]).hex() for at in range(0, len(data), size)]

    def signature_of(self, node_id: str) -> bytes | None:  # noqa: ARG002
        """Return None: an id is a hash."""
        return None

    def representatives(self, signatures: Signatures) -> npt.NDArray[np.uint64]:
        """Return the simhashes of sentences, and minhashes: uint64 ``(n, REPRESENTATIVES)``."""
        return np.ascontiguousarray(signatures["representatives"], np.uint64)

    def are_exact(self, representatives: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return which representatives are minhashes."""
        return are_minhashes(representatives)

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Return which representatives are the first of equal ones; short texts repeat their first."""
        return are_distinct(signatures["representatives"])

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Read the bits of `indexed`."""
        return are_indexed(signatures)

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:
        """Return the signatures with the bits of `indexed` set accordingly."""
        marked = signatures.copy()
        marked["indexed"] = (indexed * PLACES).sum(axis=1)
        return marked

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts agree, row by row: bool ``(n,)``."""
        return self._agreement.agree(one, other)

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Return which texts agree with a root, a little less strictly than with each other."""
        return self._agreement.may_join(signatures, roots)

    def resemblance(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.float64]:
        """Estimate the share of their wording that two texts have in common: float64 ``(n,)``."""
        return resemblance(signatures["sketch"], roots["sketch"])


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
    if rules.agreement is None:
        return ByDistance(max_distance_bits=rules.max_distance_bits)
    return ByAgreement(max_distance_bits=rules.max_distance_bits, agreement=rules.agreement)

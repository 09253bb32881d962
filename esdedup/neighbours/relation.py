"""What a profile says of two signatures: which are near, and which may stand in one tree."""

from typing import Any, Protocol

import mmh3
import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.signature import PLACES, SIGNATURE, are_first, are_indexed
from esdedup.fingerprint.simhash import from_hex, to_hex
from esdedup.neighbours.hamming_index import HammingIndex, Matches
from esdedup.neighbours.sketched_index import SketchedIndex

Signatures = npt.NDArray[Any]


class NeighbourIndex(Protocol):
    """Signatures by row, searched by a profile's relation `near`.

    The relation must be symmetric, and equal signatures must be near.
    """

    def __len__(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""

    def add(self, signatures: Signatures) -> None:
        """Add signatures; they get the next rows, in their order."""

    def search(self, signatures: Signatures) -> Matches:
        """Find what is near, and who carries the same representatives."""

    def signatures(self, rows: npt.NDArray[np.int64]) -> Signatures:
        """Return what was added, by row."""


class Relation(Protocol):
    """A profile's view of signatures. Pure."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a signature; its bytes are the same on every machine."""

    @property
    def max_distance_bits(self) -> int:
        """Between two simhashes that meet, inclusive."""

    @property
    def max_postings(self) -> int:
        """How many nodes may be indexed under one representative within the retention."""

    def new_index(self) -> NeighbourIndex:
        """Make an empty index of `near`."""

    def ids(self, signatures: Signatures) -> list[str]:
        """Name signatures: equal ones, and only those, have equal names."""

    def signature_of(self, node_id: str) -> bytes | None:
        """Return the signature that an id names, None where an id does not tell it."""

    def simhashes(self, signatures: Signatures) -> npt.NDArray[np.uint64]:
        """Return what represents texts, two of which near texts have within 3 bits: uint64 ``(n, s)``."""

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which of the representatives of a text are no repetition of another one: bool ``(n, s)``."""

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Tell under which representatives nodes are indexed, that is, found: bool ``(n, s)``."""

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:
        """Return signatures of nodes that are indexed so."""

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which whole texts agree, row by row; those that also have representatives near are near."""

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which may be in the tree of a root, row by row: bool ``(n,)``."""


class ByDistance:
    """Profiles with one simhash a text: near by distance, and whoever is near may join."""

    dtype = np.dtype("<u8")
    # Never reached: equal texts are one node.
    max_postings = 2**31

    def __init__(self, *, max_distance_bits: int) -> None:
        """Prepare.

        Args:
            max_distance_bits: Inclusive, 0 to 3.
        """
        self.max_distance_bits = max_distance_bits

    def new_index(self) -> HammingIndex:
        """Make an empty index."""
        return HammingIndex(max_distance_bits=self.max_distance_bits)

    def ids(self, signatures: Signatures) -> list[str]:
        """Write the simhashes in hex."""
        return to_hex(signatures)

    def signature_of(self, node_id: str) -> bytes | None:
        """Read the simhash."""
        return from_hex([node_id]).astype(self.dtype).tobytes()

    def simhashes(self, signatures: Signatures) -> npt.NDArray[np.uint64]:
        """Return what is there already."""
        return signatures.astype(np.uint64, copy=False)[:, None]

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Tell that all are."""
        return np.ones((len(signatures), 1), bool)

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Tell that all are."""
        return np.ones((len(signatures), 1), bool)

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:  # noqa: ARG002
        """Return the signatures as they are."""
        return signatures

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Tell that all do."""
        return np.ones(len(one), bool)

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Tell that all may."""
        return np.ones(len(signatures), bool)


class ByAgreement:
    """The profile `verified`: a representative in common, and whole texts that agree."""

    dtype = SIGNATURE

    def __init__(self, *, max_distance_bits: int, agreement: Agreement) -> None:
        """Prepare.

        Args:
            max_distance_bits: Of two representatives, inclusive, 0 to 3.
            agreement: Of two whole texts.
        """
        self.max_distance_bits = max_distance_bits
        self.max_postings = agreement.max_postings
        self._agreement = agreement

    def new_index(self) -> SketchedIndex:
        """Make an empty index."""
        return SketchedIndex(max_distance_bits=self.max_distance_bits, agreement=self._agreement)

    def ids(self, signatures: Signatures) -> list[str]:
        """Name each by a hash of 128 bits of all that is compared, wherever it is indexed."""
        named = signatures.copy()
        named["indexed"] = 0
        size, data = SIGNATURE.itemsize, named.tobytes()
        return [mmh3.hash_bytes(data[at : at + size]).hex() for at in range(0, len(data), size)]

    def signature_of(self, node_id: str) -> bytes | None:  # noqa: ARG002
        """Tell that an id is a hash, which cannot be read back."""
        return None

    def simhashes(self, signatures: Signatures) -> npt.NDArray[np.uint64]:
        """Return those of sentences and minhashes."""
        return np.ascontiguousarray(signatures["representatives"], np.uint64)

    def are_distinct(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which come first: places that are left over repeat the first one."""
        return are_first(signatures["representatives"])

    def indexed(self, signatures: Signatures) -> npt.NDArray[np.bool_]:
        """Read the bits of the places."""
        return are_indexed(signatures)

    def mark_indexed(self, signatures: Signatures, indexed: npt.NDArray[np.bool_]) -> Signatures:
        """Write the bits of the places."""
        written = signatures.copy()
        written["indexed"] = (indexed * PLACES).sum(axis=1)
        return written

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which texts agree."""
        return self._agreement.agree(one, other)

    def may_join(self, signatures: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which agree with the root, a little less strictly."""
        return self._agreement.may_join(signatures, roots)


class Rules(Protocol):
    """What decides a relation: a profile, or what a forest says of itself."""

    @property
    def max_distance_bits(self) -> int:
        """Between two simhashes, inclusive."""

    @property
    def agreement(self) -> Agreement | None:
        """Of two whole texts, None where nobody asks."""


def relation_of(rules: Rules) -> Relation:
    """Return the relation that follows from those rules.

    Raises:
        SettingError: The distance is more than an index finds.
    """
    if rules.agreement is None:
        return ByDistance(max_distance_bits=rules.max_distance_bits)
    return ByAgreement(max_distance_bits=rules.max_distance_bits, agreement=rules.agreement)

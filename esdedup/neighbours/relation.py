"""The relation of a profile, which determines which signatures are near each other and may share a tree."""

import itertools
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.bands import WIDTH_BITS, Layout
from esdedup.fingerprint.signature import MINHASH, PLACES, REPRESENTATIVES, SIGNATURE, Signatures
from esdedup.fingerprint.simhash import from_hex

if TYPE_CHECKING:
    from esdedup.fingerprint.profile import Profile

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Representatives = npt.NDArray[np.uint64]

Way = Literal["root", "member", "address"]
"""How a text joins a tree, in the order of the crate's bits: `root` if it agrees with a member and the root,
`member` if it nearly equals a member and resembles the root, `address` if it is a later version of one."""


class Relation:
    """How a profile compares, names and indexes signatures.

    In profiles with one simhash per text, texts are near if few bits differ, and any near text may join. In
    `verified`, texts are near if they have a representative in common and agree as a whole. Simhashes count
    as common if they differ in at most a few bits, so a simhash has a band key for each table of a layout.
    Minhashes count as common only if they are equal, so a minhash has one key.
    """

    def __init__(self, *, max_distance_bits: int, agreement: Agreement | None) -> None:
        """Create the relation of a profile.

        Simhashes count as common if they differ in at most `max_distance_bits`, 0 to 3. `agreement` has the
        rules for whole texts; None if whole texts are not compared.
        """
        self.max_distance_bits = max_distance_bits
        self._agreement = agreement
        self.dtype: np.dtype[Any] = np.dtype("<u8") if agreement is None else SIGNATURE
        """The dtype of signatures, whose bytes are the same on every machine."""
        self.counts_leaves = agreement is None
        """Whether a text near several roots joins the root with the most leaves, not the nearest root."""
        self.most_nodes = 2**32 // (2 if agreement is None else REPRESENTATIVES + 1) - 2**17
        """The most nodes in memory, with room for a batch: `index.rs` numbers all their keys with 32 bits."""
        self.core = _core.Relation(max_distance_bits, agreement)
        """The crate's relation."""

    def ids(self, signatures: Signatures) -> list[str]:
        """Return the node id of each signature; ids are equal if and only if all compared fields are equal.

        An id is the simhash in hex; for `verified`, a 128-bit MurmurHash3 of the compared fields and the
        retention period.
        """
        return self.core.ids(signatures.tobytes())

    def signature_of(self, node_id: str) -> bytes | None:
        """Return the signature for a node id; None if it cannot be computed from the id."""
        return from_hex([node_id]).astype(self.dtype).tobytes() if self._agreement is None else None

    def representatives(self, signatures: Signatures) -> Representatives:
        """Return the representatives of texts: uint64 ``(n, s)``, `s` per text.

        If two texts are near, a representative of one text is within `max_distance_bits` of a representative
        of the other, as measured by `distances_bits`.
        """
        if self._agreement is None:
            return signatures.astype(np.uint64, copy=False)[:, None]
        return np.ascontiguousarray(signatures["representatives"], np.uint64)

    def are_exact(self, representatives: Representatives) -> Bools:
        """Return which representatives are compared only for equality: bool of the same shape."""
        exact: Bools = representatives & (MINHASH if self._agreement else np.uint64(0)) != 0
        return exact

    def distances_bits(self, one: Representatives, other: Representatives) -> npt.NDArray[np.uint8]:
        """Return the number of differing bits of representatives, elementwise; 64 for unequal minhashes."""
        distances: npt.NDArray[np.uint8] = np.bitwise_count(one ^ other)
        is_far = (self.are_exact(one) | self.are_exact(other)) & (distances != 0)
        return np.where(is_far, np.uint8(WIDTH_BITS), distances)

    def indexed(self, signatures: Signatures) -> Bools:
        """Return which representatives each node is indexed under: bool ``(n, s)``, `s` per text."""
        if self._agreement is None:
            return np.ones((len(signatures), 1), bool)
        indexed: Bools = signatures["indexed"][:, None] & PLACES != 0
        return indexed

    def terms(self, signatures: bytes, layout: Layout, *, are_indexed: bool) -> list[list[str]]:
        """Return the keys of each of the concatenated signatures, as terms for an inverted index.

        With `are_indexed`, these are the keys of representatives under which the node is indexed; otherwise,
        of all distinct representatives.
        """
        return self.core.terms(signatures, layout, are_indexed)

    def search_terms(self, signature: Signatures, layout: Layout) -> list[str]:
        """Return the distinct terms with which to search for the candidates of a signature of shape ``(1,)``.

        The terms of its simhashes come first, then the terms of its minhashes and its address.
        """
        representatives = self.representatives(signature)[0]
        simhashes = representatives[~self.are_exact(representatives)].tolist()
        own = self.terms(signature.tobytes(), layout, are_indexed=False)
        return list(dict.fromkeys(itertools.chain(*map(layout.search_terms, simhashes), *own)))

    def joining(
        self, signatures: Signatures, members: Signatures, roots: Signatures
    ) -> tuple[list[Way | None], npt.NDArray[np.float64]]:
        """Return, row by row, how a text may join a tree through a near member, or None if it may not.

        Also return how much the texts resemble the roots: ``(n,)``, from 0 to 1. Without sketches, all texts
        may join, and the resemblance is 0.
        """
        if self._agreement is None:
            return ["root"] * len(signatures), np.zeros(len(signatures))
        by_member = Comparison.of(signatures, members, self._agreement).by_member
        compared = Comparison.of(signatures, roots, self._agreement)
        allowed = (by_member & compared.to_root).tolist()
        ways = [
            next((way for at, way in enumerate(get_args(Way)) if bits >> at & 1), None) for bits in allowed
        ]
        return ways, compared.resemblance


def relation_of(profile: "Profile") -> Relation:
    """Return the relation of a profile."""
    return Relation(max_distance_bits=profile.max_distance_bits, agreement=profile.agreement)


class NeighbourIndex(_core.NeighbourIndex):
    """An index of signatures by row, from 0, with a search for near signatures.

    Nearness is symmetric, and equal signatures are near.
    """

    _dtype: np.dtype[Any]

    def __new__(cls, relation: Relation) -> Self:
        """Create an empty index."""
        index = super().__new__(cls, relation.core)
        index._dtype = relation.dtype
        return index

    def find_pairs(self, signatures: npt.NDArray[Any]) -> tuple[Ints, Ints]:
        """Return pairs of a position in `signatures` and a near row, in order: int64 ``(pairs,)`` each."""
        positions, rows = self.pair_columns(signatures.astype(self._dtype, copy=False).tobytes())
        return np.frombuffer(positions, np.int64), np.frombuffer(rows, np.int64)

"""The signature of a text under the profile `verified`: everything that is compared and stored.

It is made in `core/src/signature.rs`, which says how, and compared in `core/src/forest/agreement.rs`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.errors import TextFailed
from esdedup.text.parsed import ParsedTexts

BINS = 256
WORDS = BINS * 2 // 64
"""64-bit words of a sketch: sketches are uint64 ``(n, WORDS)``."""
REPRESENTATIVES = 9
SIGNATURE = np.dtype(
    [
        # Simhashes of one or two sentences, which are even, then minhashes of the wording, which are odd; a
        # text with too few words repeats the first simhash.
        ("representatives", "<u8", (REPRESENTATIVES,)),
        ("sketch", "<u8", (WORDS,)),
        # One bit for each of 64 groups of figures: 1 if an odd number of the text's figures are in it.
        ("figure_sketch", "<u8"),
        # The same for pairs of figures that follow one another.
        ("pair_sketch", "<u8"),
        # Of its words, above all those that it repeats, as `core/src/names.rs` has it.
        ("name_sketch", "<u8"),
        # Its length, where a word or number is 2 units and an East Asian character 1; its runs of tokens; and
        # its figures, counted each time they come. From 32,768 on in steps of 32, as `Count` in the core has
        # it.
        ("units", "<u2"),
        ("runs", "<u2"),
        ("figures", "<u2"),
        # For a node: one bit for each representative it is indexed under, the lowest for the first.
        ("indexed", "<u2"),
        # For a node: where its article came from, as `esdedup.sites.Provenance` has it; for a root, in the
        # lowest bits, in which period of the retention it was made.
        ("origin", "<u8"),
    ]
)
"""176 bytes, little-endian."""

MINHASH = np.uint64(1)
"""The lowest bit of a representative: 1 in a minhash, 0 in the simhash of a sentence."""

PLACES = np.array([1 << place for place in range(REPRESENTATIVES)], np.uint16)
"""The bit of each representative in `indexed`."""

Signatures = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fingerprints:
    """The fingerprints of a batch of texts."""

    # (n,), in the profile's dtype: uint64 simhashes, or `SIGNATURE`; zeros for a text that has none.
    signatures: npt.NDArray[Any]
    # bool (n,): False for a text that is too short or has no words.
    exists: npt.NDArray[np.bool_]
    # int64 (n,): the letters and digits in the fingerprinted part of each text.
    alphanumerics: npt.NDArray[np.int64]
    # int64 (n,): how many of these were left out as boilerplate.
    boilerplate_letters: npt.NDArray[np.int64]
    # bool (n,): True for a text that is longer than the profile's `max_text_length`, so that only its
    # beginning is fingerprinted.
    are_cut: npt.NDArray[np.bool_]
    # uint64 (n,): the id of each text's page, 0 if it has no letter or digit, a fault, or is a placeholder.
    pages: npt.NDArray[np.uint64]
    # str (n,): where the core failed at each text, which counts as empty then; "" if it did not.
    faults: npt.NDArray[np.object_]

    @classmethod
    def of(
        cls,
        parsed: ParsedTexts,
        left_out: npt.NDArray[np.bool_],
        *,
        signatures: npt.NDArray[Any],
        exists: npt.NDArray[np.bool_],
        alphanumerics: npt.NDArray[np.int64],
        faults: Sequence[str],
    ) -> "Fingerprints":
        """Return the fingerprints of parsed texts without some of their passages, bool ``(passages,)``.

        Fields are as above, but for `faults`, which are a list.
        """
        column, pages = np.array(faults, object), parsed.pages
        if any(faults):
            # A forest would remember that the page has no fingerprint.
            pages = np.where(column == "", pages, np.uint64(0))
        return cls(
            signatures=signatures,
            exists=exists,
            alphanumerics=alphanumerics,
            boilerplate_letters=parsed.letters_left_out(left_out),
            are_cut=parsed.are_cut,
            pages=pages,
            faults=column,
        )

    @classmethod
    def joined(cls, parts: Sequence["Fingerprints"]) -> "Fingerprints":
        """Return the fingerprints of several batches, of one at least, as those of one."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(**dict(zip(vars(parts[0]), map(np.concatenate, columns), strict=True)))

    def without(self, places: Sequence[int]) -> "Fingerprints":
        """Return these, but none of the texts at some places, and nothing to remember these by."""
        if not places:
            return self
        kept = np.ones(len(self.exists), bool)
        kept[places] = False
        return dataclasses.replace(
            self,
            signatures=np.where(kept, self.signatures, np.zeros(1, self.signatures.dtype)),
            exists=self.exists & kept,
            pages=np.where(kept, self.pages, np.uint64(0)),
        )

    def checked(self) -> "Fingerprints":
        """Return the fingerprints, or raise `TextFailed` for the first text that failed."""
        for position in np.flatnonzero(self.faults != "").tolist():
            raise TextFailed(f"text {position + 1}", self.faults[position])
        return self


def are_indexed(signatures: Signatures) -> npt.NDArray[np.bool_]:
    """Return which representatives each node is indexed under: bool ``(n, REPRESENTATIVES)``."""
    indexed: npt.NDArray[np.bool_] = (signatures["indexed"][:, None] & PLACES) != 0
    return indexed


def are_minhashes(representatives: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which representatives are minhashes: bool of the same shape."""
    minhashes: npt.NDArray[np.bool_] = (representatives & MINHASH) != 0
    return minhashes

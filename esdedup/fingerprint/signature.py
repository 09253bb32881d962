"""The signature of a text under the profile `verified`: all fields that are compared and stored.

`core/src/signature.rs` computes and documents signatures; `core/src/forest/agreement.rs` compares them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.errors import TextFailed

BINS = 256
WORDS = BINS * 2 // 64
"""The number of 64-bit words of a sketch: sketches are uint64 ``(n, WORDS)``."""
REPRESENTATIVES = 9
SIGNATURE = np.dtype(
    [
        # The simhashes of one or two sentences, which are even, then minhashes of the wording, which are odd.
        # A text with too few words repeats the first simhash.
        ("representatives", "<u8", (REPRESENTATIVES,)),
        ("sketch", "<u8", (WORDS,)),
        # One bit for each of 64 groups of figures: 1 if an odd number of the text's figures are in the group.
        ("figure_sketch", "<u8"),
        # The corresponding bits for pairs of consecutive figures.
        ("pair_sketch", "<u8"),
        # A sketch of the words, in particular of the repeated words: see `core/src/names.rs`.
        ("name_sketch", "<u8"),
        # The length, in which a word or number has 2 units and an East Asian character 1; the number of runs
        # of tokens; and the number of figures, including repeated ones. Values from 32,768 are rounded down
        # to a multiple of 32 (`Count` in the crate).
        ("units", "<u2"),
        ("runs", "<u2"),
        ("figures", "<u2"),
        # For a node: which representatives the node is indexed under; the lowest bit is for the first.
        ("indexed", "<u2"),
        # For a node: bits of the article's link and id (`esdedup.sites.Provenance`); for a root, the lowest
        # bits are the retention period in which it was created.
        ("origin", "<u8"),
    ]
)
"""176 bytes, little-endian."""

MINHASH = np.uint64(1)
"""The lowest bit of a representative: 1 in a minhash, 0 in the simhash of a sentence."""

PLACES = np.array([1 << place for place in range(REPRESENTATIVES)], np.uint16)
"""The bit of each representative in `indexed`."""

Signatures = npt.NDArray[Any]


class Fingerprints(NamedTuple):
    """The fingerprints of a batch of texts."""

    # (n,), in the profile's dtype: uint64 simhashes, or `SIGNATURE`; zeros for a text without a fingerprint.
    signatures: npt.NDArray[Any]
    # bool (n,): False for a text that is too short or has no words.
    exists: npt.NDArray[np.bool_]
    # int64 (n,): the letters and digits in the fingerprinted part of each text.
    alphanumerics: npt.NDArray[np.int64]
    # int64 (n,): the letters and digits that were omitted as boilerplate.
    boilerplate_letters: npt.NDArray[np.int64]
    # bool (n,): True for a text longer than the profile's `max_text_length`, of which only the beginning is
    # fingerprinted.
    are_cut: npt.NDArray[np.bool_]
    # uint64 (n,): the content hash of each text; 0 if it has no letters or digits, has a fault, or is a
    # placeholder.
    content_hashes: npt.NDArray[np.uint64]
    # str (n,): the place where the crate failed on a text, which is then treated as empty; "" if none.
    faults: npt.NDArray[np.object_]

    def without(self, places: Sequence[int]) -> "Fingerprints":
        """Return a copy without the fingerprints and content hashes of the texts at these positions."""
        if not places:
            return self
        kept = np.ones(len(self.exists), bool)
        kept[places] = False
        return self._replace(
            signatures=np.where(kept, self.signatures, np.zeros(1, self.signatures.dtype)),
            exists=self.exists & kept,
            content_hashes=np.where(kept, self.content_hashes, np.uint64(0)),
        )

    def checked(self) -> "Fingerprints":
        """Return the fingerprints, or raise `TextFailed` for the first text that failed."""
        for position in np.flatnonzero(self.faults != "").tolist():
            raise TextFailed(f"text {position + 1}", self.faults[position])
        return self

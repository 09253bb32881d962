"""The signature of a text under the profile `verified`: what is compared of it, and stored."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.sketch import WORDS

REPRESENTATIVES = 4
SIGNATURE = np.dtype(
    [
        # Simhashes of the sentences that represent the text, then minhashes of its wording; where it has too
        # few words, the first sentence again.
        ("representatives", "<u8", (REPRESENTATIVES,)),
        ("sketch", "<u8", (WORDS,)),
        ("letters", "<u4"),
        # How many runs of tokens the sketch is of, with their weights; no more than fit.
        ("runs", "<u2"),
        # Of a node: a bit, the lowest for the first, for each representative that it is indexed under.
        ("indexed", "u1"),
        ("unused", "u1"),
    ]
)
"""What `verified` keeps of a text, 104 bytes."""

PLACES = np.array([1 << place for place in range(REPRESENTATIVES)], np.uint8)
"""The bit of each place in `indexed`."""

Signatures = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fingerprints:
    """The fingerprints of a batch of texts."""

    # (n,), in the profile's dtype: uint64 simhashes, or what `verified` keeps; zeros where there is none.
    signatures: npt.NDArray[Any]
    # bool (n,): False where the text is empty, or too short, or has no words.
    exists: npt.NDArray[np.bool_]


def are_indexed(signatures: Signatures) -> npt.NDArray[np.bool_]:
    """Tell under which representatives each node is indexed: bool ``(n, s)``."""
    indexed: npt.NDArray[np.bool_] = (signatures["indexed"][:, None] & PLACES) != 0
    return indexed


def are_first(simhashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Tell which of each row's values are the first of their kind in it: bool ``(n, s)``."""
    first = np.ones(simhashes.shape, bool)
    for place in range(1, simhashes.shape[1]):
        first[:, place] = (simhashes[:, :place] != simhashes[:, place, None]).all(axis=1)
    return first

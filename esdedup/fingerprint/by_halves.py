"""Signatures of `verified`: the longest sentence of each half, minhashes, and a sketch of the whole text.

They are computed in `core/src/signature.rs`.
"""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import SIGNATURE, Fingerprints
from esdedup.text.parsed import ParsedTexts

Bools = npt.NDArray[np.bool_]


class ByHalves:
    """Computes the signatures of profiles with an agreement. Keeps no state."""

    needs_text = False

    def __init__(self, profile: Profile, agreement: Agreement) -> None:
        """Use the settings of `profile`; `agreement` is the profile's, known not to be None."""
        self._min_letters = profile.min_letters
        self._max_sentence_length = profile.max_sentence_length
        self._number_weight = agreement.number_weight

    def fingerprints(self, parsed: ParsedTexts, omitted: Bools) -> Fingerprints:
        """Return the fingerprints of texts without some of their passages, bool ``(passages,)``."""
        signatures, exists, letters, faults = parsed.core.signatures(
            omitted.tobytes(), self._min_letters, self._max_sentence_length, self._number_weight
        )
        return Fingerprints.of(
            parsed,
            signatures=np.frombuffer(signatures, SIGNATURE),
            exists=np.frombuffer(exists, bool),
            letters=np.frombuffer(letters, np.int64),
            faults=faults,
        )

    def features(self, parsed: ParsedTexts, omitted: Bools) -> list[Feature]:  # noqa: ARG002
        """Return no words: sentences are hashed by runs of tokens, all of equal weight."""
        return []

    def passages(self, parsed: ParsedTexts, omitted: Bools) -> list[str]:
        """Return the longest sentence of each half of one text, up to where hashing stops."""
        (passages,) = parsed.core.longest_of_halves(omitted.tobytes(), self._max_sentence_length)
        return [each.strip() for each in passages]

"""From texts to their signatures under a profile, a batch at a time."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.by_halves import ByHalves
from esdedup.fingerprint.by_words import ByWords, Feature
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints

# More texts at once would not fit the processor's cache.
_TEXTS_AT_ONCE = 48


class _Method(Protocol):
    """Computes signatures for one representation of texts."""

    def signatures(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the positions of texts that have a signature, ascending, and the signatures: ``(n,)``."""

    def features(self, text: str) -> list[Feature]:
        """Return the weighted words that decide the simhash of a raw text."""

    def passages(self, text: str) -> list[str]:
        """Return the passages that represent a raw text."""


class Fingerprinter:
    """Computes fingerprints of one profile. Not thread-safe."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._method: _Method = (
            ByWords(profile) if profile.agreement is None else ByHalves(profile, profile.agreement)
        )

    def fingerprint(self, texts: Sequence[str]) -> Fingerprints:
        """Return the fingerprints of raw `texts`, in their order.

        Batching only saves time: each fingerprint depends on its own text alone.
        """
        exists = np.zeros(len(texts), bool)
        signatures = np.zeros(len(texts), self.profile.signature_dtype)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            present, found = self._method.signatures(texts[first : first + _TEXTS_AT_ONCE])
            exists[first + present] = True
            signatures[first + present] = found
        return Fingerprints(signatures=signatures, exists=exists)

    def features(self, text: str) -> list[Feature]:
        """Return the weighted words that decide the simhash of a raw text, the heaviest first.

        Empty if the text has no fingerprint, and for `verified`, which weighs no words.
        """
        return self._method.features(text)

    def passages(self, text: str) -> list[str]:
        """Return the normalised passages that represent a raw text, each up to where hashing stops.

        Empty if the text has no letters or digits, unless the profile takes its keywords from the
        whole text.
        """
        return self._method.passages(text)

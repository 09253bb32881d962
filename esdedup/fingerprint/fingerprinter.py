"""From texts to their signatures under a profile, a batch at a time."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.by_halves import ByHalves
from esdedup.fingerprint.by_words import ByWords, Feature
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.text.characters import normal_length
from esdedup.text.parsed import ParsedTexts
from esdedup.text.passages import Omit, Passages

# More would not fit the processor's cache; the number of characters also bounds the memory for long texts.
_TEXTS_AT_ONCE = 512
_CHARACTERS_AT_ONCE = 100_000


class _Method(Protocol):
    """Computes signatures for one representation of texts."""

    def fingerprints(self, texts: Sequence[str], *, omit: Omit | None) -> Fingerprints:
        """Return the fingerprints of raw texts without the passages that `omit` leaves out."""

    def features(self, text: str, *, omit: Omit | None) -> list[Feature]:
        """Return the weighted words that decide the simhash of a raw text."""

    def passages(self, text: str, *, omit: Omit | None) -> list[str]:
        """Return the passages that represent a raw text."""


class Fingerprinter:
    """Computes fingerprints of one profile. Not thread-safe."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._method: _Method = (
            ByWords(profile) if profile.agreement is None else ByHalves(profile, profile.agreement)
        )

    def fingerprint(self, texts: Sequence[str], *, omit: Omit | None = None) -> Fingerprints:
        """Return the fingerprints of raw `texts`, in their order.

        Batching only saves time: each fingerprint depends on its own text alone, and on what `omit` leaves
        out of it. The time and the memory that a text takes are proportional to its length, whatever is in
        it.

        Args:
            texts: With or without markup.
            omit: Called for a few texts at a time, in their order. None: nothing is left out. Not called
                if the profile keeps boilerplate.
        """
        omit = self._allowed(omit)
        return Fingerprints.joined(
            [self._method.fingerprints(some, omit=omit) for some in slices(texts)],
            self.profile.signature_dtype,
        )

    def passages_and_pages(self, texts: Sequence[str]) -> Iterator[tuple[Passages, npt.NDArray[np.uint64]]]:
        """Yield what `fingerprint` calls `omit` with, a few raw texts at a time."""
        for some in slices(texts):
            parsed = ParsedTexts.of(some, max_length=self.profile.max_text_length)
            yield parsed.passages, parsed.pages

    def features(self, text: str, *, omit: Omit | None = None) -> list[Feature]:
        """Return the weighted words that decide the simhash of a raw text, the heaviest first.

        Empty if the text has no fingerprint, and for `verified`, which weighs no words.
        """
        return self._method.features(text, omit=self._allowed(omit))

    def passages(self, text: str, *, omit: Omit | None = None) -> list[str]:
        """Return the normalised passages that represent a raw text, each up to where hashing stops.

        Empty if the text has no letters or digits, unless the profile takes its keywords from the
        whole text.
        """
        return self._method.passages(text, omit=self._allowed(omit))

    def _allowed(self, omit: Omit | None) -> Omit | None:
        return None if self.profile.keep_boilerplate else omit


def slices(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut a batch into slices of a limited number of texts and characters; each has at least one text."""
    for some in _cut(texts, [len(text) for text in texts]):
        # The normal form may have 18 times as many characters.
        if normal_length("".join(some)) <= _CHARACTERS_AT_ONCE:
            yield some
        else:
            # A text that is longer is a slice of its own anyway.
            yield from _cut(some, [normal_length(text[:_CHARACTERS_AT_ONCE]) for text in some])


def _cut(texts: Sequence[str], lengths: Sequence[int]) -> Iterator[Sequence[str]]:
    start = characters = 0
    for at, length in enumerate(lengths):
        characters += length
        if at > start and (at - start >= _TEXTS_AT_ONCE or characters > _CHARACTERS_AT_ONCE):
            yield texts[start:at]
            start, characters = at, length
    if len(texts) > start:
        yield texts[start:]

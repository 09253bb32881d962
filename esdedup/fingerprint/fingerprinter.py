"""From texts to their signatures under a profile, a batch at a time."""

from collections.abc import Iterable, Iterator, Sequence
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


Bools = npt.NDArray[np.bool_]


class _Method(Protocol):
    """Computes signatures for one representation of texts."""

    def fingerprints(self, parsed: ParsedTexts, omitted: Bools) -> Fingerprints:
        """Return the fingerprints of texts without some of their passages, bool ``(passages,)``."""

    def features(self, parsed: ParsedTexts, omitted: Bools) -> list[Feature]:
        """Return the weighted words that decide the simhash of one text."""

    def passages(self, parsed: ParsedTexts, omitted: Bools) -> list[str]:
        """Return the passages that represent one text."""


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
        return self._joined(
            self._method.fingerprints(parsed, parsed.omitted(omit)) for parsed in self.parsed(texts)
        )

    def parsed(self, texts: Sequence[str]) -> Iterator[ParsedTexts]:
        """Yield raw texts as `fingerprint` parses them, a few at a time, in their order.

        Some 10 to 30 bytes for each of their characters.
        """
        for some in slices(texts):
            yield ParsedTexts.of(some, max_length=self.profile.max_text_length)

    def fingerprints_of(self, parsed: Sequence[ParsedTexts], omitted: Bools) -> Fingerprints:
        """Return the fingerprints of parsed texts, for whom it takes long to find out what is left out.

        Args:
            parsed: As `parsed` yields them.
            omitted: Which of all their passages to leave out, bool ``(passages,)``.
        """
        ends = np.cumsum([len(each.sentences.starts) for each in parsed])
        return self._joined(
            self._method.fingerprints(each, omitted[end - len(each.sentences.starts) : end])
            for each, end in zip(parsed, ends.tolist(), strict=True)
        )

    def passages_and_pages(self, texts: Sequence[str]) -> Iterator[tuple[Passages, npt.NDArray[np.uint64]]]:
        """Yield what `fingerprint` calls `omit` with, a few raw texts at a time."""
        for parsed in self.parsed(texts):
            yield parsed.passages, parsed.pages

    def features(self, text: str, *, omit: Omit | None = None) -> list[Feature]:
        """Return the weighted words that decide the simhash of a raw text, the heaviest first.

        Empty if the text has no fingerprint, and for `verified`, which weighs no words.
        """
        return self._method.features(*self._one(text, omit))

    def passages(self, text: str, *, omit: Omit | None = None) -> list[str]:
        """Return the normalised passages that represent a raw text, each up to where hashing stops.

        Empty if the text has no letters or digits, unless the profile takes its keywords from the
        whole text.
        """
        return self._method.passages(*self._one(text, omit))

    def _one(self, text: str, omit: Omit | None) -> tuple[ParsedTexts, Bools]:
        """Return a text, and which of its passages to leave out."""
        (parsed,) = self.parsed([text])
        return parsed, parsed.omitted(self._allowed(omit))

    def _joined(self, parts: Iterable[Fingerprints]) -> Fingerprints:
        return Fingerprints.joined(list(parts), self.profile.signature_dtype)

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

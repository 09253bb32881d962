"""Computes the signatures of texts under a profile, a batch at a time."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup._core import PassageFilter
from esdedup.fingerprint.by_words import ByWords, Feature
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import SIGNATURE, Fingerprints
from esdedup.text import parsed as parsing
from esdedup.text.parsed import ParsedTexts

# The maximum numbers of texts and characters that a thread holds at a time; a character takes up to 30 bytes.
# Larger values are not faster.
_TEXTS_AT_ONCE = 512
_CHARACTERS_AT_ONCE = 400_000

# The columns of fingerprints from the crate.
_DTYPES = (SIGNATURE, np.dtype(bool), *[np.dtype(np.int64)] * 2, np.dtype(bool), np.dtype(np.uint64))

Bools = npt.NDArray[np.bool_]


class ByHalves:
    """Computes the signatures of profiles with an agreement."""

    def __init__(self, profile: Profile) -> None:
        self._max_sentence_length = profile.max_sentence_length
        self._rules = (profile.max_text_length, profile.min_letters, profile.max_sentence_length)

    def fingerprints(
        self, texts: Sequence[str], passage_filter: PassageFilter | None, *, threads: int
    ) -> Fingerprints:
        """Return the fingerprints of raw texts, in order, without the passages that a filter omits."""
        columns, faults = _core.fingerprint(
            texts, self._rules, passage_filter, parsing.CHARACTER_HASH, threads
        )
        return Fingerprints._make([*map(np.frombuffer, columns, _DTYPES), np.array(faults, object)])

    def features(self, parsed: ParsedTexts, left_out: Bools) -> list[Feature]:  # noqa: ARG002
        """Return an empty list, since sentences are hashed by runs of tokens with equal weights."""
        return []

    def passages(self, parsed: ParsedTexts, left_out: Bools) -> list[str]:
        """Return the longest sentence of each half of one text, up to where hashing stops."""
        (passages,) = parsed.core.longest_of_halves(left_out.tobytes(), self._max_sentence_length)
        return [each.strip() for each in passages]


class Fingerprinter:
    """Computes fingerprints under one profile. Not thread-safe."""

    def __init__(self, profile: Profile, *, threads: int = 1) -> None:
        """Divide the texts of a batch between `threads`, which does not affect the results.

        Only one thread segments the words of `classic` and `keywords`.
        """
        self.profile = profile
        self._threads = threads
        self._method: ByWords | ByHalves = (
            ByWords(profile) if profile.agreement is None else ByHalves(profile)
        )

    def fingerprint(
        self, texts: Sequence[str], *, passage_filter: PassageFilter | None = None
    ) -> Fingerprints:
        """Return the fingerprints of raw `texts`, in order.

        Batching only saves time: each fingerprint depends only on its text and its omitted passages. Time and
        memory are proportional to the length of a text, whatever its content. A text that makes the crate
        fail is treated as empty, and has an entry in `Fingerprints.faults`.

        `passage_filter` is not used if the profile keeps boilerplate.
        """
        allowed, threads = self._allowed(passage_filter), self._threads
        parts = [
            self._method.fingerprints(some, allowed, threads=threads)
            for some in slices(texts, threads=threads)
        ]
        return parts[0] if len(parts) == 1 else Fingerprints(*map(np.concatenate, zip(*parts, strict=True)))

    def parsed(self, texts: Sequence[str]) -> Iterator[ParsedTexts]:
        """Parse raw texts as `fingerprint` does, and yield a few at a time, in order.

        Parsed texts use 10 to 30 bytes per character.
        """
        for some in slices(texts, threads=self._threads):
            yield self._parsed(some, keep_text=False)

    def features(self, text: str, *, passage_filter: PassageFilter | None = None) -> list[Feature]:
        """Return the weighted words that determine the simhash of a raw text, heaviest first.

        The list is empty if the text has no fingerprint, and for `verified`, which does not weigh words.
        """
        return self._method.features(*self._one(text, passage_filter))

    def passages(self, text: str, *, passage_filter: PassageFilter | None = None) -> list[str]:
        """Return the normalised passages that represent a raw text, each up to where hashing stops.

        The list is empty if the text has no letters or digits, unless the profile hashes keywords.
        """
        return self._method.passages(*self._one(text, passage_filter))

    def _one(self, text: str, passage_filter: PassageFilter | None) -> tuple[ParsedTexts, Bools]:
        parsed = self._parsed([text], keep_text=True)
        return parsed, parsed.left_out(self._allowed(passage_filter))

    def _parsed(self, texts: Sequence[str], *, keep_text: bool) -> ParsedTexts:
        return ParsedTexts.of(
            texts, max_length=self.profile.max_text_length, keep_text=keep_text, threads=self._threads
        )

    def _allowed(self, passage_filter: PassageFilter | None) -> PassageFilter | None:
        return None if self.profile.keep_boilerplate else passage_filter


def slices(texts: Sequence[str], *, threads: int = 1) -> Iterator[Sequence[str]]:
    """Divide a batch into slices of limited size; an empty batch gives one empty slice."""
    start = characters = 0
    for at, text in enumerate(texts):
        characters += len(text)
        if at > start and (
            at - start >= _TEXTS_AT_ONCE * threads or characters > _CHARACTERS_AT_ONCE * threads
        ):
            yield texts[start:at]
            start, characters = at, len(text)
    yield texts[start:]

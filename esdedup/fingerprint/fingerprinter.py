"""Computes the signatures of texts under a profile, a batch at a time."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.by_words import ByWords, Feature
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import SIGNATURE, Fingerprints
from esdedup.text.parsed import ParsedTexts, PassageFilter

# Held at once for each thread; a character takes up to some 30 bytes. Larger values are no faster.
_TEXTS_AT_ONCE = 512
_CHARACTERS_AT_ONCE = 400_000


Bools = npt.NDArray[np.bool_]


class ByHalves:
    """Computes the signatures of profiles with an agreement. Keeps no state."""

    needs_text = False

    def __init__(self, profile: Profile) -> None:
        self._min_letters = profile.min_letters
        self._max_sentence_length = profile.max_sentence_length

    def fingerprints(self, parsed: ParsedTexts, left_out: Bools) -> Fingerprints:
        """Return the fingerprints of texts without some of their passages, bool ``(passages,)``."""
        signatures, exists, alphanumerics, faults = parsed.core.signatures(
            left_out.tobytes(), self._min_letters, self._max_sentence_length
        )
        return Fingerprints.of(
            parsed,
            left_out,
            signatures=np.frombuffer(signatures, SIGNATURE),
            exists=np.frombuffer(exists, bool),
            alphanumerics=np.frombuffer(alphanumerics, np.int64),
            faults=faults,
        )

    def features(self, parsed: ParsedTexts, left_out: Bools) -> list[Feature]:  # noqa: ARG002
        """Return no words: sentences are hashed by runs of tokens, all of equal weight."""
        return []

    def passages(self, parsed: ParsedTexts, left_out: Bools) -> list[str]:
        """Return the longest sentence of each half of one text, up to where hashing stops."""
        (passages,) = parsed.core.longest_of_halves(left_out.tobytes(), self._max_sentence_length)
        return [each.strip() for each in passages]


class Fingerprinter:
    """Computes fingerprints of one profile. Not thread-safe."""

    def __init__(self, profile: Profile, *, threads: int = 1) -> None:
        """Compute with a profile; `threads` share the texts of a batch, with the same results.

        Words of `classic` and `keywords` are cut in one of them.
        """
        self.profile = profile
        self._threads = threads
        self._method: ByWords | ByHalves = (
            ByWords(profile) if profile.agreement is None else ByHalves(profile)
        )

    def fingerprint(
        self, texts: Sequence[str], *, passage_filter: PassageFilter | None = None
    ) -> Fingerprints:
        """Return the fingerprints of raw `texts`, in their order.

        Batching only saves time: each fingerprint depends on its own text alone, and on what is left out of
        it. The time and the memory that a text takes are proportional to its length, whatever is in it. One
        at which the core fails counts as empty; `Fingerprints.faults` says so.

        `passage_filter` is called for a few texts at a time, in their order; not if the profile keeps
        boilerplate.
        """
        passage_filter = self._allowed(passage_filter)
        return Fingerprints.joined(
            [
                self._method.fingerprints(parsed, parsed.left_out(passage_filter))
                for parsed in self.parsed(texts)
            ]
        )

    def parsed(self, texts: Sequence[str]) -> Iterator[ParsedTexts]:
        """Yield raw texts as `fingerprint` parses them, a few at a time, in their order.

        Some 10 to 30 bytes for each of their characters.
        """
        for some in slices(texts, threads=self._threads):
            yield self._parsed(some, keep_text=self._method.needs_text)

    def features(self, text: str, *, passage_filter: PassageFilter | None = None) -> list[Feature]:
        """Return the weighted words that decide the simhash of a raw text, the heaviest first.

        Empty if the text has no fingerprint, and for `verified`, which weighs no words.
        """
        return self._method.features(*self._one(text, passage_filter))

    def passages(self, text: str, *, passage_filter: PassageFilter | None = None) -> list[str]:
        """Return the normalised passages that represent a raw text, each up to where hashing stops.

        Empty if the text has no letters or digits, unless the profile takes its keywords from the
        whole text.
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
    """Cut a batch into slices with some texts and characters for each thread; only a lone one is empty."""
    start = characters = 0
    for at, text in enumerate(texts):
        characters += len(text)
        if at > start and (
            at - start >= _TEXTS_AT_ONCE * threads or characters > _CHARACTERS_AT_ONCE * threads
        ):
            yield texts[start:at]
            start, characters = at, len(text)
    yield texts[start:]

"""Signatures of `verified`: the longest sentence of each half, minhashes, and a sketch of the whole text."""

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.by_words import Feature
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import MINHASH, REPRESENTATIVES, SIGNATURE, Fingerprints
from esdedup.fingerprint.simhash import majority
from esdedup.fingerprint.sketch import sketch
from esdedup.text.parsed import ParsedTexts
from esdedup.text.tokens import LONGEST_RUN_UNITS

# Two Chinese characters, or one word: short runs survive small edits best.
_SENTENCE_RUN_UNITS = 2
_MAX_RUNS = np.iinfo(SIGNATURE["runs"]).max

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Simhashes = npt.NDArray[np.uint64]


class ByHalves:
    """Computes the signatures of profiles with an agreement."""

    def __init__(self, profile: Profile, agreement: Agreement) -> None:
        """Use the settings of `profile`; `agreement` is the profile's, known not to be None."""
        self._min_letters = profile.min_letters
        self._max_sentence_length = profile.max_sentence_length
        self._number_weight = agreement.number_weight

    def fingerprints(self, parsed: ParsedTexts, omitted: Bools) -> Fingerprints:
        """Return the fingerprints of texts without some of their passages, bool ``(passages,)``."""
        rest = parsed.without(omitted)
        letters = rest.sentences.letters_of_texts
        exists = letters >= self._min_letters
        signatures = np.zeros(len(parsed.pages), SIGNATURE)
        present = np.flatnonzero(exists)
        if len(present):
            runs = rest.tokens.runs_of_texts(units=LONGEST_RUN_UNITS)
            sketched = sketch(runs, number_weight=self._number_weight)
            minhashes = sketched.minhashes[present]
            own = np.zeros(len(present), SIGNATURE)
            own["letters"] = letters[present]
            own["sketch"] = sketched.sketches[present]
            own["runs"] = np.minimum(sketched.runs[present], _MAX_RUNS)
            own["representatives"] = self._representatives(rest, present, minhashes)
            signatures[present] = own
        return Fingerprints(
            signatures=signatures,
            exists=exists,
            letters=letters,
            are_cut=parsed.are_cut,
            pages=parsed.pages,
        )

    def features(self, parsed: ParsedTexts, omitted: Bools) -> list[Feature]:  # noqa: ARG002
        """Return no words: sentences are hashed by runs of tokens, all of equal weight."""
        return []

    def passages(self, parsed: ParsedTexts, omitted: Bools) -> list[str]:
        """Return the longest sentence of each half of a text, up to where hashing stops."""
        rest = parsed.without(omitted)
        sentences, chosen = rest.sentences, rest.sentences.longest_of_halves()
        _, stops = self._hashed_tokens(rest, chosen)
        lengths = rest.tokens.starts[stops] - sentences.starts[chosen]
        return [
            sentences.string(each, max_length=length).strip()
            for each, length in zip(chosen.tolist(), lengths.tolist(), strict=True)
        ]

    def _representatives(self, texts: ParsedTexts, present: Ints, minhashes: Simhashes) -> Simhashes:
        """Choose the representatives of the texts at these positions.

        Args:
            texts: The batch.
            present: Positions of texts with a sentence, ``(n,)``, ascending.
            minhashes: Of those texts, ``(n, MINHASHES)``, 0 for none.

        Returns:
            uint64 ``(n, REPRESENTATIVES)``: the simhashes of one or two sentences, then minhashes, and the
            first sentence's simhash again in place of those that the text lacks.
        """
        chosen = texts.sentences.longest_of_halves()
        simhashes = self._sentence_simhashes(texts, chosen)
        owners = texts.sentences.texts[chosen]
        first, stops = (owners.searchsorted(present, side) for side in ("left", "right"))
        counts = (stops - first)[:, None]
        places = np.arange(REPRESENTATIVES)
        is_sentence = places < counts
        sentence = simhashes[first[:, None] + np.where(is_sentence, places, 0)]
        minhash = np.take_along_axis(minhashes, np.maximum(places - counts, 0), axis=1)
        return np.where(is_sentence | (minhash == 0), sentence & ~MINHASH, minhash | MINHASH)

    def _sentence_simhashes(self, texts: ParsedTexts, chosen: Ints) -> Simhashes:
        """Return the simhash of each chosen sentence, from its short runs of tokens: uint64 ``(m,)``."""
        starts, stops = self._hashed_tokens(texts, chosen)
        runs = texts.tokens.runs(units=_SENTENCE_RUN_UNITS, starts=starts, stops=stops)
        return majority(runs.hashes, runs.counts)

    def _hashed_tokens(self, texts: ParsedTexts, chosen: Ints) -> tuple[Ints, Ints]:
        """Return the first hashed token of each chosen sentence and the one after its last: ``(m,)`` each.

        There is always one after the last, since the end of a text is a token too.
        """
        sentences = texts.sentences
        starts, stops = texts.tokens.of_spans(sentences.starts[chosen], sentences.ends[chosen])
        return starts, np.minimum(stops, starts + self._max_sentence_length)

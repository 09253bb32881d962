"""From texts to what is compared of them, a batch at a time."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import REPRESENTATIVES, SIGNATURE, Fingerprints
from esdedup.fingerprint.simhash import components, majority, pack64
from esdedup.fingerprint.sketch import sketch
from esdedup.fingerprint.vocabulary import Vocabulary
from esdedup.text.characters import classes
from esdedup.text.normalise import normal_points, normalise, strings
from esdedup.text.sentences import Sentences
from esdedup.text.tokens import LONGEST_RUN_UNITS, Tokens
from esdedup.text.words import WEIGHT_SCALE, cut

# More texts at once fall out of the processor's cache.
_TEXTS_AT_ONCE = 48
# Two characters of Chinese, or one word: it survives small edits best.
_SENTENCE_RUN_UNITS = 2
_MOST_RUNS = np.iinfo(SIGNATURE["runs"]).max


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """A word of a text and what it adds to the fingerprint."""

    word: str
    count: int
    # For all its occurrences together.
    weight: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Words:
    """The words of a batch of texts, one after the other."""

    # int64 (t,): rows of the vocabulary.
    rows: npt.NDArray[np.int64]
    # int64 (t,): the weight of all occurrences that this word stands for.
    weights: npt.NDArray[np.int64]
    # int64 (t,): how many they are.
    counts: npt.NDArray[np.int64]
    # int64 (t,), never falling: which text.
    texts: npt.NDArray[np.int64]


class Fingerprinter:
    """Computes fingerprints of one profile. Not safe for use by several threads at once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._vocabulary = Vocabulary(profile.weighting)

    def fingerprint(self, texts: Sequence[str]) -> Fingerprints:
        """Return the fingerprints of raw `texts`, in their order.

        The batch is for speed only: each text's fingerprint depends on that text alone.
        """
        exists = np.zeros(len(texts), bool)
        signatures = np.zeros(len(texts), self.profile.signature_dtype)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = texts[first : first + _TEXTS_AT_ONCE]
            if self.profile.agreement is None:
                present, found = self._simhashes(batch)
            else:
                present, found = self._sketched(batch, self.profile.agreement)
            exists[first + present] = True
            signatures[first + present] = found
        return Fingerprints(signatures=signatures, exists=exists)

    def features(self, text: str) -> list[Feature]:
        """Return what decides the simhash of a raw text, heaviest first; empty where it has none.

        For `verified`, whose sentences have no words, it is empty too.
        """
        if self.profile.agreement is not None:
            return []
        words = self._words([text])
        counts: dict[str, int] = {}
        weights: dict[str, int] = {}
        for row, count, weight in zip(
            words.rows.tolist(), words.counts.tolist(), words.weights.tolist(), strict=True
        ):
            word = self._vocabulary.word(row)
            counts[word] = counts.get(word, 0) + count
            weights[word] = weights.get(word, 0) + weight
        features = [
            Feature(word=word, count=counts[word], weight=weight / WEIGHT_SCALE)
            for word, weight in weights.items()
        ]
        return sorted(features, key=lambda feature: (-feature.weight, feature.word))

    def passages(self, text: str) -> list[str]:
        """Return the parts of a raw text, normalised, that represent it; none of a text without letters.

        Each is as much of its sentence as is hashed.
        """
        if self.profile.representation == "keywords":
            return normalise([text])
        sentences = _sentences([text])
        if self.profile.agreement is None:
            chosen = sentences.longest()
            lengths = np.full(len(chosen), self.profile.max_sentence_length)
        else:
            chosen = sentences.longest_of_halves()
            tokens = Tokens.of(sentences.points, classes()[sentences.points])
            _, stops = self._hashed_tokens(sentences, chosen, tokens)
            lengths = tokens.starts[stops] - sentences.starts[chosen]
        return [
            sentences.string(each, max_length=length).strip()
            for each, length in zip(chosen.tolist(), lengths.tolist(), strict=True)
        ]

    def _sketched(
        self, texts: Sequence[str], agreement: Agreement
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        points = normal_points(texts)
        kinds = classes()[points]
        sentences = Sentences.of(points, kinds)
        letters = sentences.letters_of_texts
        present = np.flatnonzero(letters >= self.profile.min_letters)
        signatures = np.zeros(len(present), SIGNATURE)
        if not len(present):
            return present, signatures
        tokens = Tokens.of(points, kinds)
        runs = tokens.runs(
            units=LONGEST_RUN_UNITS, starts=tokens.starts_of_texts[present], stops=tokens.ends[present]
        )
        signatures["letters"] = letters[present]
        sketched = sketch(runs, tokens.have_number(runs), number_weight=agreement.number_weight)
        signatures["sketch"] = sketched.sketches
        signatures["runs"] = np.minimum(sketched.runs, _MOST_RUNS)
        chosen = sentences.longest_of_halves()
        hashes = self._sentence_hashes(sentences, chosen, tokens)
        texts_of_chosen = sentences.texts[chosen]
        first = texts_of_chosen.searchsorted(present)[:, None]
        counts = texts_of_chosen.searchsorted(present, side="right")[:, None] - first
        places = np.arange(REPRESENTATIVES)
        sentence = hashes[first + np.where(places < counts, places, 0)]
        minhash = np.take_along_axis(sketched.minhashes, np.maximum(places - counts, 0), axis=1)
        # The first sentence stands again where there are no minhashes either.
        signatures["representatives"] = np.where((places >= counts) & (minhash != 0), minhash, sentence)
        return present, signatures

    def _sentence_hashes(
        self, sentences: Sentences, chosen: npt.NDArray[np.int64], tokens: Tokens
    ) -> npt.NDArray[np.uint64]:
        """Return the simhash of each chosen sentence, from its short runs: uint64 ``(m,)``."""
        first, stops = self._hashed_tokens(sentences, chosen, tokens)
        runs = tokens.runs(units=_SENTENCE_RUN_UNITS, starts=first, stops=stops)
        return majority(runs.hashes, runs.counts)

    def _hashed_tokens(
        self, sentences: Sentences, chosen: npt.NDArray[np.int64], tokens: Tokens
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first token of each chosen sentence, and the one after the last that is hashed.

        There is one after the last, since a token stands for the end of the text.
        """
        first, stops = tokens.starts.searchsorted((sentences.starts[chosen], sentences.ends[chosen]))
        return first, np.minimum(stops, first + self.profile.max_sentence_length)

    def _simhashes(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        words = self._words(texts)
        if not len(words.rows):
            return np.zeros(0, np.int64), np.zeros(0, np.uint64)
        starts = np.flatnonzero(np.diff(words.texts, prepend=-1))
        sums = components(self._vocabulary.bits[words.rows], words.weights, starts)
        return words.texts[starts], pack64(sums > 0)

    def _words(self, texts: Sequence[str]) -> _Words:
        sentences = _sentences(texts)
        if self.profile.representation == "keywords":
            passages = strings(sentences.points)
        else:
            passages = [""] * len(texts)
            for each in sentences.longest().tolist():
                passages[sentences.texts[each]] = sentences.string(
                    each, max_length=self.profile.max_sentence_length
                )
        long_enough = sentences.letters_of_texts >= self.profile.min_letters
        cuts = [
            cut(passage) if enough else []
            for passage, enough in zip(passages, long_enough.tolist(), strict=True)
        ]
        rows = self._vocabulary.rows(word for words in cuts for word in words)
        weights = self._vocabulary.weights[rows]
        owners = np.repeat(np.arange(len(cuts)), [len(words) for words in cuts])
        heavy = weights > 0
        rows, weights, owners = rows[heavy], weights[heavy], owners[heavy]
        if self.profile.representation == "keywords":
            return self._heaviest(rows, owners)
        return _Words(rows=rows, weights=weights, counts=np.ones(len(rows), np.int64), texts=owners)

    def _heaviest(self, rows: npt.NDArray[np.int64], owners: npt.NDArray[np.int64]) -> _Words:
        """Keep each text's heaviest words; among equals those whose hash is lower."""
        vocabulary = self._vocabulary
        pairs, counts = np.unique(np.stack((owners, rows)), axis=1, return_counts=True)
        texts, words = pairs
        weights = vocabulary.weights[words] * counts
        hashes = pack64(vocabulary.bits[words] != 0)
        order = np.lexsort((hashes, -weights, texts))
        sorted_texts = texts[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_texts, sorted_texts)
        kept = order[rank < self.profile.keyword_count]
        return _Words(rows=words[kept], weights=weights[kept], counts=counts[kept], texts=texts[kept])


def _sentences(texts: Sequence[str]) -> Sentences:
    points = normal_points(texts)
    return Sentences.of(points, classes()[points])

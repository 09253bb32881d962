"""From texts to fingerprints, a batch at a time."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.profile import Profile
from esdedup.simhash import components, pack64
from esdedup.text import count_letters, longest_sentences, normalise
from esdedup.words import WEIGHT_SCALE, Vocabulary, cut

# More texts at once fall out of the processor's cache.
_TEXTS_AT_ONCE = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fingerprints:
    """The fingerprints of a batch of texts."""

    # uint64 (n,); 0 where there is none.
    bits: npt.NDArray[np.uint64]
    # bool (n,): False where the text is empty, or too short, or has no words.
    exists: npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """A word of a text and what it adds to the fingerprint."""

    word: str
    count: int
    # For all its occurrences together.
    weight: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tokens:
    """The words of a batch of texts, one after the other."""

    # int64 (t,): rows of the vocabulary.
    rows: npt.NDArray[np.int64]
    # int64 (t,): the weight of all occurrences that this token stands for.
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
        bits = np.zeros(len(texts), np.uint64)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            tokens = self._tokens(texts[first : first + _TEXTS_AT_ONCE])
            if len(tokens.rows):
                starts = np.flatnonzero(np.diff(tokens.texts, prepend=-1))
                present = first + tokens.texts[starts]
                sums = components(self._vocabulary.bits[tokens.rows], tokens.weights, starts)
                bits[present] = pack64(sums > 0)
                exists[present] = True
        return Fingerprints(bits=bits, exists=exists)

    def features(self, text: str) -> list[Feature]:
        """Return what decides the fingerprint of a raw text, heaviest first; empty where it has none."""
        tokens = self._tokens([text])
        counts: dict[str, int] = {}
        weights: dict[str, int] = {}
        for row, weight, count in zip(
            tokens.rows.tolist(), tokens.weights.tolist(), tokens.counts.tolist(), strict=True
        ):
            word = self._vocabulary.word(row)
            counts[word] = counts.get(word, 0) + count
            weights[word] = weights.get(word, 0) + weight
        features = [
            Feature(word=word, count=counts[word], weight=weight / WEIGHT_SCALE)
            for word, weight in weights.items()
        ]
        return sorted(features, key=lambda feature: (-feature.weight, feature.word))

    def passage(self, text: str) -> str:
        """Return the part of a raw text, normalised, that the features are taken from."""
        normalised = normalise([text])
        if self.profile.source == "keywords":
            return normalised[0]
        return longest_sentences(normalised, max_length=self.profile.max_sentence_length)[0][0].strip()

    def _tokens(self, texts: Sequence[str]) -> _Tokens:
        normalised = normalise(texts)
        if self.profile.source == "keywords":
            passages, letters = normalised, count_letters(normalised)
        else:
            passages, letters = longest_sentences(normalised, max_length=self.profile.max_sentence_length)
        long_enough = letters >= self.profile.min_letters
        cuts = [
            cut(passage) if enough else []
            for passage, enough in zip(passages, long_enough.tolist(), strict=True)
        ]
        rows = self._vocabulary.rows(word for words in cuts for word in words)
        weights = self._vocabulary.weights[rows]
        owners = np.repeat(np.arange(len(cuts)), [len(words) for words in cuts])
        heavy = weights > 0
        rows, weights, owners = rows[heavy], weights[heavy], owners[heavy]
        if self.profile.source == "keywords":
            return self._heaviest(rows, owners)
        return _Tokens(rows=rows, weights=weights, counts=np.ones(len(rows), np.int64), texts=owners)

    def _heaviest(self, rows: npt.NDArray[np.int64], owners: npt.NDArray[np.int64]) -> _Tokens:
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
        return _Tokens(rows=words[kept], weights=weights[kept], counts=counts[kept], texts=texts[kept])

"""Simhashes of weighted words: the words of a text's longest sentence, or the heaviest of the whole text."""

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.fingerprint.simhash import weighted_simhashes
from esdedup.text.hashing import TokenHash
from esdedup.text.parsed import ParsedTexts
from esdedup.text.weights import WEIGHT_SCALE, Weighting

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_VOCABULARY_LIMIT = 500_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """A word of a text and what it adds to the simhash."""

    word: str
    # How often it occurs.
    count: int
    # The weight of all its occurrences together.
    weight: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _WeighedWords:
    """The words of a batch of texts, one text after the other: int64 ``(t,)`` each."""

    # Rows of the vocabulary.
    rows: Ints
    # The number of occurrences that each entry stands for, and their total weight.
    counts: Ints
    weights: Ints
    # The position in the batch of each entry's text, non-decreasing.
    texts: Ints


class ByWords:
    """Computes the signatures of profiles that weigh words: one simhash per text."""

    needs_text = True

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._is_whole_text = profile.representation == "keywords"
        self._vocabulary = _Vocabulary(profile.weighting, profile.token_hash)

    def fingerprints(self, parsed: ParsedTexts, left_out: Bools) -> Fingerprints:
        """Return the fingerprints of texts without some of their passages, bool ``(passages,)``."""
        passages, alphanumerics, faults = self._represented(parsed, left_out)
        words = self._features(passages, alphanumerics)
        signatures = np.zeros(len(parsed), np.uint64)
        exists = np.zeros(len(parsed), bool)
        if len(words.rows):
            present, starts = np.unique(words.texts, return_index=True)
            hashes = self._vocabulary.hashes[words.rows]
            # For the other bits, the components have the opposite sign.
            flip = np.uint64(2**64 - 1 if self._profile.zero_bit else 0)
            signatures[present] = flip ^ weighted_simhashes(flip ^ hashes, words.weights, starts)
            exists[present] = True
        return Fingerprints.of(
            parsed, left_out, signatures=signatures, exists=exists, alphanumerics=alphanumerics, faults=faults
        )

    def features(self, parsed: ParsedTexts, left_out: Bools) -> list[Feature]:
        """Return the words that decide the simhash of one text, the heaviest first."""
        passages, alphanumerics, _ = self._represented(parsed, left_out)
        words = self._features(passages, alphanumerics)
        rows, entries = np.unique(words.rows, return_inverse=True)
        # Sums below 2^53 are exact.
        counts = np.bincount(entries, words.counts)
        weights = np.bincount(entries, words.weights)
        features = [
            Feature(word=self._vocabulary.word(row), count=int(count), weight=weight / WEIGHT_SCALE)
            for row, count, weight in zip(rows.tolist(), counts.tolist(), weights.tolist(), strict=True)
        ]
        return sorted(features, key=lambda feature: (-feature.weight, feature.word))

    def passages(self, parsed: ParsedTexts, left_out: Bools) -> list[str]:
        """Return the normalised passage of one text that is hashed: all, or the longest sentence if any."""
        (passage,), (alphanumerics,), _ = self._represented(parsed, left_out)
        if self._is_whole_text:
            return [passage]
        return [passage.strip()] if alphanumerics else []

    def _represented(self, parsed: ParsedTexts, left_out: Bools) -> tuple[list[str], Ints, list[str]]:
        """Return the passage that represents what is left of each text, how many letters it has, and faults.

        The passage is empty for a text without sentences. Rows of tables are joined, since one alone is too
        short to represent a text.
        """
        if self._is_whole_text:
            passages, alphanumerics, faults = parsed.core.whole_texts(left_out.tobytes())
        else:
            passages, alphanumerics, faults = parsed.core.longest_sentences(
                left_out.tobytes(), self._profile.max_sentence_length
            )
        return passages, np.frombuffer(alphanumerics, np.int64), faults

    def _features(self, passages: list[str], alphanumerics: Ints) -> _WeighedWords:
        words = self._weighed_words(passages, alphanumerics)
        return self._heaviest(words) if self._is_whole_text else words

    def _weighed_words(self, passages: list[str], alphanumerics: Ints) -> _WeighedWords:
        """Return the words that have a weight in each text's passage, one entry per occurrence."""
        cuts = [
            self._profile.segmenter.cut(passage) if enough else []
            for passage, enough in zip(
                passages, (alphanumerics >= self._profile.min_letters).tolist(), strict=True
            )
        ]
        rows = self._vocabulary.rows(word for words in cuts for word in words)
        weights = self._vocabulary.weights[rows]
        owners = np.repeat(np.arange(len(cuts)), [len(words) for words in cuts])
        # Punctuation and white space weigh nothing.
        is_weighed = weights > 0
        return _WeighedWords(
            rows=rows[is_weighed],
            counts=np.ones(np.count_nonzero(is_weighed), np.int64),
            weights=weights[is_weighed],
            texts=owners[is_weighed],
        )

    def _heaviest(self, words: _WeighedWords) -> _WeighedWords:
        """Keep each text's heaviest words, one entry per word; ties go to the lower hash."""
        vocabulary = self._vocabulary
        (texts, rows), counts = np.unique(np.stack((words.texts, words.rows)), axis=1, return_counts=True)
        weights = vocabulary.weights[rows] * counts
        order = np.lexsort((vocabulary.hashes[rows], -weights, texts))
        sorted_texts = texts[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_texts, sorted_texts)
        kept = order[rank < self._profile.keyword_count]
        return _WeighedWords(rows=rows[kept], counts=counts[kept], weights=weights[kept], texts=texts[kept])


class _Vocabulary:
    """The hashes and weights of all words seen so far.

    Starts over when it gets very large; that changes only the rows of words.
    """

    def __init__(self, weighting: Weighting, token_hash: TokenHash) -> None:
        self._weighting = weighting
        self._token_hash = token_hash
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[str, int] = {}
        self._words: list[str] = []
        # By row, with room for more: the hash, and the weight of one occurrence in units of
        # 1 / `WEIGHT_SCALE`, 0 for a word without letters or digits.
        self.hashes = np.zeros(1024, np.uint64)
        self.weights = np.zeros(1024, np.int64)

    def rows(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the row of each word: int64 ``(n,)``. Rows are valid until the next call."""
        if len(self._rows) > _VOCABULARY_LIMIT:
            self._clear()
        words = list(words)
        known = self._rows
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            self._learn(new)
        return np.fromiter(map(known.__getitem__, words), np.int64, len(words))

    def word(self, row: int) -> str:
        """Return the word in a row."""
        return self._words[row]

    def _learn(self, words: list[str]) -> None:
        # Before any change, since a user's function may fail.
        hashes = self._token_hash.of(words)
        weights = [
            round(self._weighting.weight(word) * WEIGHT_SCALE) if any(map(str.isalnum, word)) else 0
            for word in words
        ]
        first = len(self._words)
        self._rows.update(zip(words, range(first, first + len(words)), strict=True))
        self._words += words
        if len(self._words) > len(self.weights):
            size = 2 * len(self._words)
            self.hashes = np.concatenate((self.hashes[:first], np.zeros(size - first, np.uint64)))
            self.weights = np.concatenate((self.weights[:first], np.zeros(size - first, np.int64)))
        self.hashes[first : len(self._words)] = hashes
        self.weights[first : len(self._words)] = weights

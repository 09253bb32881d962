"""Simhashes of weighted words: the words of a text's longest sentence, or the heaviest of the whole text."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.fingerprint.simhash import components, pack64
from esdedup.fingerprint.vocabulary import Vocabulary
from esdedup.text.characters import classes
from esdedup.text.groups import are_first
from esdedup.text.normalise import strings
from esdedup.text.parsed import ParsedTexts
from esdedup.text.sentences import Sentences
from esdedup.text.weights import WEIGHT_SCALE

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """A word of a text and what it adds to the simhash."""

    word: str
    # How often it occurs.
    count: int
    # The weight of all its occurrences together.
    weight: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Words:
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

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._is_whole_text = profile.representation == "keywords"
        self._vocabulary = Vocabulary(profile.weighting, profile.token_hash)

    def fingerprints(self, parsed: ParsedTexts, omitted: Bools) -> Fingerprints:
        """Return the fingerprints of texts without some of their passages, bool ``(passages,)``."""
        sentences = _sentences(parsed, omitted)
        letters = sentences.letters_of_texts
        words = self._features(sentences)
        signatures = np.zeros(len(parsed.pages), np.uint64)
        exists = np.zeros(len(parsed.pages), bool)
        if len(words.rows):
            starts = np.flatnonzero(are_first(words.texts))
            sums = components(self._vocabulary.bits[words.rows], words.weights, starts)
            present = words.texts[starts]
            signatures[present] = pack64(sums > 0)
            exists[present] = True
        return Fingerprints(
            signatures=signatures,
            exists=exists,
            letters=letters,
            are_cut=parsed.are_cut,
            pages=parsed.pages,
        )

    def features(self, parsed: ParsedTexts, omitted: Bools) -> list[Feature]:
        """Return the words that decide the simhash of one text, the heaviest first."""
        words = self._features(_sentences(parsed, omitted))
        rows, entries = np.unique(words.rows, return_inverse=True)
        # Sums below 2^53 are exact.
        counts = np.bincount(entries, words.counts)
        weights = np.bincount(entries, words.weights)
        features = [
            Feature(word=self._vocabulary.word(row), count=int(count), weight=weight / WEIGHT_SCALE)
            for row, count, weight in zip(rows.tolist(), counts.tolist(), weights.tolist(), strict=True)
        ]
        return sorted(features, key=lambda feature: (-feature.weight, feature.word))

    def passages(self, parsed: ParsedTexts, omitted: Bools) -> list[str]:
        """Return the normalised passage that is hashed: the whole text, or the longest sentence if any."""
        sentences = _sentences(parsed, omitted)
        if self._is_whole_text:
            return strings(sentences.points)
        return [self._sentence(sentences, each).strip() for each in sentences.longest().tolist()]

    def _features(self, sentences: Sentences) -> _Words:
        """Return the words that decide the simhashes of texts."""
        words = self._weighed_words(sentences)
        return self._heaviest(words) if self._is_whole_text else words

    def _weighed_words(self, sentences: Sentences) -> _Words:
        """Return the words that have a weight in each text's passage, one entry per occurrence."""
        is_long = sentences.letters_of_texts >= self._profile.min_letters
        cuts = [
            self._profile.segmenter.cut(passage) if enough else []
            for passage, enough in zip(self._passages(sentences), is_long.tolist(), strict=True)
        ]
        rows = self._vocabulary.rows(word for words in cuts for word in words)
        weights = self._vocabulary.weights[rows]
        owners = np.repeat(np.arange(len(cuts)), [len(words) for words in cuts])
        # Punctuation and white space weigh nothing.
        is_weighed = weights > 0
        return _Words(
            rows=rows[is_weighed],
            counts=np.ones(np.count_nonzero(is_weighed), np.int64),
            weights=weights[is_weighed],
            texts=owners[is_weighed],
        )

    def _passages(self, sentences: Sentences) -> list[str]:
        """Return the passage that represents each text, empty for a text without sentences."""
        if self._is_whole_text:
            return strings(sentences.points)
        passages = [""] * sentences.text_count
        for each in sentences.longest().tolist():
            passages[sentences.texts[each]] = self._sentence(sentences, each)
        return passages

    def _sentence(self, sentences: Sentences, sentence: int) -> str:
        return sentences.string(sentence, max_length=self._profile.max_sentence_length)

    def _heaviest(self, words: _Words) -> _Words:
        """Keep each text's heaviest words, one entry per word; ties go to the lower hash."""
        vocabulary = self._vocabulary
        (texts, rows), counts = np.unique(np.stack((words.texts, words.rows)), axis=1, return_counts=True)
        weights = vocabulary.weights[rows] * counts
        hashes = pack64(vocabulary.bits[rows] != 0)
        order = np.lexsort((hashes, -weights, texts))
        sorted_texts = texts[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_texts, sorted_texts)
        kept = order[rank < self._profile.keyword_count]
        return _Words(rows=rows[kept], counts=counts[kept], weights=weights[kept], texts=texts[kept])


def _sentences(texts: ParsedTexts, omitted: Bools) -> Sentences:
    """Return the sentences of texts without some of them, nor the characters of these.

    Rows of tables are joined, since one alone is too short to represent a text.
    """
    sentences = texts.sentences
    if not omitted.any():
        return sentences.with_rows_joined()
    in_omitted = np.zeros(len(sentences.points), np.int8)
    in_omitted[sentences.starts[omitted]] = 1
    in_omitted[sentences.ends[omitted]] -= 1
    # The character that ends a sentence, and may end its text, stays.
    points = sentences.points[in_omitted.cumsum() == 0]
    return Sentences.of(points, classes().take(points)).with_rows_joined()

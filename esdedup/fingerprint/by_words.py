"""Simhashes of weighted words: of a text's longest sentence, or the heaviest words of the whole text."""

import dataclasses
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup._core import PassageFilter
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
    """A word of a text, with its weight in the simhash."""

    word: str
    # The number of occurrences.
    count: int
    # The total weight of all occurrences.
    weight: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _WeighedWords:
    """The words of a batch of texts, as entries in the order of the texts: int64 ``(t,)`` each."""

    # The distinct words of the batch, and their hashes: uint64 ``(words,)``.
    words: list[str]
    hashes: npt.NDArray[np.uint64]
    # The index of each entry's word in `words`, the number of its occurrences, and their total weight.
    rows: Ints
    counts: Ints
    weights: Ints
    # The position in the batch of each entry's text, non-decreasing.
    texts: Ints


class ByWords:
    """Computes the signatures of profiles that weigh words: one simhash per text."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._is_whole_text = profile.representation == "keywords"
        self._vocabulary = _Vocabulary(profile.weighting, profile.token_hash)

    def fingerprints(
        self, texts: Sequence[str], passage_filter: PassageFilter | None, *, threads: int
    ) -> Fingerprints:
        """Return the fingerprints of raw texts, in order, without the passages that a filter omits."""
        parsed = ParsedTexts.of(
            texts, max_length=self._profile.max_text_length, keep_text=True, threads=threads
        )
        left_out = parsed.left_out(passage_filter)
        passages, alphanumerics, faults = self._represented(parsed, left_out)
        words = self._features(passages, alphanumerics)
        signatures = np.zeros(len(parsed), np.uint64)
        exists = np.zeros(len(parsed), bool)
        if len(words.rows):
            present, starts = np.unique(words.texts, return_index=True)
            hashes = words.hashes[words.rows]
            # Flipping the hashes and then the simhash sets the bits whose weights add up to zero.
            flip = np.uint64(2**64 - 1 if self._profile.zero_bit else 0)
            signatures[present] = flip ^ weighted_simhashes(flip ^ hashes, words.weights, starts)
            exists[present] = True
        column = np.array(faults, object)
        return Fingerprints(
            signatures=signatures,
            exists=exists,
            alphanumerics=alphanumerics,
            boilerplate_letters=parsed.letters_left_out(left_out),
            are_cut=parsed.are_cut,
            # Otherwise the forest would remember that a text with a fault has no fingerprint.
            content_hashes=np.where(column == "", parsed.content_hashes, np.uint64(0)),
            faults=column,
        )

    def features(self, parsed: ParsedTexts, left_out: Bools) -> list[Feature]:
        """Return the words that determine the simhash of one text, heaviest first."""
        passages, alphanumerics, _ = self._represented(parsed, left_out)
        words = self._features(passages, alphanumerics)
        rows, entries = np.unique(words.rows, return_inverse=True)
        # Sums below 2^53 are exact.
        counts = np.bincount(entries, words.counts)
        weights = np.bincount(entries, words.weights)
        features = [
            Feature(word=words.words[row], count=int(count), weight=weight / WEIGHT_SCALE)
            for row, count, weight in zip(rows.tolist(), counts.tolist(), weights.tolist(), strict=True)
        ]
        return sorted(features, key=lambda feature: (-feature.weight, feature.word))

    def passages(self, parsed: ParsedTexts, left_out: Bools) -> list[str]:
        """Return the normalised passage that is hashed for a text: the whole text or its longest sentence."""
        (passage,), (alphanumerics,), _ = self._represented(parsed, left_out)
        if self._is_whole_text:
            return [passage]
        return [passage.strip()] if alphanumerics else []

    def _represented(self, parsed: ParsedTexts, left_out: Bools) -> tuple[list[str], Ints, list[str]]:
        """Return the passage that represents each text, the number of its letters, and faults.

        The passage is empty for a text without sentences. Rows of tables are joined, since a single row is
        too short to represent a text.
        """
        if self._is_whole_text:
            passages, alphanumerics, faults = parsed.core.whole_texts(left_out.tobytes())
        else:
            passages, alphanumerics, faults = parsed.core.longest_sentences(
                left_out.tobytes(), self._profile.max_sentence_length
            )
        return passages, np.frombuffer(alphanumerics, np.int64), faults

    def _features(self, passages: list[str], alphanumerics: Ints) -> _WeighedWords:
        """Return the words with a weight that determine each text's simhash, given its passage and length."""
        segmented = [
            self._profile.segmenter.cut(passage) if enough else []
            for passage, enough in zip(
                passages, (alphanumerics >= self._profile.min_letters).tolist(), strict=True
            )
        ]
        # Words are numbered in the order of their first occurrence.
        places = {word: row for row, word in enumerate(dict.fromkeys(itertools.chain(*segmented)))}
        known = self._vocabulary.of(places)
        rows = np.fromiter((places[word] for words in segmented for word in words), np.int64)
        weights = known["weight"][rows]
        owners = np.repeat(np.arange(len(segmented)), [len(words) for words in segmented])
        # Punctuation and white space have no weight.
        is_weighed = weights > 0
        weighed = _WeighedWords(
            words=list(places),
            hashes=known["hash"],
            rows=rows[is_weighed],
            counts=np.ones(np.count_nonzero(is_weighed), np.int64),
            weights=weights[is_weighed],
            texts=owners[is_weighed],
        )
        return self._heaviest(weighed) if self._is_whole_text else weighed

    def _heaviest(self, words: _WeighedWords) -> _WeighedWords:
        """Keep each text's heaviest words, one entry per word; among equal weights, the lower hash wins."""
        (texts, rows), first, counts = np.unique(
            np.stack((words.texts, words.rows)), axis=1, return_index=True, return_counts=True
        )
        weights = words.weights[first] * counts
        order = np.lexsort((words.hashes[rows], -weights, texts))
        sorted_texts = texts[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_texts, sorted_texts)
        kept = order[rank < self._profile.keyword_count]
        return dataclasses.replace(
            words, rows=rows[kept], counts=counts[kept], weights=weights[kept], texts=texts[kept]
        )


class _Vocabulary:
    """Computes the hashes and weights of words, and caches them."""

    def __init__(self, weighting: Weighting, token_hash: TokenHash) -> None:
        self._weighting = weighting
        self._token_hash = token_hash
        # The hash of each word, and the weight of one occurrence in units of 1 / `WEIGHT_SCALE`: 0 for a word
        # without letters and digits.
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, words: Collection[str]) -> npt.NDArray[Any]:
        """Return the hash and the weight of each word: ``(n,)`` with the fields `hash` and `weight`."""
        if len(self._known) > _VOCABULARY_LIMIT:
            self._known.clear()
        new = [word for word in words if word not in self._known]
        weights = [
            round(self._weighting.weight(word) * WEIGHT_SCALE) if any(map(str.isalnum, word)) else 0
            for word in new
        ]
        self._known |= zip(new, zip(self._token_hash.of(new).tolist(), weights, strict=True), strict=True)
        return np.array([self._known[word] for word in words], [("hash", np.uint64), ("weight", np.int64)])

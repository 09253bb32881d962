"""Hashes and weights of words as rows of arrays, so that each distinct word is hashed once."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from esdedup.text.hashing import TokenHash
from esdedup.text.weights import WEIGHT_SCALE, Weighting

_VOCABULARY_LIMIT = 500_000


class Vocabulary:
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
        # Before anything is changed: a function of the user's may fail.
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

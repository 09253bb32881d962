"""Inverse document frequencies of the words of the user's articles."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.errors import SettingError
from esdedup.fingerprint.fingerprinter import slices
from esdedup.text.segmenters import Segmenter
from esdedup.text.weights import WordTable

# The decimal places of weights.
_DECIMALS = 6


class DocumentFrequencies:
    """Counts the texts in which each word occurs, using about 100 bytes of memory per distinct word."""

    def __init__(self, segmenter: Segmenter, *, max_text_length: int) -> None:
        """Count the words in the first `max_text_length` visible characters of each text."""
        self._segmenter = segmenter
        self._max_text_length = max_text_length
        self._texts_with: Counter[str] = Counter()
        self.text_count = 0

    def add(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Count the words of raw texts; return which texts were truncated, bool ``(n,)``."""
        are_cut = []
        for some in slices(texts):
            normal, cut = _core.normalise(some, max_length=self._max_text_length)
            for text in normal:
                self._texts_with.update(set(self._segmenter.cut(text)))
            are_cut.append(np.frombuffer(cut, bool))
        self.text_count += len(texts)
        return np.concatenate((np.zeros(0, bool), *are_cut))

    def table(self, *, min_texts: int = 1) -> WordTable:
        """Return the inverse document frequencies, ln((texts + 1) / texts with the word), to six decimals.

        All other words have the median as their weight, as in `TF_IDF`. Words that occur in fewer than
        `min_texts` texts are skipped; raises `SettingError` if no word remains.
        """
        weights = {
            word: round(math.log((self.text_count + 1) / count), _DECIMALS)
            for word, count in self._texts_with.items()
            if count >= min_texts and any(map(str.isalnum, word))
        }
        if not weights:
            raise SettingError(
                f"no word occurs in {min_texts:,} or more of the {self.text_count:,} articles: provide more "
                "articles, or lower the minimum"
            )
        return WordTable(weights, default=statistics.median_high(weights.values()))

"""Weights of words: from jieba's IDF table, from a user's table, or all equal."""

import dataclasses
import functools
import importlib.util
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from esdedup._core import normal_form
from esdedup.errors import SettingError
from esdedup.text.hashing import murmur64

# Weights are stored as integers in millionths, so that their sums are exact.
WEIGHT_SCALE = 1_000_000


class Weighting(Protocol):
    """The weights of words."""

    @property
    def name(self) -> str:
        """The name in a profile's label; different weightings must have different names."""

    def weight(self, word: str) -> float:
        """Return the weight of a word with a letter or digit: 0, or from 0.000001 to 1,000,000."""


@dataclasses.dataclass(frozen=True)
class TfIdf:
    """Inverse document frequencies from jieba's table; words that are not in the table have the median."""

    name: str = "tf-idf"

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a word."""
        frequencies, median = _jieba_idf()
        return frequencies.get(word, median)


@dataclasses.dataclass(frozen=True)
class Tf:
    """The weight 1 for every word."""

    name: str = "tf"

    def weight(self, word: str) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0


TF_IDF = TfIdf()
WEIGHTINGS: Mapping[str, Weighting] = {each.name: each for each in (TF_IDF, Tf())}
"""The weightings that a profile can name."""


class WordTable:
    """A user's weights, with a default for words that are not in the table."""

    def __init__(self, weights: Mapping[str, float], *, default: float = 0.0) -> None:
        """Create a table from a copy of `weights`.

        Args:
            weights: Weights by word: 0, or from 0.000001 to 1,000,000, so that sums are exact.
            default: The weight of all other words, in the same range.

        Raises:
            SettingError: A weight is out of range; or two words with different weights differ only in case,
                width or script.
        """
        for word, weight in [*weights.items(), ("default", default)]:
            if type(weight) not in {int, float} or not (weight == 0 or 1 / WEIGHT_SCALE <= weight <= 1e6):
                raise SettingError(
                    f"the weight of {word!r} must be 0, or a number from 0.000001 to 1,000,000"
                )
        # The table needs normalised words, because texts are normalised before they are divided into words.
        self._weights: dict[str, float] = {}
        self.default = default
        """The weight of all other words."""
        for word, weight in weights.items():
            if self._weights.setdefault(normal_form(word), weight) != weight:
                raise SettingError(
                    f"the word {word!r} is in the table twice, with different weights (case, width and "
                    "script of letters are ignored): keep one"
                )

    @property
    def words(self) -> Sequence[str]:
        """The words of the table, in normal form."""
        return list(self._weights)

    @functools.cached_property
    def name(self) -> str:
        """The name, which contains a hash of the table."""
        lines = (f"{word}\t{weight!r}\n" for word, weight in sorted(self._weights.items()))
        return f"table-{murmur64(''.join([*lines, repr(self.default)]).encode()):016x}"

    def weight(self, word: str) -> float:
        """Return the weight of a word, or the default."""
        return self._weights.get(word, self.default)


class StopWords:
    """A weighting in which some words have no weight."""

    def __init__(self, words: Iterable[str], weighting: Weighting = TF_IDF) -> None:
        """Give some words no weight.

        Args:
            words: The words without weight.
            weighting: The weights of all other words.

        Raises:
            SettingError: There are no words, so only the profile's label would change.
        """
        self._words = frozenset(map(normal_form, words))
        if not self._words:
            raise SettingError("the list of stop words is empty: pass the weighting itself")
        self.weighting = weighting
        """The weights of all other words."""

    @property
    def words(self) -> Sequence[str]:
        """The words without weight, in normal form."""
        return sorted(self._words)

    @functools.cached_property
    def name(self) -> str:
        """The name of the other words' weighting, and a hash of the words without weight."""
        words = "".join(f"{word}\n" for word in self.words)
        return f"{self.weighting.name} without {murmur64(words.encode()):016x}"

    def weight(self, word: str) -> float:
        """Return 0 for a stop word, and the weight of any other word."""
        return 0.0 if word in self._words else self.weighting.weight(word)


@functools.cache
def _jieba_idf() -> tuple[dict[str, float], float]:
    # Importing the package would raise warnings, and only its table is needed.
    package = importlib.util.find_spec("jieba")
    if package is None or package.origin is None:
        raise SettingError("the package jieba is not installed: its IDF table is needed")
    lines = (Path(package.origin).parent / "analyse" / "idf.txt").read_text("utf-8").split("\n")
    frequencies: dict[str, float] = {}
    for line in lines:
        word, _, frequency = line.strip().rpartition(" ")
        if word:
            frequencies.setdefault(word.casefold(), float(frequency))
    return frequencies, statistics.median_high(frequencies.values())

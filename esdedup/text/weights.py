"""Weights of words: from jieba's IDF table, from a table of the user's, or all equal."""

import dataclasses
import functools
import importlib.util
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from esdedup.errors import SettingError
from esdedup.text.hashing import murmur64
from esdedup.text.normalise import normal_form

# Weights are kept as whole millionths, so that sums of them are exact.
WEIGHT_SCALE = 1_000_000


class Weighting(Protocol):
    """How much one occurrence of a word counts."""

    @property
    def name(self) -> str:
        """Identifies the weighting in a profile's label: different weightings have different names."""

    def weight(self, word: str) -> float:
        """Return the weight of `word`, which has a letter or digit: 0, or from 0.000001 to 1,000,000."""


@dataclasses.dataclass(frozen=True)
class TfIdf:
    """Inverse document frequencies from jieba's table, and its median for words that are not in it."""

    name: str = "tf-idf"

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of the word."""
        frequencies, median = _jieba_idf()
        return frequencies.get(word, median)


@dataclasses.dataclass(frozen=True)
class Tf:
    """Every occurrence counts 1."""

    name: str = "tf"

    def weight(self, word: str) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0


TF_IDF = TfIdf()
WEIGHTINGS: Mapping[str, Weighting] = {each.name: each for each in (TF_IDF, Tf())}
"""The weightings that a profile can name."""


class WordTable:
    """Weights given by the user, with a default for words that are not in the table."""

    def __init__(self, weights: Mapping[str, float], *, default: float = 0.0) -> None:
        """Make a table from a copy of `weights`.

        Args:
            weights: By word; 0, or from 0.000001 to 1,000,000, so that sums of them are exact.
            default: The weight of all other words, in the same range.

        Raises:
            SettingError: A weight is out of range; or two words are the same, but for case, width or script,
                and have different weights.
        """
        for word, weight in [*weights.items(), ("default", default)]:
            if type(weight) not in {int, float} or not (weight == 0 or 1 / WEIGHT_SCALE <= weight <= 1e6):
                raise SettingError(
                    f"the weight of {word!r} must be 0, or a number from 0.000001 to 1,000,000"
                )
        # Texts are normalised before they are cut into words, so the words of the table must be as well.
        self._weights: dict[str, float] = {}
        self.default = default
        """The weight of all other words."""
        for word, weight in weights.items():
            if self._weights.setdefault(normal_form(word), weight) != weight:
                raise SettingError(
                    f"the word {word!r} is in the table twice, with different weights, since case, width and "
                    "script of letters do not count: keep one"
                )

    @property
    def words(self) -> Sequence[str]:
        """The words of the table, in their normal form."""
        return list(self._weights)

    @functools.cached_property
    def name(self) -> str:
        """A name made of a hash of the contents."""
        lines = (f"{word}\t{weight!r}\n" for word, weight in sorted(self._weights.items()))
        return f"table-{murmur64(''.join([*lines, repr(self.default)]).encode()):016x}"

    def weight(self, word: str) -> float:
        """Return the weight of the word, or the default."""
        return self._weights.get(word, self.default)


class StopWords:
    """A weighting in which some words have no weight."""

    def __init__(self, words: Iterable[str], weighting: Weighting = TF_IDF) -> None:
        """Give some words no weight.

        Args:
            words: The words without weight.
            weighting: The weights of all others.

        Raises:
            SettingError: There are none, which would change the profile's label and nothing else.
        """
        self._words = frozenset(map(normal_form, words))
        if not self._words:
            raise SettingError("there are no stop words: leave them out")
        self.weighting = weighting
        """How much all others weigh."""

    @property
    def words(self) -> Sequence[str]:
        """The words without weight, in normal form."""
        return sorted(self._words)

    @functools.cached_property
    def name(self) -> str:
        """The name of the weighting of the others, and a hash of the words."""
        words = "".join(f"{word}\n" for word in self.words)
        return f"{self.weighting.name} without {murmur64(words.encode()):016x}"

    def weight(self, word: str) -> float:
        """Return 0 for those words, and the weight of any other."""
        return 0.0 if word in self._words else self.weighting.weight(word)


@functools.cache
def _jieba_idf() -> tuple[dict[str, float], float]:
    # Only the table is needed, and importing the package raises warnings.
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

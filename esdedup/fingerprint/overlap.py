"""The exact overlap of two whole texts, which sketches only estimate."""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.text.tokens import LONGEST_RUN_UNITS, Tokens

_Runs = tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Overlap:
    """The shares that sketches estimate, counted over runs of tokens: 0 to 1.

    Runs with a number count several times, as they do in a sketch.
    """

    # The share of all distinct runs that both texts have.
    resemblance: float
    # The same for runs without a number; None if neither text has any.
    resemblance_of_words: float | None
    # The share of the smaller text that is in the other one.
    contained: float
    # The share of each text's runs that have a number.
    number_shares: tuple[float, float]

    @classmethod
    def of(cls, one_text: Tokens, other_text: Tokens, *, number_weight: int) -> "Overlap":
        """Compare two texts; each must have a letter or digit.

        Args:
            one_text: The tokens of the one text.
            other_text: The tokens of the other text.
            number_weight: How many times a run with a number counts.
        """
        one, other = map(_distinct_runs, (one_text, other_text))
        words, numbers = (_count(one, other, with_number=kind) for kind in (False, True))
        runs = _Counts(*(each + number_weight * number for each, number in zip(words, numbers, strict=True)))
        return cls(
            resemblance=runs.shared / runs.of_either,
            resemblance_of_words=words.shared / words.of_either if words.of_either else None,
            contained=runs.shared / min(runs.of_one, runs.of_other),
            number_shares=(
                number_weight * numbers.of_one / runs.of_one,
                number_weight * numbers.of_other / runs.of_other,
            ),
        )


class _Counts(NamedTuple):
    """How many distinct runs both texts have, the one text, and the other text."""

    shared: int
    of_one: int
    of_other: int

    @property
    def of_either(self) -> int:
        """How many distinct runs the two texts have together."""
        return self.of_one + self.of_other - self.shared


def _distinct_runs(tokens: Tokens) -> _Runs:
    """Return the distinct runs of a text, and whether each run contains a number."""
    runs = tokens.runs_of_texts(units=LONGEST_RUN_UNITS)
    hashes, first = np.unique(runs.hashes, return_index=True)
    return hashes, runs.have_number[first]


def _count(one: _Runs, other: _Runs, *, with_number: bool) -> _Counts:
    """Count the runs with a number, or those without."""
    ours, theirs = (hashes[have_number == with_number] for hashes, have_number in (one, other))
    shared = np.intersect1d(ours, theirs, assume_unique=True)
    return _Counts(len(shared), len(ours), len(theirs))

"""The exact overlap of two whole texts, which sketches only estimate."""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.text.parsed import ParsedTexts

Bools = npt.NDArray[np.bool_]


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
    def of(
        cls, one: tuple[ParsedTexts, Bools], other: tuple[ParsedTexts, Bools], *, number_weight: int
    ) -> "Overlap":
        """Compare two texts; each must have a letter or digit.

        Args:
            one: The one text alone, and which of its passages are left out, bool ``(passages,)``.
            other: The same for the other text.
            number_weight: How many times a run with a number counts.
        """
        (parsed, omitted), (parsed_other, omitted_of_other) = one, other
        ((of_words, of_numbers),) = parsed.core.overlap(
            omitted.tobytes(), parsed_other.core, omitted_of_other.tobytes()
        )
        words, numbers = _Counts(*of_words), _Counts(*of_numbers)
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

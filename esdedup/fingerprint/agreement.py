"""When two whole texts agree: the second test of the profile `verified`, after a representative in common."""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.errors import SettingError
from esdedup.fingerprint.signature import Signatures
from esdedup.text.parsed import ParsedTexts

Bools = npt.NDArray[np.bool_]

# Pairs of thresholds of which the first must not exceed the second.
_ASCENDING = (
    ("least_resemblance", "most_resemblance"),
    ("root_slack", "least_resemblance"),
    ("least_resemblance", "tiny_resemblance"),
    # Otherwise containment would never decide.
    ("contained_resemblance", "most_resemblance"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreement:
    """The rules by which two texts agree, judged by their sketches and lengths.

    Two texts agree if they resemble each other enough; shorter texts need more resemblance, and very short
    ones most. Two short texts also agree if one is contained in the other, such as a bulletin in its longer
    version.

    Raises:
        SettingError: A threshold is outside 0 to 1, a count is below 1, or two thresholds contradict each
            other.
    """

    # How many times a run of tokens with a number counts in the sketch; from 1.
    number_weight: int = 5
    # The resemblance (inclusive, 0 to 1) that texts need: the most for short texts, falling towards the
    # least as texts get longer.
    least_resemblance: float = 0.53
    most_resemblance: float = 0.72
    # Texts need the most if the shorter one has at most this many letters and digits. Beyond that, the
    # excess over the least falls in inverse proportion to the shorter one's length.
    short_letters: int = 200
    # Texts need at least this resemblance (inclusive, 0 to 1) if the runs of one of them weigh `tiny_runs`
    # or less: notes as short as that are often made from one template, and differ in a name. Beyond that,
    # the excess over the least falls with the fourth power of the weight.
    tiny_resemblance: float = 0.78
    tiny_runs: int = 80
    # Joining a cluster needs this much less resemblance to its root.
    root_slack: float = 0.15
    # A text is contained in another if at least this share of it (inclusive) is in the other, ...
    least_contained: float = 0.93
    # ... both have at most this many letters and digits, ...
    contained_letters: int = 300
    # ... and runs that weigh at least this much (a greeting is contained in many texts), ...
    contained_runs: int = 60
    # ... and their resemblance is at least this (inclusive), so neither is many times as long as the other.
    contained_resemblance: float = 0.25
    # At most this many nodes made within the retention are indexed under one representative.
    max_postings: int = 64

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise SettingError(f"{field.name} is {value}; it must be at least 1")
            if field.type is float and not 0 <= value <= 1:
                raise SettingError(f"{field.name} is {value}; it must be from 0 to 1")
        for lower, higher in _ASCENDING:
            if getattr(self, lower) > getattr(self, higher):
                raise SettingError(
                    f"{lower} is {getattr(self, lower)}; it must be at most {higher}, {getattr(self, higher)}"
                )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The comparison of pairs of texts, row by row: ``(n,)`` each."""

    # Estimated, 0 to 1.
    resemblance: npt.NDArray[np.float64]
    # The resemblance (inclusive) that texts of this length need to agree.
    needed: npt.NDArray[np.float64]
    # The share of the smaller text that is in the other, estimated, 0 to 1.
    contained: npt.NDArray[np.float64]
    # Whether the lengths of both are such that containment counts.
    may_contain: npt.NDArray[np.bool_]
    agree: npt.NDArray[np.bool_]
    may_join: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, one: Signatures, other: Signatures, rules: Agreement) -> "Comparison":
        """Compare signatures, ``(n,)`` each, row by row; `may_join`: whether `one` may join `other`.

        Joining needs less resemblance than agreeing does, since a text also agrees with a member of the
        cluster. A text that contains the root may join it; one that the root contains may not, since two
        texts that a root contains may have nothing in common.
        """
        # The distance is no part of this.
        columns = _core.Relation(0, rules).compare(one.tobytes(), other.tobytes())
        dtypes = (float, float, float, bool, bool, bool)
        return cls(*(np.frombuffer(column, dtype) for column, dtype in zip(columns, dtypes, strict=True)))


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
        """Compare two texts that have letters, given which of their passages are left out."""
        (parsed, left_out), (parsed_other, left_out_of_other) = one, other
        ((of_words, of_numbers),) = parsed.core.overlap(
            left_out.tobytes(), parsed_other.core, left_out_of_other.tobytes()
        )
        words, numbers = _RunCounts(*of_words), _RunCounts(*of_numbers)
        runs = _RunCounts(
            *(each + number_weight * number for each, number in zip(words, numbers, strict=True))
        )
        return cls(
            resemblance=runs.shared / runs.of_either,
            resemblance_of_words=words.shared / words.of_either if words.of_either else None,
            contained=runs.shared / min(runs.of_one, runs.of_other),
            number_shares=(
                number_weight * numbers.of_one / runs.of_one,
                number_weight * numbers.of_other / runs.of_other,
            ),
        )


class _RunCounts(NamedTuple):
    """How many distinct runs both texts have, the one text, and the other text."""

    shared: int
    of_one: int
    of_other: int

    @property
    def of_either(self) -> int:
        """How many distinct runs the two texts have together."""
        return self.of_one + self.of_other - self.shared

"""Compares whole texts: the second test of the profile `verified`, for texts with a common representative."""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.errors import SettingError
from esdedup.fingerprint import RESEMBLANCE
from esdedup.fingerprint.signature import Signatures
from esdedup.text.parsed import ParsedTexts

Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreement:
    """The rules by which two texts agree, judged by their sketches and lengths.

    Two texts agree if few of their figures differ, and if they resemble each other enough or one is an
    excerpt of the other. Lengths are in units: a word or number has 2, an East Asian character 1.

    Raises:
        SettingError: A share is not from 0 to 1, or a number is below 1.
    """

    # The resemblance (inclusive) that long texts need.
    resemblance: float = RESEMBLANCE
    # Short texts need more, by this share of the difference to 1. The whole excess is needed if the shorter
    # text has at most `short_units`; above, the excess is inversely proportional to that text's length.
    short_excess: float = 0.25
    short_units: int = 60
    # The shares that a text must have in common with a cluster's root to join are lower by this amount.
    root_slack: float = 0.05
    # A text also joins if it agrees with a member, has at least this resemblance with it, and resembles the
    # root at most `member_slack` less than long texts need. Even with the error of the estimate, that
    # resemblance is more than half, so no chain of members leads to another story.
    member_resemblance: float = 0.95
    member_slack: float = 0.1
    # A later version of an article joins its cluster, even with different figures, if it has these shares of
    # the previous version and of the root (inclusive), and resembles the previous version more than by
    # chance.
    version_share: float = 0.5
    version_root: float = 0.3
    version_resemblance: float = 0.12
    # Texts made from the same template differ in their figures. This many figures of the text with fewer
    # figures may differ (inclusive): one for each `units_a_figure` units of the shorter text, or
    # `figure_share` of the figures, rounded to the nearest number, whichever is more.
    units_a_figure: int = 140
    figure_share: float = 0.04
    # At most half of the figures may differ, unless that is less than `few_figures`; and at most
    # `most_figures`, the most that a sketch can estimate reliably.
    few_figures: int = 3
    most_figures: int = 10
    # Texts made from the same form also differ in names. If each text has at least `form_runs` runs that the
    # other text lacks, and at least `form_run_share` of the smaller text's runs, and the smaller of these two
    # numbers is at least `form_balance` of the larger, then at most `form_figure_share` of the figures may
    # differ.
    form_runs: int = 5
    form_run_share: float = 1 / 64
    form_balance: float = 2 / 3
    form_figure_share: float = 0.2
    # A notice reissued after a year has different figures, and may have an additional line. So if the
    # balance is at least `reissue_balance`, the product of the share of figures that differ and the share of
    # runs that only the smaller text has is at most `reissue_difference`.
    reissue_balance: float = 0.5
    reissue_difference: float = 0.015
    # A form that is filled in for another person has different names, and perhaps the same figures. Texts are
    # the same form if they are not short, and their resemblance is at least `name_resemblance`; if at least
    # `names` repeated words are replaced throughout (one word, if a figure differs too); and if `name_words`
    # to `most_name_words` words differ altogether. Each replaced word accounts for at most `name_runs` runs.
    # At most `other_repeated` words of both texts are repeated in only one text, and one text is at most
    # `other_words` words longer than the names explain.
    name_resemblance: float = 0.75
    names: int = 3
    name_words: int = 4
    most_name_words: int = 12
    name_runs: int = 12
    other_repeated: int = 2
    other_words: int = 4
    # An excerpt has at least `contained_units` units, since a greeting is contained in many texts. At least
    # `least_contained` of it (inclusive) is in the other text, or the share that two texts of equal length
    # with the needed resemblance have in common, if that is more.
    least_contained: float = 0.92
    contained_units: int = 40
    # The minimum size (inclusive) of an excerpt, as a share of the other text.
    excerpt_share: float = 0.47
    # The minimum contained share, size and units of a part, which may be smaller than an excerpt.
    part_contained: float = 0.88
    part_share: float = 0.3
    part_units: int = 80
    # The maximum number of nodes created within the retention that are indexed under one representative.
    max_postings: int = 64

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise SettingError(f"{field.name} is {value}; it must be at least 1")
            if field.type is float and not 0 <= value <= 1:
                raise SettingError(f"{field.name} is {value}; it must be from 0 to 1")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The comparison of pairs of texts, row by row: ``(n,)`` each."""

    # The estimated resemblance, 0 to 1.
    resemblance: npt.NDArray[np.float64]
    # The resemblance (inclusive) that texts of this length need to agree.
    needed: npt.NDArray[np.float64]
    # The estimated number of figures that the text with fewer figures has and the other text lacks, and its
    # limit (inclusive).
    replaced: npt.NDArray[np.float64]
    replaceable: npt.NDArray[np.float64]
    # Whether the texts are the same form, filled in with different names.
    is_form: npt.NDArray[np.bool_]
    # The estimated share of the smaller text that is in the larger text, 0 to 1.
    contained: npt.NDArray[np.float64]
    # The size of the smaller text divided by that of the larger text, 0 to 1.
    share: npt.NDArray[np.float64]
    agree: npt.NDArray[np.bool_]
    # Whether one text may join the cluster whose root is the other. The thresholds are lower than for
    # agreement, since the joining text also agrees with a member of the cluster.
    may_join: npt.NDArray[np.bool_]
    # Whether the smaller text is a part of the larger.
    is_part: npt.NDArray[np.bool_]
    # The ways, as bits (`Way`), in which the first text may join a cluster: `by_member` if the second text is
    # a near member, and `to_root` if it is the root.
    by_member: npt.NDArray[np.uint8]
    to_root: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, one: Signatures, other: Signatures, rules: Agreement) -> "Comparison":
        """Compare signatures, ``(n,)`` each, row by row; the order affects only `by_member` and `to_root`."""
        # The distance has no effect on comparisons.
        found = _core.Relation(0, rules).compare(one.tobytes(), other.tobytes())
        rows = np.frombuffer(found, "f8, f8, f8, f8, ?, f8, f8, ?, ?, ?, u1, u1")
        return cls(*(rows[name] for name in rows.dtype.names or ()))


class Overlap(NamedTuple):
    """The numbers of distinct features in both texts, in the first text, and in the second text."""

    shared: int
    of_one: int
    of_other: int

    @property
    def resemblance(self) -> float:
        """The share of all features that both texts have; 0 if there are no features."""
        return self.shared / max(1, self.of_one + self.of_other - self.shared)

    @property
    def contained(self) -> float:
        """The share of the smaller text's features that are in the other text; 0 if it has no features."""
        return self.shared / max(1, min(self.of_one, self.of_other))


def overlaps(one: tuple[ParsedTexts, Bools], other: tuple[ParsedTexts, Bools]) -> tuple[Overlap, Overlap]:
    """Return the overlaps, which sketches estimate, of two texts without their omitted passages.

    The first overlap is in runs of tokens; the second is in figures, counting every occurrence.
    """
    (parsed, left_out), (parsed_other, left_out_of_other) = one, other
    ((runs, figures),) = parsed.core.overlap(
        left_out.tobytes(), parsed_other.core, left_out_of_other.tobytes()
    )
    return Overlap(*runs), Overlap(*figures)

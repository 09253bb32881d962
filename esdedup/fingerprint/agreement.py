"""When two whole texts agree: the second test of the profile `verified`, after a representative in common."""

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

    Two texts agree if they resemble each other enough, and few of their figures are others; or if one is an
    excerpt of the other. Lengths are in units: a word or number is 2, an East Asian character 1.

    Raises:
        SettingError: A share is outside 0 to 1, or a number below 1.
    """

    # The resemblance (inclusive) that long texts need.
    resemblance: float = RESEMBLANCE
    # Short texts need more, by this share of what lacks to 1: all of it if the shorter one has at most
    # `short_units`. Beyond that, it falls in inverse proportion to the shorter one's length.
    short_excess: float = 0.25
    short_units: int = 60
    # Joining a cluster needs this much less of each share with its root.
    root_slack: float = 0.05
    # Or it agrees with a member that it resembles by this much (inclusive), and resembles the root at most
    # `member_slack` less than long texts need: still by more than half, whatever the error of the estimate,
    # so that no chain of members leads to another story.
    member_resemblance: float = 0.95
    member_slack: float = 0.1
    # A later version of an article joins its cluster, whatever its figures, if it has these shares of the
    # version before and of the root (inclusive), and resembles the former by more than chance does.
    version_share: float = 0.5
    version_root: float = 0.3
    version_resemblance: float = 0.12
    # Texts made from the same template differ in their figures. Of the figures of the text with fewer,
    # these may be others (inclusive): one for each `units_a_figure` units of the shorter text, or this share,
    # rounded to the nearest number, whichever is more.
    units_a_figure: int = 140
    figure_share: float = 0.04
    # But never most of them, unless they are no more than these few; nor more than a sketch can tell for
    # certain from any number.
    few_figures: int = 3
    most_figures: int = 10
    # Texts made from the same form also differ in names. So if each text has at least this many runs that the
    # other has not, and at least this share of the smaller one's runs, while the numbers of both differ no
    # more than by this factor, no more than this share of the figures may be others.
    form_runs: int = 5
    form_run_share: float = 1 / 64
    form_balance: float = 2 / 3
    form_figure_share: float = 0.2
    # Last year's notice, written anew in part, has other figures, and may have a line more. So down to this
    # factor, the share of figures that are others times that of the smaller text's own runs is limited.
    reissue_balance: float = 0.5
    reissue_difference: float = 0.015
    # A form that is filled in for another person has other names, and perhaps the same figures: texts that
    # are not short resemble each other by this much, at least `names` words that stand twice or more are
    # others wherever they stand (one, if a figure is another too), and from `name_words` to
    # `most_name_words` differ in all. Each such word accounts for at most `name_runs` runs. Of the words in
    # both texts, at most `other_repeated` are repeated in only one; and one text is at most `other_words`
    # words longer than the names make it.
    name_resemblance: float = 0.75
    names: int = 3
    name_words: int = 4
    most_name_words: int = 12
    name_runs: int = 12
    other_repeated: int = 2
    other_words: int = 4
    # A text is contained in another if at least this share of it (inclusive) is in the other (more, if texts
    # of one length that resemble each other enough have more in common), and it has at least this many units:
    # a greeting is contained in many texts.
    least_contained: float = 0.92
    contained_units: int = 40
    # It is an excerpt if it is at least this share (inclusive) of the other, ...
    excerpt_share: float = 0.47
    # ... and a part from less of both on, if it has at least `part_units`.
    part_contained: float = 0.88
    part_share: float = 0.3
    part_units: int = 80
    # At most this many nodes made within the retention are indexed under one representative.
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

    # Estimated, 0 to 1.
    resemblance: npt.NDArray[np.float64]
    # The resemblance (inclusive) that texts of this length need to agree.
    needed: npt.NDArray[np.float64]
    # How many figures of the text with fewer are not in the other, estimated, and how many (inclusive) may
    # be.
    replaced: npt.NDArray[np.float64]
    replaceable: npt.NDArray[np.float64]
    # Whether they are one form, filled in with other names.
    is_form: npt.NDArray[np.bool_]
    # The share of the smaller text that is in the other, estimated, 0 to 1.
    contained: npt.NDArray[np.float64]
    # The size of the smaller text as a share of the other's, 0 to 1.
    share: npt.NDArray[np.float64]
    agree: npt.NDArray[np.bool_]
    # Joining a root needs less than agreeing does, since a text also agrees with a member of the cluster.
    may_join: npt.NDArray[np.bool_]
    # Whether the smaller text is a part of the other.
    is_part: npt.NDArray[np.bool_]
    # The ways, as bits (`Way`), by which one may join a cluster: that the other allows as a member, and as
    # the root.
    by_member: npt.NDArray[np.uint8]
    to_root: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, one: Signatures, other: Signatures, rules: Agreement) -> "Comparison":
        """Compare signatures, ``(n,)`` each, row by row; the order of two makes no difference."""
        # The distance is left out.
        found = _core.Relation(0, rules).compare(one.tobytes(), other.tobytes())
        rows = np.frombuffer(found, "f8, f8, f8, f8, ?, f8, f8, ?, ?, ?, u1, u1")
        return cls(*(rows[name] for name in rows.dtype.names or ()))


class Overlap(NamedTuple):
    """Numbers of distinct features: common to both texts, of the one text, and of the other."""

    shared: int
    of_one: int
    of_other: int

    @property
    def resemblance(self) -> float:
        """The share of all features that both texts have; 0 if there are none."""
        return self.shared / max(1, self.of_one + self.of_other - self.shared)

    @property
    def contained(self) -> float:
        """The share of the smaller text's features that the other one has; 0 if there are none."""
        return self.shared / max(1, min(self.of_one, self.of_other))


def overlaps(one: tuple[ParsedTexts, Bools], other: tuple[ParsedTexts, Bools]) -> tuple[Overlap, Overlap]:
    """Compute the exact values that sketches estimate, for two texts with some passages left out.

    For runs of tokens, then for figures, of which each occurrence counts.
    """
    (parsed, left_out), (parsed_other, left_out_of_other) = one, other
    ((runs, figures),) = parsed.core.overlap(
        left_out.tobytes(), parsed_other.core, left_out_of_other.tobytes()
    )
    return Overlap(*runs), Overlap(*figures)

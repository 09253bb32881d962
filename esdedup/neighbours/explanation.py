"""The explanation of why two texts are neighbours or not, stage by stage."""

import enum
from typing import Literal

import pydantic

from esdedup.text.left_out import LeftOut


class Rule(enum.StrEnum):
    """The rule that decided whether two texts are near each other, worded in `reading/verdict.py`."""

    NO_FINGERPRINT = "no_fingerprint"
    EQUAL = "equal"
    NOTHING_IN_COMMON = "nothing_in_common"
    WITHIN_DISTANCE = "within_distance"
    RESEMBLE = "resemble"
    # The shorter text is an excerpt of the other.
    EXCERPT = "excerpt"
    # The shorter text is a part of the other, but too small to join the other.
    PART = "part"
    # The later text is a version of the same article.
    VERSION = "version"
    UNLIKE = "unlike"
    # The texts resemble each other enough, but their figures differ.
    OTHER_FIGURES = "other_figures"
    # The texts are the same form, filled in with different names.
    OTHER_NAMES = "other_names"


NEAR = frozenset({Rule.EQUAL, Rule.WITHIN_DISTANCE, Rule.RESEMBLE, Rule.EXCERPT, Rule.VERSION})
"""The rules by which the second text joins the first."""


class Representative(pydantic.BaseModel, frozen=True):
    """A representative by which a text is found."""

    # 16 hex digits.
    simhash: str
    # The kind of representative: of a sentence, of the wording, or of the heaviest words. None if unknown,
    # because it was computed when other passages were omitted.
    kind: Literal["sentence", "minhash", "words"] | None
    # The normalised passage; words are listed by descending weight. None if unknown, and for a minhash, which
    # does not represent a single passage.
    passage: str | None


class Text(pydantic.BaseModel, frozen=True):
    """One of the two texts."""

    # The number of letters and digits.
    letters: int
    # The boilerplate that is omitted today; None if the whole text is compared.
    left_out: LeftOut | None
    # Whether the compared signature (or lack of a signature) is today's, and not the signature with
    # which the text was assigned.
    is_todays: bool
    # None if the text has, or had when it was assigned, too few letters or no words.
    fingerprint: str | None
    # Distinct representatives; empty if the text has no fingerprint.
    representatives: tuple[Representative, ...]


class Pair(pydantic.BaseModel, frozen=True):
    """A representative of each text, by position from 0, and the number of bits in which the two differ."""

    one: int
    other: int
    distance_bits: int


class WholeTextComparison(pydantic.BaseModel, frozen=True):
    """The comparison of two whole texts. Shares are from 0 to 1."""

    # Estimated from the sketches; the decision is based on this value.
    resemblance: float
    # All exact values are counted in the texts; None if a text is not available.
    exact_resemblance: float | None
    # The resemblance (inclusive) that texts of this length need to agree, and to join a root.
    needed: float
    needed_for_root: float
    # The number of figures that the text with fewer figures has and the other text lacks: the estimate, the
    # exact number, and the maximum (inclusive).
    replaced: float
    exact_replaced: int | None
    replaceable: int
    # Whether the texts are the same form, filled in with different names; such texts never agree.
    is_form: bool
    # The share of the smaller text that is in the larger text, estimated and counted, and the share
    # (inclusive) that an excerpt needs.
    contained: float
    exact_contained: float | None
    contained_needed: float
    # The size of the smaller text divided by that of the larger text, and the ratio (inclusive) that an
    # excerpt needs.
    size: float
    size_needed: float
    agree: bool
    # Whether the second text may join a cluster whose root is the first.
    may_join: bool
    # Whether the smaller text is a part of the larger, and large enough for a part.
    is_part: bool

    @property
    def missed_by(self) -> float:
        """The resemblance that is missing for the texts to agree; 0 if they resemble each other enough."""
        return max(0.0, self.needed - self.resemblance)


class Explanation(pydantic.BaseModel, frozen=True):
    """Why two texts would or would not share a cluster if there were no other texts."""

    # The label of the profile.
    profile: str
    one: Text
    other: Text
    # The maximum distance (inclusive) at which two representatives count as common.
    max_distance_bits: int
    # The minimum number of letters and digits in a text with a fingerprint.
    min_letters: int
    # The pairs of representatives within `max_distance_bits`, nearest first.
    pairs: tuple[Pair, ...]
    # The nearest pair at any distance; None if a text has no fingerprint.
    nearest: Pair | None
    # None if a text has no fingerprint, or the profile does not compare whole texts.
    whole_texts: WholeTextComparison | None
    rule: Rule
    # Whether the second text joins the first, or shares its node.
    near: bool
    # Whether the second text may join a cluster whose root is the first. If the two are not near each other,
    # the cluster must also contain a third text that is near the second.
    may_join: bool

"""An explanation of why two texts are neighbours or not, stage by stage."""

import enum
from typing import Literal

import pydantic

from esdedup.text.left_out import LeftOut


class Rule(enum.StrEnum):
    """The rule that decided whether two texts are near each other: `reading/verdict.py` words them."""

    NO_FINGERPRINT = "no_fingerprint"
    EQUAL = "equal"
    NOTHING_IN_COMMON = "nothing_in_common"
    WITHIN_DISTANCE = "within_distance"
    RESEMBLE = "resemble"
    # The shorter text is an excerpt of the other; or a part, which is too small to join.
    EXCERPT = "excerpt"
    PART = "part"
    # The later text is a version of the same article.
    VERSION = "version"
    UNLIKE = "unlike"
    # They resemble each other enough, but for their figures.
    OTHER_FIGURES = "other_figures"
    # They are one form, filled in with other names.
    OTHER_NAMES = "other_names"


NEAR = frozenset({Rule.EQUAL, Rule.WITHIN_DISTANCE, Rule.RESEMBLE, Rule.EXCERPT, Rule.VERSION})
"""The rules by which the second text joins the first."""


class Representative(pydantic.BaseModel, frozen=True):
    """One of the simhashes by which a text is found."""

    # 16 hex digits.
    simhash: str
    # What it was made from: a sentence, a minhash of the wording, or the heaviest words. None if that is not
    # known: it was made when other passages were left out.
    kind: Literal["sentence", "minhash", "words"] | None
    # The normalised passage; words are listed by falling weight. None if that is not known, and for a
    # minhash, which stands for no single place in the text.
    passage: str | None


class Text(pydantic.BaseModel, frozen=True):
    """One of the two texts."""

    # How many letters and digits it has.
    letters: int
    # What is left out of it today as boilerplate; None if it is compared whole.
    left_out: LeftOut | None
    # Whether it is compared by today's signature, or today's lack of one. If not, by that with which it was
    # assigned, or the lack of one.
    is_todays: bool
    # None if the text has too few letters, or no words; or had too few when it was assigned.
    fingerprint: str | None
    # Each simhash once; empty if the text has no fingerprint.
    representatives: tuple[Representative, ...]


class Pair(pydantic.BaseModel, frozen=True):
    """A representative of each text, by their positions from 0, and the bits in which they differ."""

    one: int
    other: int
    distance_bits: int


class WholeTextComparison(pydantic.BaseModel, frozen=True):
    """How two whole texts compare. Shares are from 0 to 1."""

    # Estimated from the sketches; the decision rests on this.
    resemblance: float
    # All exact values are counted in the texts; None if one of these is not available.
    exact_resemblance: float | None
    # The resemblance (inclusive) that texts of this length need to agree, and to join a root.
    needed: float
    needed_for_root: float
    # How many figures of the text that has fewer are not in the other, estimated and counted, and how many
    # (inclusive) may be.
    replaced: float
    exact_replaced: int | None
    replaceable: int
    # Whether they are one form, filled in with other names: then they never agree.
    is_form: bool
    # The share of the smaller text that is in the other, estimated and counted, and the share (inclusive)
    # that an excerpt needs.
    contained: float
    exact_contained: float | None
    contained_needed: float
    # The size of the smaller text as a share of the other's, and the one (inclusive) that an excerpt needs.
    size: float
    size_needed: float
    agree: bool
    # Whether one may join a cluster whose root is the other.
    may_join: bool
    # Whether the smaller one is a part of the other, whatever its size.
    is_part: bool

    @property
    def missed_by(self) -> float:
        """How much resemblance is missing for the two to agree by it; 0 if nothing is."""
        return max(0.0, self.needed - self.resemblance)


class Explanation(pydantic.BaseModel, frozen=True):
    """Why two texts would or would not share a cluster if there were no others."""

    # The label of the profile.
    profile: str
    one: Text
    other: Text
    # The largest distance at which two representatives count as in common, inclusive.
    max_distance_bits: int
    # A text with fewer letters and digits has no fingerprint.
    min_letters: int
    # The pairs of representatives within that distance, the nearest first.
    pairs: tuple[Pair, ...]
    # The nearest pair at any distance; None if a text has no fingerprint.
    nearest: Pair | None
    # None if a text has no fingerprint, or the profile does not compare whole texts.
    whole_texts: WholeTextComparison | None
    rule: Rule
    # Whether the second text joins the first, or shares its node.
    near: bool
    # Whether the second may join a cluster whose root is the first. If the two are not near each
    # other, the cluster must also have a third text that is near the second.
    may_join: bool

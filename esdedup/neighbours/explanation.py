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
    CONTAINED = "contained"
    # Texts that a root contains may have nothing in common with each other, so the second does not join.
    IN_THE_FIRST = "in_the_first"
    UNLIKE = "unlike"


NEAR = frozenset({Rule.EQUAL, Rule.WITHIN_DISTANCE, Rule.RESEMBLE, Rule.CONTAINED})
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
    # Whether it is compared by the signature that it has today, or has none. If not, as it was decided: by
    # another one, or without any.
    is_todays: bool
    # None if the text has too few letters, or no words; or if it had when it was decided about it.
    fingerprint: str | None
    # Each simhash once; empty if the text has no fingerprint.
    representatives: tuple[Representative, ...]
    # The share of its sketch that runs with a number account for, 0 to 1. None if the profile has no
    # sketches, or one of the texts has no fingerprint.
    number_share: float | None


class Pair(pydantic.BaseModel, frozen=True):
    """A representative of each text, by their positions from 0, and the bits in which they differ."""

    one: int
    other: int
    distance_bits: int


class WholeTextComparison(pydantic.BaseModel, frozen=True):
    """How two whole texts compare. Shares are from 0 to 1."""

    # Estimated from the sketches; the decision rests on this.
    resemblance: float
    # Counted in the texts; None if one of them is not available.
    exact_resemblance: float | None
    # Counted over runs without a number; None also if neither text has such runs.
    exact_resemblance_of_words: float | None
    # The resemblance (inclusive) that texts of this length need to agree, and to join a root.
    needed: float
    needed_for_root: float
    # The share of the smaller text that is in the other, estimated and counted.
    contained: float
    exact_contained: float | None
    # The share (inclusive) from which the smaller text counts as contained, and whether the lengths
    # of both texts are such that containment counts.
    contained_needed: float
    contained_counts: bool
    agree: bool
    # Whether the second may join a cluster whose root is the first.
    may_join: bool


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

"""When two whole texts agree: the second test of the profile `verified`, after a representative in common."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.fingerprint.signature import Signatures
from esdedup.fingerprint.sketch import resemblance


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreement:
    """The rules by which two texts agree, judged by their sketches and lengths.

    Two texts agree if they resemble each other enough; shorter texts need more resemblance. Two short texts
    also agree if one is contained in the other, such as a bulletin in its longer version.

    Raises:
        SettingError: A threshold lies outside 0 to 1, or a count below 1.
    """

    # How many times a run of tokens with a number counts in the sketch; from 1.
    number_weight: int = 5
    # The resemblance (inclusive, 0 to 1) that texts need: the least as their length grows without
    # limit, and the most.
    least_resemblance: float = 0.5
    most_resemblance: float = 0.75
    # Texts need the most if the shorter one has up to so many letters and digits. From there on, what
    # exceeds the least falls as one over the length.
    short_letters: int = 150
    # How much less resemblance to the root of a cluster suffices to join it.
    root_slack: float = 0.15
    # A text is contained in another if at least this part of it (inclusive) is in the other, ...
    least_contained: float = 0.93
    # ... both have at most so many letters and digits (inclusive), ...
    contained_letters: int = 300
    # ... and they resemble each other at least so much (inclusive): neither is many times the other.
    contained_resemblance: float = 0.25
    # The number of nodes, made within the retention, that are indexed under one representative; further
    # nodes are not.
    max_postings: int = 64

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise SettingError(f"{field.name} is {value}; it must be at least 1")
            if field.type is float and not 0 <= value <= 1:
                raise SettingError(f"{field.name} is {value}; it must be from 0 to 1")

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts agree, row by row: bool ``(n,)``. Symmetric."""
        return Comparison.of(one, other, self).agree

    def may_join(self, texts: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Return which texts may join the cluster of a root, row by row: bool ``(n,)``.

        Less resemblance suffices than to agree, since the text also agrees with a member of the cluster.
        A text that contains the root may join it, but not one that the root contains: two texts that a
        root contains may have nothing in common.
        """
        return Comparison.of(texts, roots, self).may_join


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of pairs of texts, row by row: ``(n,)`` each."""

    # Estimated, 0 to 1.
    resemblance: npt.NDArray[np.float64]
    # The resemblance (inclusive) that texts of this length need to agree.
    needed: npt.NDArray[np.float64]
    # The part of the smaller text that is in the other, estimated, 0 to 1.
    contained: npt.NDArray[np.float64]
    # Whether both are short enough for containment to count.
    is_short: npt.NDArray[np.bool_]
    agree: npt.NDArray[np.bool_]
    may_join: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, one: Signatures, other: Signatures, rules: Agreement) -> "Comparison":
        """Compare signatures, ``(n,)`` each, row by row."""
        similarity = resemblance(one["sketch"], other["sketch"])
        shorter = np.maximum(np.minimum(one["letters"], other["letters"]), 1)
        longer = np.maximum(one["letters"], other["letters"])
        excess = (rules.most_resemblance - rules.least_resemblance) * rules.short_letters / shorter
        needed = np.minimum(rules.most_resemblance, rules.least_resemblance + excess)
        runs = one["runs"].astype(np.float64) + other["runs"]
        fewer_runs = np.maximum(np.minimum(one["runs"], other["runs"]), 1)
        # With J = shared / (runs - shared), shared is J * runs / (1 + J).
        contained = np.minimum(similarity * runs / (1 + similarity) / fewer_runs, 1.0)
        is_short = longer <= rules.contained_letters
        is_contained = (
            is_short & (contained >= rules.least_contained) & (similarity >= rules.contained_resemblance)
        )
        return cls(
            resemblance=similarity,
            needed=needed,
            contained=contained,
            is_short=is_short,
            agree=(similarity >= needed) | is_contained,
            # Texts that contain the root have it in common; texts that it contains may share nothing.
            may_join=(similarity >= needed - rules.root_slack)
            | (is_contained & (other["runs"] <= one["runs"])),
        )

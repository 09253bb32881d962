"""When two whole texts agree: the second look of the profile `verified`."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.fingerprint.signature import Signatures
from esdedup.fingerprint.sketch import resemblance


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreement:
    """The rules by which two texts agree, from their sketches and lengths.

    Two texts agree when they resemble each other enough; the shorter they are, the more. Of two short
    texts one may also be contained in the other: a bulletin and its longer version.

    Raises:
        SettingError: A threshold lies outside 0 to 1, or a count below 1.
    """

    # How often a run with a number counts in the sketch.
    number_weight: int = 5
    # The resemblance (inclusive) that two texts of endless length need, and at most.
    least_resemblance: float = 0.5
    most_resemblance: float = 0.75
    # Up to so many letters and digits (the shorter text's) the most is needed; from there on it falls
    # towards the least as one over the length.
    short_letters: int = 150
    # So much less suffices towards the root of the cluster.
    root_slack: float = 0.15
    # The part of the smaller text (inclusive) that must be in the other to count as contained, ...
    least_contained: float = 0.93
    # ... where both have so many letters and digits (inclusive) at most, ...
    contained_letters: int = 300
    # ... and resemble each other by so much (inclusive): one is not many times the other.
    contained_resemblance: float = 0.25
    # When so many nodes made within the retention are indexed under one representative, no more are.
    max_postings: int = 64

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise SettingError(f"{field.name} is {value}; it must be at least 1")
            if field.type is float and not 0 <= value <= 1:
                raise SettingError(f"{field.name} is {value}; it must be from 0 to 1")

    def agree(self, one: Signatures, other: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which pairs of texts agree, row by row: bool ``(n,)``. Symmetric."""
        return Comparison.of(one, other, self).agree

    def may_join(self, texts: Signatures, roots: Signatures) -> npt.NDArray[np.bool_]:
        """Tell which texts may join the cluster of a root, row by row: bool ``(n,)``.

        Less resemblance suffices than to agree, since a member resembles another one that is there too.
        But of a short text and a longer one that contains it only the longer one may join the other:
        two that a root contains need have nothing in common.
        """
        return Comparison.of(texts, roots, self).may_join


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """What decides whether pairs of texts agree, each ``(n,)``."""

    # Estimated, float64, 0 to 1.
    resemblance: npt.NDArray[np.float64]
    # What the pair's length asks for, float64.
    needed: npt.NDArray[np.float64]
    # The part of the smaller text that is in the other, estimated, float64.
    contained: npt.NDArray[np.float64]
    # Whether the longer one has few enough letters to count as containing.
    is_short: npt.NDArray[np.bool_]
    agree: npt.NDArray[np.bool_]
    may_join: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, one: Signatures, other: Signatures, rules: Agreement) -> "Comparison":
        """Compare texts row by row."""
        alike = resemblance(one["sketch"], other["sketch"])
        shorter = np.maximum(np.minimum(one["letters"], other["letters"]), 1)
        longer = np.maximum(one["letters"], other["letters"])
        more = (rules.most_resemblance - rules.least_resemblance) * rules.short_letters / shorter
        needed = np.minimum(rules.most_resemblance, rules.least_resemblance + more)
        runs = one["runs"].astype(np.float64) + other["runs"]
        fewer_runs = np.maximum(np.minimum(one["runs"], other["runs"]), 1)
        # Of J = shared / (all - shared).
        contained = np.minimum(alike * runs / (1 + alike) / fewer_runs, 1.0)
        is_short = longer <= rules.contained_letters
        is_contained = (
            is_short & (contained >= rules.least_contained) & (alike >= rules.contained_resemblance)
        )
        return cls(
            resemblance=alike,
            needed=needed,
            contained=contained,
            is_short=is_short,
            agree=(alike >= needed) | is_contained,
            # All that contain the root have it in common; what it contains need have nothing.
            may_join=(alike >= needed - rules.root_slack) | (is_contained & (other["runs"] <= one["runs"])),
        )

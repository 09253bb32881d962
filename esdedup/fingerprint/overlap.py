"""The exact overlap of two whole texts, which sketches only estimate."""

import dataclasses

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
    def of(
        cls, points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], *, number_weight: int
    ) -> "Overlap":
        """Compare two texts; each must have a letter or digit.

        Args:
            points: Of the two texts, from `normal_points`.
            kinds: The `classes` of the points.
            number_weight: How many times a run with a number counts.
        """
        one, other = _distinct_runs(Tokens.of(points, kinds))
        words, numbers = (_count_shared(one, other, with_number=kind) for kind in (False, True))
        sizes = words + number_weight * numbers
        shared, of_one, of_other = sizes.tolist()
        shared_words, words_of_one, words_of_other = words.tolist()
        all_words = words_of_one + words_of_other - shared_words
        shares = number_weight * numbers[1:] / sizes[1:]
        return cls(
            resemblance=shared / (of_one + of_other - shared),
            resemblance_of_words=shared_words / all_words if all_words else None,
            contained=shared / min(of_one, of_other),
            number_shares=(float(shares[0]), float(shares[1])),
        )


def _distinct_runs(tokens: Tokens) -> list[_Runs]:
    """Return the distinct runs of each text, and whether each run contains a number."""
    runs = tokens.runs(units=LONGEST_RUN_UNITS, starts=tokens.starts_of_texts, stops=tokens.ends)
    have_number = tokens.have_number(runs)
    ends = runs.counts.cumsum()
    distinct = []
    for start, end in zip(ends - runs.counts, ends, strict=True):
        hashes, first = np.unique(runs.hashes[start:end], return_index=True)
        distinct.append((hashes, have_number[start:end][first]))
    return distinct


def _count_shared(one: _Runs, other: _Runs, *, with_number: bool) -> npt.NDArray[np.int64]:
    """Count runs with a number, or those without: the shared ones, those of one, and those of the other."""
    ours, theirs = (hashes[have_number == with_number] for hashes, have_number in (one, other))
    shared = np.intersect1d(ours, theirs, assume_unique=True)
    return np.array([len(shared), len(ours), len(theirs)], np.int64)

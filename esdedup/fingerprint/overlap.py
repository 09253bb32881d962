"""What two whole texts have in common, exactly: for a pair at a time, where both are at hand."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.text.tokens import LONGEST_RUN_UNITS, Tokens

_Runs = tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Overlap:
    """What a sketch estimates, counted: shares of runs of tokens, 0 to 1.

    Runs with a number count several times, as they do in a sketch.
    """

    # The part of the runs of both, taken together, that both have.
    resemblance: float
    # The same of the runs without a number; None where neither text has any.
    resemblance_of_words: float | None
    # The part of the smaller text that is in the other one.
    contained: float
    # Of each text, how much of it is runs with a number.
    number_shares: tuple[float, float]

    @classmethod
    def of(
        cls, points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], *, number_weight: int
    ) -> "Overlap":
        """Compare the two texts in what `normal_points` returns, whose `classes` are `kinds`.

        Both must have a letter or digit.
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
    """Return of each text its runs, and which of them have a number."""
    runs = tokens.runs(units=LONGEST_RUN_UNITS, starts=tokens.starts_of_texts, stops=tokens.ends)
    have_number = tokens.have_number(runs)
    ends = runs.counts.cumsum()
    distinct = []
    for start, end in zip(ends - runs.counts, ends, strict=True):
        hashes, first = np.unique(runs.hashes[start:end], return_index=True)
        distinct.append((hashes, have_number[start:end][first]))
    return distinct


def _count_shared(one: _Runs, other: _Runs, *, with_number: bool) -> npt.NDArray[np.int64]:
    """Count the runs of a kind that both texts have, those of one, and those of the other."""
    mine, theirs = (hashes[have_number == with_number] for hashes, have_number in (one, other))
    shared = np.intersect1d(mine, theirs, assume_unique=True)
    return np.array([len(shared), len(mine), len(theirs)], np.int64)

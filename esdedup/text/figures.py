"""Which passages say something by their numbers, and which only when they were shown.

Around an article stand dates, times and counters, which change from page to page: `Posted 2026-11-22 07:30`,
`Comments (23)`. All other numbers are figures: `Net 26.0 mln vs 24.1 mln`.
"""

import functools

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import JOINER, NUMBER, TOKEN_SHIFT, classes

# `22.11.2026` has ten; of a longer number only the beginning is read.
_MOST_CHARACTERS = 12
_YEAR_DIGITS = 4
_CENTURIES = (19, 20)
# A date in one number has this many points.
_DATE_POINTS = 2
# `07:30` and `07:30:59`: so many characters from the first colon on, three for each.
_TIME_LENGTHS = (3, 6)
_LAST_HOUR_TENS, _LAST_MINUTE_TENS = 2, 5
# Year, month, day, hour, minute and second: in Chinese and Japanese, and in Korean.
_UNITS_OF_TIME = "年月日时分秒년월일시분초"
# A day or month has few digits; parts of a date are so many tokens apart at most, with a name or a unit
# between them, and so many stand beside the year or the time: `22 November 2026`, `11-22 07:30`.
_MOST_DAY_DIGITS = 2
_NEAR_TOKENS = 2
_MOST_DAY_PARTS = 2

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def have_figures(
    points: npt.NDArray[np.uint32], starts: Ints, *, tokens: Ints, passages: Ints, passage_count: int
) -> Bools:
    """Return which passages have figures: bool ``(passage_count,)``.

    Args:
        points: Of the texts, with a separator after each.
        starts: The positions where the numbers of all passages begin, ``(m,)``, ascending.
        tokens: The places of these numbers among all tokens, ``(m,)``.
        passages: The passage of each number, ``(m,)``.
        passage_count: How many passages there are.
    """
    are_dates, are_short = _dates(points, starts)
    near = (np.diff(tokens) <= _NEAR_TOKENS) & (np.diff(passages) == 0)
    for _ in range(_MOST_DAY_PARTS):
        are_dates[:-1] |= are_short[:-1] & near & are_dates[1:]
        are_dates[1:] |= are_short[1:] & near & are_dates[:-1]
    return np.bincount(passages[~are_dates], minlength=passage_count) > 0


def _dates(points: npt.NDArray[np.uint32], starts: Ints) -> tuple[Bools, Bools]:
    """Return which numbers are dates, times or counters by themselves, and which may be a day or a month."""
    signs = points.take(starts[:, None] + np.arange(_MOST_CHARACTERS + 1), mode="clip")
    roles = classes().take(signs) >> TOKEN_SHIFT
    are_digits, are_joiners = roles == NUMBER, roles == JOINER
    # A sign belongs to a number only between two digits.
    are_joiners[:, :-1] &= are_digits[:, 1:]
    are_own = np.logical_and.accumulate(are_digits | are_joiners, axis=1)
    are_own[:, -1] = False
    rows, lengths = np.arange(len(starts)), are_own.sum(axis=1)
    are_colons = are_own & (signs == ord(":"))
    point_counts, colon_counts, digit_counts = (
        each.sum(axis=1) for each in (are_own & (signs == ord(".")), are_colons, are_own & are_digits)
    )
    digits = _digits().take(signs)
    are_plain = digit_counts == lengths
    are_years = are_plain & (lengths == _YEAR_DIGITS) & np.isin(digits[:, 0] * 10 + digits[:, 1], _CENTURIES)
    hour_digits = are_colons.argmax(axis=1)
    rest = lengths - hour_digits
    are_times = (hour_digits == 1) | ((hour_digits == 2) & (digits[:, 0] <= _LAST_HOUR_TENS))
    are_times &= np.isin(rest, _TIME_LENGTHS) & (colon_counts * _TIME_LENGTHS[0] == rest)
    are_times &= digits[rows, hour_digits + 1] <= _LAST_MINUTE_TENS
    before, after = points[np.maximum(starts - 1, 0)], signs[rows, lengths]
    are_counters = are_plain & (before == ord("(")) & (after == ord(")"))
    have_units = np.isin(after, [ord(unit) for unit in _UNITS_OF_TIME])
    are_dates = are_years | are_times | (point_counts == _DATE_POINTS) | have_units | are_counters
    return are_dates, are_plain & (lengths <= _MOST_DAY_DIGITS)


@functools.cache
def _digits() -> npt.NDArray[np.int64]:
    """Return the value of each decimal digit, 0 for other code points: int64 ``(0x110000,)``."""
    digits = np.zeros(len(classes()), np.int64)
    numbers = np.flatnonzero(classes() >> TOKEN_SHIFT == NUMBER)
    digits[numbers] = [int(chr(number)) for number in numbers.tolist()]
    return digits

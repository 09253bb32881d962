"""When an article counts as published: at its own date if that can be believed, else at its arrival. Pure.

Dates decide what expires, so those that cannot be right are counted, and the first is explained.
"""

from collections.abc import Callable
from datetime import timedelta

from esdedup.forest.model import NO_TIME
from esdedup.times import DAY_MS, time_ms

# Clocks and time zones differ by up to a day; the forest's time tolerates the same.
_MAX_AHEAD_MS = DAY_MS
# Old files are fed without `backfill` too, and most archives are younger. Older dates are mostly those of
# unset fields: the years 1, 1900 and 1970.
_MAX_AGE_MS = timedelta(days=3_653) // timedelta(milliseconds=1)
# Seconds since 1970 that are taken for milliseconds lie in it, until the year 2054.
_JANUARY_1970_MS = range(31 * DAY_MS)
_LONGEST_FORM = 40
_UNDERSTOOD = (
    "ISO 8601, dates as in mails and feeds (Sat, 21 Nov 2026 08:00:00 GMT) and milliseconds since 1970 are "
    "understood; with other dates, clusters do not expire when they should"
)


def published_ms(dated_ms: int | None, *, arrived_ms: int, backfill: bool) -> int | None:
    """Return when an article counts as published, milliseconds since 1970; None if nothing is known.

    A date is not believed if it lies more than a day after the arrival, or on the first day of 1970, or,
    except in a backfill, more than ten years before the arrival. `arrived_ms` is the forest's time then;
    NO_TIME if it has none yet.
    """
    arrival = None if arrived_ms == NO_TIME else arrived_ms
    if dated_ms is None or arrival is None:
        return arrival
    oldest_ms = dated_ms if backfill else arrival - _MAX_AGE_MS
    is_unset = 0 <= dated_ms < DAY_MS
    return dated_ms if oldest_ms <= dated_ms <= arrival + _MAX_AHEAD_MS and not is_unset else arrival


def is_too_old(dated_ms: int | None, *, arrived_ms: int) -> bool:
    """Return whether an article's own date is believed only in a backfill."""
    live, backfilled = (
        published_ms(dated_ms, arrived_ms=arrived_ms, backfill=backfill) for backfill in (False, True)
    )
    return live != dated_ms == backfilled


class DateCheck:
    """Recognises articles without a date that can be right, and explains the first that has a wrong one."""

    def __init__(self, on_first: Callable[[str], None]) -> None:
        self._on_first: Callable[[str], None] | None = on_first

    def sees(self, name: str, value: object, *, field: str) -> bool:
        """Return whether an article is undated, by the value of its time field: None if it has none."""
        milliseconds = time_ms(value)
        is_undated = milliseconds is None or milliseconds in _JANUARY_1970_MS
        if is_undated and value is not None and self._on_first is not None:
            wrong = "cannot be read" if milliseconds is None else "lies in January 1970 (are these seconds?)"
            self._on_first(
                f"{name}: its date in {field!r}, of the form {_form(value)}, {wrong}. {_UNDERSTOOD}"
            )
            self._on_first = None
        return is_undated


def _form(value: object) -> str:
    """Return what a value looks like, without quoting it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return type(value).__name__
    letters = str(value)[:_LONGEST_FORM]
    return "".join("0" if each.isdecimal() else "a" if each.isalnum() else each for each in letters)

"""Decides when an article was published: at its own date if plausible, otherwise at its arrival. Pure."""

import re

from esdedup.forest.model import NO_TIME
from esdedup.times import DAY_MS

# Clocks and time zones differ by up to a day; the forest's time has the same tolerance.
_MAX_AHEAD_MS = DAY_MS
# Ten years: old articles are sometimes fed without `backfill`, but few archives go back further.
MAX_AGE_MS = 3_653 * DAY_MS
# Times from 1885 to 2054 in seconds since 1970 fall into this range if they are read as milliseconds.
_NEAR_1970_MS = range(-31 * DAY_MS, 31 * DAY_MS)
# Days since 1970: everything up to the epoch of Windows, which predates newspapers; then the epochs of SQL
# Server, of OLE, spreadsheets and other databases, of Mac OS, and of Unix.
_UNSET_DAYS = ((-(10**9), -134_774), (-79_257, -79_257), (-25_569, -25_567), (-24_107, -24_107), (-1, 0))
UNSET_MS = [range(first * DAY_MS, (last + 1) * DAY_MS) for first, last in _UNSET_DAYS]
"""The default dates of clocks and fields that were never set."""
_NUMBER = re.compile(r"\W*\d+(\.\d*)?\W*")
_LONGEST_FORM = 40
_MOST_BITS = 64
UNDERSTOOD = (
    "ISO 8601, dates as in emails and feeds (Sat, 21 Nov 2026 08:00:00 GMT) and milliseconds since 1970 are "
    "understood, as is the format in the field's mapping, such as epoch_second; with other dates, clusters "
    "do not expire when they should"
)


def judged(value: object, milliseconds: int | None) -> tuple[int | None, str]:
    """Return a plausible time and "", or None and why the value is implausible ("" if there is no value)."""
    if milliseconds is None or milliseconds == NO_TIME:
        wrong = "cannot be read"
    elif milliseconds in _NEAR_1970_MS and _NUMBER.fullmatch(str(value)):
        wrong = "lies near January 1970 (is it in seconds?)"
    elif milliseconds < UNSET_MS[-1].stop and any(milliseconds in each for each in UNSET_MS):
        wrong = "is the default of an unset clock"
    else:
        return milliseconds, ""
    has_value = value is not None and not (isinstance(value, str | list) and not value)
    return None, f"of the form {_form(value)}, {wrong}" if has_value else ""


def published_ms(dated_ms: int | None, *, arrived_ms: int, backfill: bool) -> int | None:
    """Return an article's time of publication in milliseconds since 1970; None if no arrival time is known.

    Returns the time of arrival if the date is missing, more than a day after the arrival or, without
    `backfill`, more than ten years before the arrival.
    """
    arrival = None if arrived_ms == NO_TIME else arrived_ms
    if dated_ms is None or arrival is None:
        return arrival
    oldest_ms = dated_ms if backfill else arrival - MAX_AGE_MS
    return dated_ms if oldest_ms <= dated_ms <= arrival + _MAX_AHEAD_MS else arrival


def _form(value: object) -> str:
    """Return the form of a value, such as 0000-00-00, without its content."""
    is_huge = isinstance(value, int) and value.bit_length() > _MOST_BITS
    if isinstance(value, bool) or is_huge or not isinstance(value, str | int | float):
        return type(value).__name__
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", str(value)[:_LONGEST_FORM]))

"""Times as milliseconds since 1970 (UTC), their formats, and time zones."""

import contextlib
import email.utils
import functools
import re
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from esdedup.errors import SettingError

DAY_MS = 86_400_000
# The default format of a date field.
DEFAULT_FORMAT = "strict_date_optional_time||epoch_millis"
_zone_names = functools.cache(zoneinfo.available_timezones)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
# A date as in emails and RSS, such as "Sat, 21 Nov 2026 08:00:00 GMT". `email.utils` alone is too lenient: it
# parses other strings as dates, and unknown or ambiguous zones as UTC.
_RFC_822 = re.compile(
    r"([A-Za-z]{3}, *)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(:\d\d)?( (GMT|UTC?|Z|[ECMP][DS]T|[+-]\d{4}))?"
)


def time_ms(value: object, zone: tzinfo = UTC) -> int | None:
    """Convert a time to whole milliseconds since 1970; return None for anything that is not a time.

    Accepts ISO 8601 and dates as in emails and RSS; milliseconds since 1970, as a number or as a string of at
    least 9 digits; dates and datetimes. Times without a zone are in `zone`.
    """
    if isinstance(value, str):
        text = value.strip()
        if text[4:5] != "-" and text.removeprefix("-").isdecimal() and len(text) > len("20260101"):
            return time_ms(int(text)) if len(text) < 20 else None
        try:
            is_mail = " " in text and _RFC_822.fullmatch(text)
            value = email.utils.parsedate_to_datetime(text) if is_mail else datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        return (aware - _EPOCH) // _MS
    if isinstance(value, date):
        return time_ms(datetime(value.year, value.month, value.day, tzinfo=zone))
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53:
        return int(value)
    return None


# Patterns of `java.time`: optional sections; and runs of one letter, quoted text, or other characters.
_OPTIONAL = re.compile(r"\[([^][]*)\]")
_PART = re.compile(r"(([A-Za-z])\2*)|'([^']*)'|(.)", re.DOTALL)
# The directives of `strptime` for the letters of `java.time`, or for runs of a letter.
_DIRECTIVES = dict(zip("yuMLdHhmsSaEXxZz", "YYmmdHIMSfpazzzz", strict=True))
_DIRECTIVES |= {"yy": "y", "uu": "y", "MMM": "b", "MMMM": "B", "EEEE": "A"}
# Every optional section doubles the number of patterns to try.
_MOST_OPTIONAL = 6
_MOST_BITS = 64


@functools.lru_cache
def time_reader(time_format: str | None) -> Callable[[Any], int | None]:
    """Return a parser for a format; None uses `time_ms`. For a list, the parser returns the earliest time."""
    readers = [time_ms] if time_format is None else [*map(_reader, time_format.split("||"))]

    def read(value: Any) -> int | None:
        if not isinstance(value, str) and not isinstance(value, int | float):
            if isinstance(value, list | tuple):
                return min((found for each in value if (found := read(each)) is not None), default=None)
            # Convert dates, including pandas and numpy types, as the Elasticsearch client serialises them.
            value = getattr(value, "isoformat", value.__str__)()
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            return None
        text = value if time_format is None or isinstance(value, str) else str(value)
        for each in readers:
            if (found := each(text)) is not None:
                return found
        return None

    return read


def _reader(name: str) -> Callable[[str], int | None]:
    """Return a parser for an Elasticsearch format or pattern; if unsupported, the parser returns None."""
    if unit_ms := {"epoch_millis": 1, "epoch_second": 1_000}.get(name):
        is_number = re.compile(r"-?\d{1,18}(\.\d*)?").fullmatch
        return lambda text: time_ms(int(Decimal(text) * unit_ms)) if is_number(text) else None
    if name.removeprefix("strict_").startswith(("date", "year", "iso")):
        # `time_ms` also accepts dates as in emails, which cannot be mistaken for these formats.
        short_ms = _reader("yyyy[-MM]")
        is_short = re.compile(r"-?\d+|.{7}").fullmatch
        return lambda text: short_ms(text) if is_short(text) else time_ms(text)
    patterns = ["yyyyMMdd['T'HHmmss[.SSS]X]" if name.startswith("basic_date") else name]
    if name.count("[") > _MOST_OPTIONAL:
        patterns = []
    while patterns and _OPTIONAL.search(patterns[0]):
        patterns = [_OPTIONAL.sub(kept, each, count=1) for kept in (r"\1", "") for each in patterns]

    def directive(part: re.Match[str]) -> str:
        known = _DIRECTIVES.get(part[1]) or _DIRECTIVES.get(part[2], "?")
        return f"%{known}" if part[1] else (part[3] or part[4] or "").replace("%", "%%")

    lengths = {_PART.sub(directive, each): len(each) for each in patterns}
    # `strptime` cannot parse the same part twice, and a date needs a year.
    lengths = {each: length for each, length in lengths.items() if _is_readable(re.findall("%[^%]", each))}

    def read(text: str) -> int | None:
        for each, length in lengths.items():
            # A string of digits alone could be split in several ways.
            if not text.isdigit() or len(text) == length:
                with contextlib.suppress(ValueError):
                    utc = re.sub("(GMT|UTC?)$", "+0000", text) if each.endswith("%z") else text
                    found = datetime.strptime(utc, each)
                    is_of_century = "%y" in each
                    return time_ms(found.replace(year=2_000 + found.year % 100) if is_of_century else found)
        return None

    return read


def _is_readable(directives: list[str]) -> bool:
    return len(directives) == len(set(directives)) and not {"%Y", "%y"}.isdisjoint(directives)


def iso(milliseconds: int, zone: tzinfo = UTC) -> str:
    """Format milliseconds since 1970 as ISO 8601 in a zone, or as a number if the year is not 1 to 9999."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, zone).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def zone_named(name: str) -> zoneinfo.ZoneInfo:
    """Return a time zone by its IANA name, such as Asia/Shanghai; raises `SettingError` if there is none."""
    if name not in _zone_names():
        raise SettingError(f"there is no time zone {name!r:.60}: use an IANA name such as Asia/Shanghai")
    return zoneinfo.ZoneInfo(name)

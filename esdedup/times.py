"""Times as milliseconds since 1970, UTC, and time zones."""

import email.utils
import functools
import re
import zoneinfo
from datetime import UTC, date, datetime, timedelta, tzinfo

from esdedup.errors import SettingError

DAY_MS = 86_400_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
# As in mails and RSS: "Sat, 21 Nov 2026 08:00:00 GMT". The library reads much else as a date.
_RFC_822 = re.compile(
    r"([A-Za-z]{3}, *)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(:\d\d)?( ([A-Z]{1,5}|[+-]\d{4}))?"
)


def time_ms(value: object, zone: tzinfo = UTC) -> int | None:
    """Convert a time to whole milliseconds since 1970; return None for anything that is not a time.

    Accepts ISO 8601 and dates as in mails and RSS, read in `zone` if they name none; milliseconds since 1970,
    as a number or a string of at least 9 digits; dates and datetimes.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if abs(value) < 2**53 else None
    if isinstance(value, str):
        text = value.strip()
        if text.removeprefix("-").isdecimal() and len(text) > len("20260101"):
            return time_ms(int(text)) if len(text) < 20 else None
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            value = _mail_date(text)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=zone)
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        return (aware - _EPOCH) // _MS
    return None


def _mail_date(text: str) -> datetime | None:
    try:
        return email.utils.parsedate_to_datetime(text) if _RFC_822.fullmatch(text) else None
    except ValueError:
        return None


def iso(milliseconds: int, zone: tzinfo = UTC) -> str:
    """Format milliseconds since 1970 as ISO 8601 in a zone; outside the years 1 to 9999, as a number."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, zone).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def from_iso(moment: str) -> datetime | None:
    """Read what `iso` has written; None if it is a number."""
    # Without the `T`, some of these numbers would be taken for dates.
    return datetime.fromisoformat(moment) if "T" in moment else None


def zone_named(name: str) -> zoneinfo.ZoneInfo:
    """Return a time zone by its IANA name, such as Asia/Shanghai; raises `SettingError` if there is none."""
    if name not in _zone_names():
        raise SettingError(f"there is no time zone {name!r:.60}: write it like Asia/Shanghai")
    return zoneinfo.ZoneInfo(name)


@functools.cache
def _zone_names() -> set[str]:
    return zoneinfo.available_timezones()

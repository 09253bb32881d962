"""When a visitor was here last, from a cookie that no script reads. Pure.

A visit lasts until half an hour has passed without a page. Until then, what is new is what arrived after the
visit before, however often pages are loaded.
"""

import dataclasses
import re
from datetime import UTC, datetime, timedelta

COOKIE = "esdedup_visit"
MAX_AGE = timedelta(days=90)
_PAUSE = timedelta(minutes=30)
# Seconds since 1970: the end of the visit before, if there was one, and the last page of this one.
_VALUE = re.compile(r"([0-9]{1,11})?-([0-9]{1,11})")


@dataclasses.dataclass(frozen=True)
class Visits:
    """The visit before this one, and this one."""

    # None: there was none.
    before: datetime | None
    now: datetime

    @classmethod
    def of(cls, cookie: str | None, now: datetime) -> "Visits":
        """Read the cookie of a visitor who is here now; one that makes no sense is none."""
        found = _VALUE.fullmatch(cookie or "")
        if found is None:
            return cls(None, now)
        before, last = (_moment(each) for each in found.groups())
        if last is None or last > now:
            return cls(None, now)
        return cls(last if now - last > _PAUSE else before, now)

    @property
    def cookie(self) -> str:
        """The value of the cookie after this page."""
        before = "" if self.before is None else int(self.before.timestamp())
        return f"{before}-{int(self.now.timestamp())}"


def _moment(seconds: str | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return None

"""Names of indices that contain the day of an article, as in Logstash: ``news-%{+yyyy.MM.dd}``. Pure."""

import re
from datetime import UTC, datetime

from esdedup.elastic.names import check_index_name
from esdedup.errors import SettingError

_DATE = re.compile(r"%\{\+([^{}]*)\}")
_PARTS = {"yyyy": "%Y", "YYYY": "%Y", "MM": "%m", "dd": "%d"}
_PART = re.compile(r"([A-Za-z])\1*")


class DatedName:
    """The name of an index, in which a date such as ``%{+yyyy.MM.dd}`` stands for an article's day in UTC."""

    def __init__(self, pattern: str) -> None:
        """Raise `SettingError` unless `pattern` gives a valid name for each day."""
        for each in _DATE.finditer(pattern):
            for part in _PART.finditer(each[1]):
                if part[0] not in _PARTS:
                    raise SettingError(
                        f"the date {each[0]!r} of the index may have yyyy, MM and dd, not {part[0]!r}"
                    )
        self._pattern = pattern
        self.is_dated = _DATE.search(pattern) is not None
        """Whether the name contains a date."""
        check_index_name(self.of(0))

    @property
    def every(self) -> str:
        """A pattern of indices that matches each of the names."""
        return _DATE.sub("*", self._pattern)

    def of(self, time_ms: int) -> str:
        """Return the name for an article of this time, in milliseconds since 1970."""
        if not self.is_dated:
            return self._pattern
        day = datetime.fromtimestamp(time_ms / 1000, UTC)
        return _DATE.sub(
            lambda found: _PART.sub(lambda part: day.strftime(_PARTS[part[0]]), found[1]), self._pattern
        )

"""Names of indices that contain the day of an article, as in Logstash: ``news-%{+yyyy.MM.dd}``. Pure."""

import re
from datetime import UTC, datetime

from esdedup.elastic.names import check_index_name
from esdedup.errors import SettingError

_DATE = re.compile(r"%\{\+((?:(yyyy|YYYY|MM|dd)(?!\2)|[^A-Za-z{}])+)\}")
_PARTS = {"yyyy": "%Y", "YYYY": "%Y", "MM": "%m", "dd": "%d"}
_PART = re.compile("|".join(_PARTS))


class DatedName:
    """The name of an index, in which a date such as ``%{+yyyy.MM.dd}`` stands for an article's day in UTC."""

    def __init__(self, pattern: str) -> None:
        """Raise `SettingError` unless `pattern` gives a valid name for each day."""
        if "%{" in _DATE.sub("*", pattern):
            raise SettingError("only dates such as %{+yyyy.MM.dd} are understood in the name of an index")
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
        day = datetime.fromtimestamp(time_ms / 1000, UTC)
        return _DATE.sub(
            lambda found: _PART.sub(lambda part: day.strftime(_PARTS[part[0]]), found[1]), self._pattern
        )

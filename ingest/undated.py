"""Counts articles without a date that can be right, where dates decide what expires. Pure."""

from collections.abc import Callable

from esdedup.times import DAY_MS, time_ms

# Seconds since 1970 that are taken for milliseconds lie in it, until the year 2054.
_JANUARY_1970_MS = range(31 * DAY_MS)
_LONGEST_FORM = 40
_UNDERSTOOD = (
    "ISO 8601, dates as in mails and feeds (Sat, 21 Nov 2026 08:00:00 GMT) and milliseconds since 1970 are "
    "understood; with other dates, clusters do not expire when they should"
)


class Undated:
    """Recognises articles without a date that can be right, and explains the first that has a wrong one."""

    def __init__(self, on_first: Callable[[str], None]) -> None:
        """Begin.

        Args:
            on_first: Called once, with a message about the first article whose date cannot be read, or lies
                in January 1970.
        """
        self._on_first: Callable[[str], None] | None = on_first

    def sees(self, name: str, value: object, *, field: str) -> bool:
        """Return whether an article is undated.

        Args:
            name: Its name in the message.
            value: Of its time field; None if it has none.
            field: The name of that field.
        """
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

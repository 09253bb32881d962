"""Intervals of time to count articles in. Pure."""

_MINUTE_MS = 60_000
_DAY_MS = 1_440 * _MINUTE_MS
# From a minute to four weeks.
_INTERVALS_MS = [
    minutes * _MINUTE_MS for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 40320)
]
# 1970-01-05 was a Monday.
_FIRST_MONDAY_MS = 4 * _DAY_MS

SHORTEST_MS = _INTERVALS_MS[0]


def interval_ms(span_ms: int, *, most_steps: int) -> int:
    """Return the shortest standard interval that gives few enough steps; for longer spans, whole minutes."""
    fitting = (each for each in _INTERVALS_MS if span_ms // each < most_steps)
    minutes = -(-(span_ms + 1) // (most_steps * _MINUTE_MS))
    return next(fitting, minutes * _MINUTE_MS)


def calendar_offset_ms(length_ms: int) -> int:
    """Return where intervals begin, so that hours and days are those of UTC, and weeks begin on Monday."""
    return _FIRST_MONDAY_MS % length_ms if length_ms % (7 * _DAY_MS) == 0 else 0

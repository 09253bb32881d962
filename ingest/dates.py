"""When an article counts as published: at its own date if that can be believed, else at its arrival. Pure."""

from datetime import timedelta

from esdedup.forest.model import NO_TIME
from esdedup.times import DAY_MS

# Clocks and time zones differ by up to a day; the forest's time tolerates the same.
_MAX_AHEAD_MS = DAY_MS
# Old files are fed without `backfill` too, and most archives are younger. Older dates are mostly those of
# unset fields: the years 1, 1900 and 1970.
_MAX_AGE_MS = timedelta(days=3_653) // timedelta(milliseconds=1)


def published_ms(dated_ms: int | None, *, arrived_ms: int, backfill: bool) -> int | None:
    """Return when an article counts as published, milliseconds since 1970; None if nothing is known.

    A date is not believed if it lies more than a day after the arrival, or on the first day of 1970, or,
    except in a backfill, more than ten years before the arrival.

    Args:
        dated_ms: The article's own date; None if it has none that can be read.
        arrived_ms: The forest's time at its arrival; NO_TIME if it has none yet.
        backfill: Whether old articles are expected.
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

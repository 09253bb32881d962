"""When an article counts as published; dates that cannot be right are counted, and explained once."""

from datetime import timedelta

import pytest
from esdedup.ingest.dates import DateCheck, published_ms

from esdedup.forest.model import NO_TIME
from esdedup.times import DAY_MS, time_ms

NOW_MS = time_ms("2026-11-21T08:00:00Z") or 0
TEN_YEARS_MS = timedelta(days=3_653) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("dated_ms", "live", "backfill"),
    [
        (NOW_MS - 60_000, True, True),
        (NOW_MS + DAY_MS, True, True),
        (NOW_MS + DAY_MS + 1, False, False),
        (time_ms("2099-01-01"), False, False),
        (NOW_MS - TEN_YEARS_MS, True, True),
        (NOW_MS - TEN_YEARS_MS - 1, False, True),
        (time_ms("1969-12-31T23:59:59Z"), False, True),
        # An unset clock, in any zone behind that of Greenwich.
        (0, False, False),
        (DAY_MS - 1, False, False),
        (DAY_MS, False, True),
        (time_ms("0001-01-01"), False, True),
    ],
)
def test_a_date_is_believed_or_the_arrival_counts(dated_ms: int, live: bool, backfill: bool) -> None:
    for is_backfill, is_believed in ((False, live), (True, backfill)):
        published = published_ms(dated_ms, arrived_ms=NOW_MS, backfill=is_backfill)
        assert published == (dated_ms if is_believed else NOW_MS)


def test_without_a_date_the_arrival_counts() -> None:
    assert published_ms(None, arrived_ms=NOW_MS, backfill=False) == NOW_MS
    # Before the forest has a time, even a date is one that it did not believe.
    assert published_ms(NOW_MS, arrived_ms=NO_TIME, backfill=True) is None


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("21.11.2026 8 Uhr", "of the form 00.00.0000 0 aaa, cannot be read"),
        (1_795_248_000, "of the form 0000000000, lies in January 1970 (are these seconds?)"),
        ("1795248000", "of the form 0000000000, lies in January 1970 (are these seconds?)"),
        (["x"], "of the form list, cannot be read"),
        (None, None),
    ],
)
def test_a_date_that_cannot_be_right(value: object, wrong: str | None) -> None:
    said: list[str] = []
    undated = DateCheck(said.append)
    assert undated.sees("f:1", value, field="date")
    assert undated.sees("f:2", value, field="date")
    if wrong is None:
        assert said == []
    else:
        (message,) = said
        assert message.startswith(f"f:1: its date in 'date', {wrong}. ISO 8601,")


@pytest.mark.parametrize("value", ["2026-11-21", "Sat, 21 Nov 2026 08:00:00 GMT", 1_795_248_000_000, -1])
def test_a_date_that_can_be_right(value: object) -> None:
    assert not DateCheck(pytest.fail).sees("f:1", value, field="date")

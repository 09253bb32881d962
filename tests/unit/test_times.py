from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from esdedup.times import time_ms


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T01:00:01.5+01:00", 1_500),
        ("1970-01-02", 86_400_000),
        ("1969-12-31T23:59:59Z", -1_000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 1_000),
        ("1 Jan 1970 01:00 +0100", 0),
        ("Wed, 31 Dec 1969 19:00:01 EST", 1_000),
        ("Thu, 32 Jan 1970 00:00:01 GMT", None),
        ("21.11.2026", None),
        ("3732-07-13T15:31:38", 55620142298000),
        (1_000, 1_000),
        ("1600000000000", 1_600_000_000_000),
        (1.5, 1),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (date(1970, 1, 2), 86_400_000),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (2**80, None),
        ("1" * 5_000, None),
        ([], None),
    ],
)
def test_times_are_read_in_every_accepted_form(value: object, milliseconds: int | None) -> None:
    assert time_ms(value) == milliseconds

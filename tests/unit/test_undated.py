"""Dates that cannot be right are counted, and explained once."""

import pytest
from esdedup.ingest.dates import DateCheck


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

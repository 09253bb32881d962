"""Passages are found again on other pages."""

import pytest

from esdedup.text.left_out import LocatedPassages


def hashes(text: str) -> list[int]:
    found: list[int] = LocatedPassages.of(text, max_length=10_000).passages.hashes.tolist()
    return found


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ("Posted 2026-11-22 07:30.", "Posted 2026-11-23 18:05.", True),
        (
            "12 comments on this page and 7 on the page before",
            "3 comments on this page and 1 on the page before",
            True,
        ),
        # A bulletin says by its numbers what there is to say.
        (
            "The province reported 12 new cases and 3 deaths.",
            "The province reported 0 new cases and 1 deaths.",
            False,
        ),
        ("Share this!", "SHARE  this.", True),
    ],
)
def test_numbers_tell_long_sentences_apart(one: str, other: str, are_equal: bool) -> None:
    assert (hashes(one) == hashes(other)) is are_equal

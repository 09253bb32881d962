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
        ("2026\u5e7411\u670822\u65e5 07:30", "2025\u5e741\u67082\u65e5 17:05", True),
        ("11-22 07:30 desk", "1-3 18:05 desk", True),
        ("Updated 22.11.2026", "Updated 23.12.2026", True),
        ("By Ann Lee | 22 Nov 2026 | Share", "By Ann Lee | 3 Nov 2027 | Share", True),
        ("Comments (23)", "Comments (4)", True),
        # Rows of tables, however short.
        ("Shr 73 cts vs 55", "Shr 74 cts vs 55", False),
        ("Net 26.0 mln", "Net 27.0 mln", False),
        ("Deaths: 3", "Deaths: 4", False),
        ("\u6b7b\u4ea13\u4f8b\u3002", "\u6b7b\u4ea14\u4f8b\u3002", False),
        ("Harbour 3, Rovers 2 on 22 Nov 2026", "Harbour 3, Rovers 1 on 22 Nov 2026", False),
        # Figures beside a passage are none of its own.
        ("Posted 2026-11-22\nNet 26.0 mln", "Posted 2025-01-02\nNet 26.0 mln", True),
        # A bulletin says by its numbers what there is to say.
        (
            "The province reported 12 new cases and 3 deaths.",
            "The province reported 0 new cases and 1 deaths.",
            False,
        ),
        ("Share this!", "SHARE  this.", True),
    ],
)
def test_figures_tell_passages_apart_and_dates_do_not(one: str, other: str, are_equal: bool) -> None:
    assert (hashes(one) == hashes(other)) is are_equal

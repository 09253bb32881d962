"""The benchmark of excerpts: cutting and changing texts, and the outcomes that it counts."""

import pytest

from benchmarks.excerpts import (
    AFTER,
    BEFORE,
    Fate,
    Stories,
    excerpt,
    with_another_figure,
    with_edits,
)
from tests import sample

ENGLISH = "One two, three four. Five 6 seven eight nine ten."
CHINESE = "渡轮将于星期一2026恢复通航。"


@pytest.mark.parametrize(
    ("text", "share", "position", "expected"),
    [
        (ENGLISH, 0.3, 0.0, "One two, three"),
        (ENGLISH, 0.4, 0.5, "four. Five 6 seven"),
        (ENGLISH, 0.3, 1.0, "eight nine ten"),
        (CHINESE, 0.5, 0.0, "渡轮将于星期"),
        (CHINESE, 0.5, 1.0, "一2026恢复通航"),
    ],
)
def test_excerpts_are_cut_between_words_and_chinese_characters(
    text: str, share: float, position: float, expected: str
) -> None:
    assert excerpt(text, share, position) == expected


def test_edits_are_spread_and_keep_figures() -> None:
    assert with_edits(ENGLISH, ["X"]) == "One two, three four. X 6 seven eight nine ten."
    assert with_edits(ENGLISH, ["X", "Y", "Z"]) == "One two, X four. Y 6 seven Z nine ten."
    assert with_edits(CHINESE, ["岛上"]) == "渡轮将于星岛上2026恢复通航。"


def test_a_figure_is_changed_if_there_is_one() -> None:
    assert with_another_figure("1, 2 and 9") == "1, 3 and 9"
    assert with_another_figure("none") is None


@pytest.mark.parametrize("order", [AFTER, BEFORE])
def test_outcomes_of_derived_texts_are_recognised(order: str) -> None:
    texts = {each["id"]: each["text"] for each in list(sample.articles(3))}
    stories = Stories("sample", texts)
    first, second, third = texts
    made = {first: texts[first] + "!", second: texts[first], third: "A ferry to an island runs again. " * 3}
    assert stories.fates(made, order) == [
        Fate(joined=True, linked=False, wrong=False),
        Fate(joined=False, linked=False, wrong=True),
        Fate(joined=False, linked=False, wrong=False),
    ]

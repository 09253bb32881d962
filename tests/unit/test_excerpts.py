"""The benchmark of excerpts: how texts are cut and changed, and what it counts."""

import re
from types import SimpleNamespace

import pytest

from benchmarks import detectors, excerpts, render
from benchmarks.articles import Articles
from benchmarks.excerpts import (
    AFTER,
    BEFORE,
    Fate,
    Stories,
    excerpt,
    of_round_ups,
    with_another_figure,
    with_edits,
)
from benchmarks.results import Measured, Result
from esdedup import Profile
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


def test_edits_are_spread_and_leave_figures_alone() -> None:
    assert with_edits(ENGLISH, ["X"]) == "One two, three four. X 6 seven eight nine ten."
    assert with_edits(ENGLISH, ["X", "Y", "Z"]) == "One two, X four. Y 6 seven Z nine ten."
    assert with_edits(CHINESE, ["岛上"]) == "渡轮将于星岛上2026恢复通航。"


def test_a_figure_is_changed_if_there_is_one() -> None:
    assert with_another_figure("1, 2 and 9") == "1, 3 and 9"
    assert with_another_figure("none") is None


@pytest.mark.parametrize("order", [AFTER, BEFORE])
def test_a_derived_text_is_joined_apart_or_wrong(order: str) -> None:
    texts = {each["id"]: each["text"] for each in list(sample.articles(3))}
    stories = Stories("sample", texts)
    first, second, third = texts
    made = {first: texts[first] + "!", second: texts[first], third: "A ferry to an island runs again. " * 3}
    assert stories.fates(made, order) == [
        Fate(joined=True, linked=False, wrong=False),
        Fate(joined=False, linked=False, wrong=True),
        Fate(joined=False, linked=False, wrong=False),
    ]


@pytest.mark.parametrize(
    ("linked", "expected"),
    [
        ((None, "a", None), Fate(joined=False, linked=True, wrong=False)),
        (("x", None, None), Fate(joined=False, linked=True, wrong=False)),
        ((None, "b", None), Fate(joined=False, linked=False, wrong=True)),
        ((None, None, None), Fate(joined=False, linked=False, wrong=False)),
    ],
)
@pytest.mark.parametrize("link", ["part_of", "has_part"])
def test_a_part_is_linked_to_its_story_or_wrongly(
    monkeypatch: pytest.MonkeyPatch, linked: tuple[str | None, ...], expected: Fate, link: str
) -> None:
    """`x` is made of `a`; as if each of `a`, `x` and `b` were linked with that."""
    roots, links = (
        {"a": "a", "made of a": "x", "b": "b"},
        {
            name: {"part_of": None, "has_part": None, link: root}
            for name, root in zip(("a", "made of a", "b"), linked, strict=True)
        },
    )
    monkeypatch.setattr(
        detectors,
        "assigned",
        lambda held, _: [SimpleNamespace(id=each, root=roots[each], **links[each]) for each in held],
    )
    assert Stories("set", {"a": "", "b": ""}).fates({"a": ""}, AFTER) == [expected]


def test_stories_that_a_round_up_joins_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two join the round-up, one is said to be a part of it, and two are one anyway."""
    made = "made of a b c d e"

    def assigned(held: Articles, _: Profile) -> list[SimpleNamespace]:
        joined = {"e": "d", **({"a": made, "b": made} if made in held else {})}
        part_of = {"c": made}
        return [
            SimpleNamespace(id=each, root=joined.get(each, each), part_of=part_of.get(each), has_part=None)
            for each in held
        ]

    monkeypatch.setattr(detectors, "assigned", assigned)
    counted = of_round_ups(Stories("set", dict.fromkeys("abcde", "")), BEFORE)
    assert (counted.counts, counted.of) == ({"together": 2, "joined": 2, "linked": 1}, 5)


def test_tables_have_kinds_as_rows_and_sets_as_columns() -> None:
    measured = Measured(on="", machine="", system="", versions={}, code="", took_s=1, seeds=1)
    rows = [
        {"set": name, "what": what, "share": share, "of": "9"}
        for name, what, share in (("zh_news", "one", "0.5"), ("ar", "one", "0.6"), ("ar", "other", "0.7"))
    ]
    kept = {"excerpts": Result(measured=measured, tables={excerpts.IN_SHORT: rows})}
    shown = render.quoted("<!-- results: excerpts-in-short -->\n<!-- end of results -->\n", kept)
    assert re.findall(r"^\|.*\|$", shown, re.MULTILINE) == [
        "|  | long Chinese news | Arabic news |",
        "|---|---|---|",
        "| one | 0.5 of 9 | 0.6 of 9 |",
        "| other |  | 0.7 of 9 |",
    ]

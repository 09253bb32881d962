"""Detecting placeholders among articles."""

import pytest

from esdedup.boilerplate.placeholders import PlaceholderWatch

WALL = "You have read all of your free articles this month. Subscribe for one dollar a week to read on."
UNRELATED = [
    "Ferry to the islands sails again",
    "Council argues about parking fees",
    "Goalkeeper breaks two fingers",
    "Wheat prices fall after wet summer",
    "Museum buys rare clock",
    "Tunnel closed until Sunday",
]
FLASH = "The central bank raises its interest rate by half a point to five percent, more than expected."
EDITED = [
    "Central bank raises rate",
    "Rate raised to five percent",
    "Bank surprises with half a point",
    "Interest rate: five percent",
    "More than expected: rate at five percent",
    "Central bank: half a point more",
]


def noticed(text: str, titles: list[str], sites: list[str] | None = None) -> list[bool]:
    watch = PlaceholderWatch()
    names = sites or [f"{at}.example" for at in range(len(titles))]
    return [
        watch.add("root", text, title=title, site=site) for title, site in zip(titles, names, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "titles", "expected"),
    [
        (WALL, UNRELATED, True),
        ("[Removed]", UNRELATED, True),
        (
            "本内容仅限会员阅读",
            ["渡轮重新启航", "市议会讨论停车费", "门将手指骨折", "小麦价格下跌", "博物馆买下古钟"],
            True,
        ),
        # Not placeholders: a news flash that each site retitles, repeats of one title, and too few titles.
        (FLASH, EDITED, False),
        (WALL, UNRELATED[:1] * 50, False),
        (WALL, UNRELATED[:4], False),
    ],
)
def test_unrelated_titles_make_a_placeholder(text: str, titles: list[str], expected: bool) -> None:
    assert any(noticed(text, titles)) is expected
    assert not any(noticed(text, titles, ["one.example"] * len(titles)))


def test_a_placeholder_is_noticed_once() -> None:
    assert noticed(WALL, UNRELATED) == [False] * 4 + [True, False]


def test_only_the_latest_clusters_are_watched() -> None:
    watch = PlaceholderWatch(max_clusters=1)
    for at, title in enumerate(UNRELATED):
        assert not watch.add("one", WALL, title=title, site=f"{at}.example")
        assert not watch.add("other", WALL, title=title, site=f"{at}.example")
    assert watch.noticed == 0

"""Pins: what a person declares about passages counts more than what pages teach."""

import io
import json
from typing import Any

import pytest

from esdedup import VERIFIED, Pin, Pins, SettingError
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.pins import NO_PINS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.text.left_out import LocatedPassages
from esdedup.text.parsed import Passages

FOOTER = "The editors of this newspaper answer the questions of their readers every morning."
ITEM = "Follow us everywhere"


def omitted(
    texts: list[str],
    pins: Pins,
    sites: list[str | None] | None = None,
    boilerplate: Boilerplate | None = None,
) -> list[list[bool]]:
    """Return which passages of texts are left out, text by text."""
    boilerplate, of_texts = boilerplate or Boilerplate(), iter(sites or [None] * len(texts))
    found: list[list[bool]] = []

    def omit(passages: Passages, pages: Any) -> Any:
        result = boilerplate.omit(passages, pages, pins=pins, sites=of_texts)
        found.extend(result[passages.texts == text].tolist() for text in range(passages.text_count))
        return result

    Fingerprinter(VERIFIED).fingerprint(texts, omit=omit)
    return found


def article(number: int) -> str:
    name = "abcdefghijklmnopqrstuvwxyz"[number]
    return (
        f"In the town of {name} the council discussed what everybody had discussed for weeks. "
        f"Nobody {name} was surprised by what the mayor had to say about it in the end."
    )


def test_a_passage_is_found_as_fingerprints_cut_it() -> None:
    """Whatever its markup, case, width and dates; and each of several."""
    pins = Pins.of(
        [
            Pin(boilerplate=f"<p>COPYRIGHT 2019 Ａ&amp;Ｂ, all rights.</p> {FOOTER}"),
            Pin(boilerplate="版權所有。"),
        ]
    )
    text = f"{article(0)} Copyright 2026 <b>a&b</b>, all rights! {FOOTER} Copyright of a&b! 版权所有！"
    assert omitted([text], pins) == [[False, False, True, True, False, True]]


@pytest.mark.parametrize(
    "passage",
    [
        "Write &lt;b&gt; around words that your readers should not miss.",
        "Write AT&amp;amp;T in full where a reader may not know the name.",
        "Prices &amp;lt; 5 euros are rounded down at the till.",
        "Lines that end here\nmay go on here for readers of the paper.",
        "Home &amp;gt; News",
    ],
)
def test_what_readers_see_of_a_passage_can_be_pinned(passage: str) -> None:
    """As a page or `stats` shows it, though it looks like markup; and as it stands in the text."""
    article_text = f"{article(0)}\n\n{passage}\n\n{article(1)}"
    found = LocatedPassages.of(article_text, max_length=10_000)
    # Two sentences each before and after it.
    shown = [found.text(place) for place in range(2, len(found.passages.hashes) - 2)]
    for pins in ([Pin(boilerplate=each) for each in shown], [Pin(boilerplate=passage)]):
        (own,) = omitted([article_text], Pins.of(pins))
        assert own == [False] * 2 + [True] * len(shown) + [False] * 2


def test_what_is_pinned_as_markup_counts_more_than_what_readers_might_see() -> None:
    pins = Pins.of([Pin(boilerplate="Ships &amp; trains"), Pin(text="Ships amp trains")])
    assert omitted([f"Ships &amp; trains\n\nShips amp trains\n\n{article(0)} {article(1)}"], pins) == [
        [True, False, *[False] * 4]
    ]


def test_pinned_boilerplate_counts_as_learned() -> None:
    """It is left out, is no mark of its page, and no rest of the text beside which lists are left out."""
    pins = Pins.of([Pin(boilerplate=FOOTER)])
    page = f"{FOOTER}\n\nHome and news\n\n{ITEM}"
    long = f"{FOOTER} {FOOTER}".replace("editors", "authors", 1)
    assert omitted([page, long], NO_PINS) == [[False, False, False], [False, False]]
    assert omitted([page, long], pins) == [[True, False, False], [False, True]]
    # Pages whose only common passage beside a teaser is pinned are different contexts of that teaser.
    teaser = "A new ferry will connect both shores of the lake from next spring on."
    pages = [f"{FOOTER} {teaser} {article(number).split('.')[0]}." for number in range(7)]
    for pinned, is_learned in ((NO_PINS, False), (pins, True)):
        boilerplate = Boilerplate(block_pages=1)
        assert omitted(pages, pinned, boilerplate=boilerplate)[-1][1] is is_learned


def test_pinned_text_is_never_left_out() -> None:
    """Neither when it is learned, nor in a list; there it counts as prose."""
    pages = [f"{article(number)} {FOOTER}" for number in range(8)]
    pins = Pins.of([Pin(text=FOOTER)])
    assert omitted(pages, NO_PINS, boilerplate=Boilerplate(block_pages=1))[-1] == [False, False, True]
    assert omitted(pages, pins, boilerplate=Boilerplate(block_pages=1))[-1] == [False, False, False]
    # On other sites, what is learned counts.
    elsewhere = Pins.of([Pin(text=FOOTER, site="a.example")])
    assert omitted(pages, elsewhere, boilerplate=Boilerplate(block_pages=1))[-1] == [False, False, True]
    page = f"Home and news\n\n{ITEM}\n\nWeather\n\n{article(0)} {article(1)}"
    assert omitted([page], NO_PINS)[0][:3] == [True, True, True]
    assert omitted([page], Pins.of([Pin(text=ITEM)]))[0][:3] == [True, False, True]


def test_a_pin_for_a_site_beats_one_for_all() -> None:
    pins = Pins.of(
        [
            Pin(boilerplate=FOOTER),
            Pin(text=FOOTER, site="https://WWW.clean.example/about"),
            Pin(boilerplate=article(0), site="Morning Wire"),
        ]
    )
    text = f"{article(0)} {FOOTER}"
    sites = ["clean.example", "Morning Wire", "other.example", None]
    assert omitted([text] * 4, pins, sites) == [
        [False, False, False],
        [True, True, True],
        [False, False, True],
        [False, False, True],
    ]


def file_of(*lines: Any) -> io.BytesIO:
    return io.BytesIO(
        b"".join(
            (line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode()) + b"\n"
            for line in lines
        )
    )


def test_pins_are_read_from_the_lines_of_a_file() -> None:
    lines = file_of(
        b"\xef\xbb\xbf# The desk's own",
        {"boilerplate": f"{FOOTER} 版权所有。\u2028 {ITEM}", "site": None},
        b"",
        {"text": FOOTER, "site": "clean.example"},
        # The same again says nothing new.
        {"boilerplate": FOOTER.upper()},
    )
    assert len(Pins.of_lines(lines)) == 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "p:2: is not JSON: Expecting property name enclosed in double quotes at character 2"),
        (b'{"text": "\xff"}', "p:2: is not UTF-8 (byte 11)"),
        (b"[" * 100_000, "p:2: is not valid JSON"),
        ([], "p:2: is JSON, but not an object"),
        ({"passage": "a"}, "p:2: 'passage' is none of boilerplate, text, site"),
        ({"text": "a", "boilerplate": "b"}, "p:2: it must have either boilerplate or text"),
        ({"site": "a.example"}, "p:2: it must have either boilerplate or text"),
        ({"text": ["a"]}, "p:2: its text is a list, not a string"),
        ({"text": "a", "site": " "}, "p:2: its site is blank"),
        ({"text": ""}, "p:2: its text is blank"),
        ({"boilerplate": "© <!-- a --> …"}, "p:2: it has no letters or digits outside of markup"),
        (
            {"text": f"Another one. {ITEM}"},
            "p:2: passage 2 of its text is boilerplate in p:1, both for all sites (in short passages, all",
        ),
    ],
)
def test_a_line_that_is_no_pin_is_named(line: Any, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Pins.of_lines(file_of({"boilerplate": f"{ITEM}!"}, line), name="p")
    assert message in str(caught.value)


def test_a_contradiction_on_a_site_names_both_pins_and_the_site() -> None:
    pins = [
        Pin(text="Posted 2026-11-22", site="www.a.example"),
        Pin(boilerplate="Posted 2026-11-23"),
        Pin(boilerplate="Posted 2026-11-24", site="A.example"),
    ]
    with pytest.raises(SettingError, match=r"pin 3: passage 1 .* in pin 1, both for the site 'a\.example'"):
        Pins.of(pins)

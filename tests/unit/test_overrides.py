"""Overrides: declarations about passages, which take precedence over learned boilerplate."""

import io
import itertools
import json
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from esdedup.ingest.assigner import arrive

from esdedup import VERIFIED, Override, Overrides, SettingError
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.overrides import NO_OVERRIDES
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.reading.explanation import explain
from esdedup.text.parsed import LocatedPassages, ParsedTexts
from tests.support.assign import assigned
from tests.support.comparison import resemblance

FOOTER = "The editors of this newspaper answer the questions of their readers every morning."
ITEM = "Follow us everywhere"


def left_out(
    texts: list[str],
    overrides: Overrides,
    sites: list[str | None] | None = None,
    boilerplate: Boilerplate | None = None,
) -> list[list[bool]]:
    """Return for each text which of its passages are left out."""
    passage_filter = (boilerplate or Boilerplate()).filter(
        overrides=overrides, sites=sites or itertools.repeat(None)
    )
    parsed = ParsedTexts.of(texts, max_length=10_000)
    flags, of_texts = parsed.left_out(passage_filter), parsed.passages.texts
    return [flags[of_texts == text].tolist() for text in range(len(texts))]


def article(number: int) -> str:
    name = "abcdefghijklmnopqrstuvwxyz"[number]
    return (
        f"In the town of {name} the council discussed what everybody had discussed for weeks. "
        f"Nobody {name} was surprised by what the mayor had to say about it in the end."
    )


def test_overrides_match_passages_despite_markup_and_case() -> None:
    """Matching also ignores dates and the width of characters; an override may have several passages."""
    overrides = Overrides.of(
        [
            Override(boilerplate=f"<p>COPYRIGHT 2019 Ａ&amp;Ｂ, all rights.</p> {FOOTER}"),
            Override(boilerplate="版權所有。"),
        ]
    )
    text = f"{article(0)} Copyright 2026 <b>a&b</b>, all rights! {FOOTER} Copyright of a&b! 版权所有！"
    assert left_out([text], overrides) == [[False, False, True, True, False, True]]


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
def test_a_passage_can_be_overridden_by_its_visible_text(passage: str) -> None:
    """The text that a page or `stats` shows is accepted, even if it looks like markup; so is raw text."""
    article_text = f"{article(0)}\n\n{passage}\n\n{article(1)}"
    found = LocatedPassages.of(article_text, max_length=10_000)
    # Two sentences come before the passage, and two after it.
    shown = [found.text(place) for place in range(2, len(found.passages.hashes) - 2)]
    for overrides in ([Override(boilerplate=each) for each in shown], [Override(boilerplate=passage)]):
        (own,) = left_out([article_text], Overrides.of(overrides))
        assert own == [False] * 2 + [True] * len(shown) + [False] * 2


def test_overrides_read_as_markup_outrank_those_read_as_text() -> None:
    overrides = Overrides.of([Override(boilerplate="Ships &amp; trains"), Override(text="Ships amp trains")])
    assert left_out([f"Ships &amp; trains\n\nShips amp trains\n\n{article(0)} {article(1)}"], overrides) == [
        [True, False, *[False] * 4]
    ]


def test_overridden_boilerplate_does_not_identify_contexts() -> None:
    """Overridden passages are left out, but identify no contexts and do not cause lists to be left out."""
    overrides = Overrides.of([Override(boilerplate=FOOTER)])
    page = f"{FOOTER}\n\nHome and news\n\n{ITEM}"
    long = f"{FOOTER} {FOOTER}".replace("editors", "authors", 1)
    assert left_out([page, long], NO_OVERRIDES) == [[False, False, False], [False, False]]
    assert left_out([page, long], overrides) == [[True, False, False], [False, True]]
    # Pages that share only overridden passages and a teaser are different contexts for the teaser.
    teaser = "A new ferry will connect both shores next spring."
    pages = [f"{FOOTER} {teaser} {article(number).split('.')[0]}." for number in range(7)]
    for overridden, is_learned in ((NO_OVERRIDES, False), (overrides, True)):
        boilerplate = Boilerplate(block_pages=1)
        assert left_out(pages, overridden, boilerplate=boilerplate)[-1][1] is is_learned


def test_overridden_text_is_never_left_out() -> None:
    """The text stays even if it is learned as boilerplate, or is an item of a list."""
    pages = [f"{article(number)} {FOOTER}" for number in range(8)]
    overrides = Overrides.of([Override(text=FOOTER)])
    assert left_out(pages, NO_OVERRIDES, boilerplate=Boilerplate(block_pages=1))[-1] == [False, False, True]
    assert left_out(pages, overrides, boilerplate=Boilerplate(block_pages=1))[-1] == [False, False, False]
    # An override for another site has no effect.
    elsewhere = Overrides.of([Override(text=FOOTER, site="a.example")])
    assert left_out(pages, elsewhere, boilerplate=Boilerplate(block_pages=1))[-1] == [False, False, True]
    page = f"Home and news\n\n{ITEM}\n\nWeather\n\n{article(0)} {article(1)}"
    assert left_out([page], NO_OVERRIDES)[0][:3] == [True, True, True]
    assert left_out([page], Overrides.of([Override(text=ITEM)]))[0][:3] == [True, False, True]


def test_an_override_for_a_site_beats_a_general_one() -> None:
    overrides = Overrides.of(
        [
            Override(boilerplate=FOOTER),
            Override(text=FOOTER, site="https://WWW.clean.example/about"),
            Override(boilerplate=article(0), site="Morning Wire"),
        ]
    )
    text = f"{article(0)} {FOOTER}"
    sites = ["clean.example", "Morning Wire", "other.example", None]
    assert left_out([text] * 4, overrides, sites) == [
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


def test_overrides_are_read_from_the_lines_of_a_file() -> None:
    lines = file_of(
        b"\xef\xbb\xbf# The desk's own",
        {"boilerplate": f"{FOOTER} 版权所有。\u2028 {ITEM}", "site": None},
        b"",
        {"text": FOOTER, "site": "clean.example"},
        # A repeated override has no effect.
        {"boilerplate": FOOTER.upper()},
    )
    assert len(Overrides.of_lines(lines)) == 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "p:2: is not JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        (b'{"text": "\xff"}', "p:2: is not JSON: 'utf-8' codec can't decode byte 0xff in position 10"),
        (b"[" * 100_000, "p:2: is not JSON"),
        ([], "p:2: is JSON, but not an object"),
        ({"passage": "a"}, "p:2: 'passage' is not one of boilerplate, text, site"),
        ({"text": "a", "boilerplate": "b"}, "p:2: it must have either boilerplate or text"),
        ({"site": "a.example"}, "p:2: it must have either boilerplate or text"),
        ({"text": ["a"]}, "p:2: its text must be a string, not list"),
        ({"text": "a", "site": " "}, "p:2: its site is blank"),
        ({"text": ""}, "p:2: its text is blank"),
        ({"boilerplate": "© <!-- a --> …"}, "p:2: it has no letters or digits outside of markup"),
        (
            {"text": f"Another one. {ITEM}"},
            "p:2: passage 2 of its text is boilerplate in p:1, both for all sites (in short passages, all",
        ),
    ],
)
def test_the_number_of_an_invalid_line_is_reported(line: Any, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Overrides.of_lines(file_of({"boilerplate": f"{ITEM}!"}, line), name="p")
    assert message in str(caught.value)


def test_contradictory_overrides_are_reported_with_their_site() -> None:
    overrides = [
        Override(text="Posted 2026-11-22", site="www.a.example"),
        Override(boilerplate="Posted 2026-11-23"),
        Override(boilerplate="Posted 2026-11-24", site="A.example"),
    ]
    with pytest.raises(
        SettingError, match=r"override 3: passage 1 .* in override 1, both for the site 'a\.example'"
    ):
        Overrides.of(overrides)


_RELATION = relation_of(VERIFIED)


def _words(random: Random, count: int) -> list[str]:
    return [
        "".join(random.choice("bcdfglmnprst") + random.choice("aeiou") for _ in range(random.randint(2, 4)))
        for _ in range(count)
    ]


def _story(random: Random) -> list[str]:
    return [" ".join(_words(random, random.randint(9, 14))) + "." for _ in range(12)]


def _reprint(random: Random, story: list[str]) -> list[str]:
    at = random.randrange(len(story))
    return [*story[:at], f"edited {story[at]}", *story[at + 1 : len(story) - random.randrange(2)]]


def _variant(random: Random, more: list[str], less: list[str]) -> list[str]:
    return [*more[:11], *less[:8], " ".join(_words(random, 3)) + "."]


@pytest.mark.parametrize("seed", range(4))
def test_variants_of_two_stories_do_not_attract_reprints(seed: int) -> None:
    random = Random(seed)
    one, other = _story(random), _story(random)
    variants = [_variant(random, *((one, other) if number % 2 else (other, one))) for number in range(20)]
    reprints = [_reprint(random, story) for story in (one, other) for _ in range(10)]
    texts = [" ".join(text) for text in (one, other, one[:10] + other[:10], *variants, *reprints)]
    roots = [each.root for each in assigned(texts)]
    assert roots[-20:] == [roots[0]] * 10 + [roots[1]] * 10


def _sketches(texts: list[str]) -> npt.NDArray[np.uint64]:
    sketches: npt.NDArray[np.uint64] = Fingerprinter(VERIFIED).fingerprint(texts).signatures["sketch"]
    return sketches


def _forged(random: Random, stories: list[str], *, words: int) -> tuple[str, list[float]]:
    """Return a text of words chosen to seem to resemble `stories`, and its estimated resemblances."""
    targets, text = _sketches(stories), " ".join(_words(random, 20))
    for _ in range(words):
        longer = [f"{text} {word}" for word in _words(random, 150)]
        estimates = np.array([resemblance(target[None], _sketches(longer)) for target in targets])
        best = int(estimates.sum(axis=0).argmax())
        text = longer[best]
    return text, estimates[:, best].tolist()


def test_a_forged_text_resembles_a_story_only_by_estimate() -> None:
    """200 chosen words deceive the estimate (docs/forest.md), but explanations show the exact resemblance."""
    random = Random(1)
    story = " ".join(_story(random))
    text, (estimate,) = _forged(random, [story], words=200)
    compared = explain(story, text).whole_texts
    assert compared is not None
    assert compared.resemblance == estimate
    # The forged text is as long as the story plus some filler, so the story counts as an excerpt.
    assert compared.may_join
    assert compared.exact_resemblance is not None
    assert compared.exact_resemblance < 0.01


def test_a_forged_text_half_resembles_at_most_one_story() -> None:
    random = Random(2)
    _, estimates = _forged(random, [" ".join(_story(random)) for _ in range(2)], words=200)
    assert 0.5 < sum(estimates) < 1.1


def _planted_pages(random: Random, sentences: list[str], *, pages: int = 5) -> list[list[str]]:
    """Return pages from which `sentences` are learned as boilerplate, and pages that complete the block."""
    longer = [[" ".join(_words(random, 150)) + "." for _ in range(3)] for _ in range(pages)]
    return [*(own + sentences for own in longer), *([" ".join(_words(random, 9))] for _ in range(64))]


def _roots(
    *batches: list[list[str]], overrides: Overrides = NO_OVERRIDES, store: MemoryStore | None = None
) -> list[str | None]:
    """Assign the batches in order, and return the roots of the last batch."""
    store = store or MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=_RELATION)
    for batch in batches:
        texts = [" ".join(page) for page in batch]
        _, decided = arrive(
            texts,
            times_ms=[None] * len(texts),
            fingerprinter=Fingerprinter(VERIFIED),
            store=store,
            now_ms=0,
            overrides=overrides,
        )
    return [each.root for each in decided.assignments]


def test_placeholders_get_no_root() -> None:
    """A notice that is later declared boilerplate gets no root either, unless its page has other text."""
    notice = "This article is asleep. It will wake in spring."
    named = Overrides.of([Override(boilerplate=notice)])
    shipped = [
        "[Removed]",
        "<h1>Access Denied</h1>",
        "Just a moment... Enable JavaScript and cookies to continue",
    ]
    assert _roots([[each] for each in shipped]) == [None] * 3
    assert None not in _roots([["[Removed]"]], overrides=Overrides.of([Override(text="removed")]))
    assert None not in _roots([[notice]])
    store = MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=_RELATION)
    assert None not in _roots([[notice]], store=store)
    assert _roots([[notice], [notice, "The mayor sleeps."]], store=store, overrides=named)[0] is None
    assert None not in _roots([[notice, "The mayor sleeps."]], store=store, overrides=named)


@pytest.mark.parametrize("seed", range(4))
def test_five_planted_pages_separate_reprints_unless_overridden(seed: int) -> None:
    """The planted pages may arrive before or after the story; three of them are too few."""
    random = Random(seed)
    story = _story(random)
    reprints = [_reprint(random, story) for _ in range(10)]
    for first, last in (([], [story, *reprints]), ([story], [story, *reprints])):
        assert len(set(_roots(first, _planted_pages(random, story, pages=3), last))) == 1
        assert len(set(_roots(first, _planted_pages(random, story), last))) > 5
        overrides = Overrides.of([Override(text=" ".join(story))])
        assert len(set(_roots(first, _planted_pages(random, story), last, overrides=overrides))) == 1


@pytest.mark.parametrize("seed", range(4))
def test_five_planted_pages_join_stories_that_share_a_sentence(seed: int) -> None:
    random = Random(seed)
    shared = "The editors of this newspaper answer the questions of their readers every morning."
    one, other = ([*_story(random), shared] for _ in range(2))
    planted = _planted_pages(random, one[:-1] + other[:-1])
    assert len(set(_roots([one, other]))) == 2
    assert len(set(_roots(planted, [one, other]))) == 1
    overrides = Overrides.of([Override(text=" ".join(story)) for story in (one, other)])
    assert len(set(_roots(planted, [one, other], overrides=overrides))) == 2

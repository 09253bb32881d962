"""Visible text, the passages that fingerprints leave out of it, and passages of wrapped text."""

import re
import textwrap
import unicodedata
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.make_tables import is_alnum
from esdedup import VERIFIED, _core
from esdedup._core import normal_form
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.text.parsed import LocatedPassages, left_out, visible_text
from tests.support.normal_forms import normalise
from tests.support.pages import HARBOUR, MENU, article, page

TEXT = "The harbour council voted on Monday to move the ferry to the northern pier."
HIDDEN = "The secret was told to nobody but a crawler. "
HIDING = [
    "<!-- {} -->",
    "<style>{}</style>",
    "<SCRIPT type='x'>{}</script >",
    "<img alt='{}'>",
    "<b title='{}'></b>",
    "<a\n href=x data-x='{}'></a>",
    "<![CDATA[{}]]>",
]
# Unusual markup and the text that browsers show for it.
ODD_MARKUP = [
    ("a<!-->b<!-- -->", "ab"),
    ("a<!--->b<!-- -->", "ab"),
    ("a<!---->b<!-- x --!>c<!-- --!x -->d", "abcd"),
    ("a<!-- x -- > - -> <!-- y -->b-->", "ab-->"),
    ("a<a title='<!--'>b</a>c<a title='-->'>d</a>", "abcd"),
    ("<p title=\"<script>\">a<p title='</script>'>b", "\na\nb"),
    ("a<b title = 'x > y' alt=\">\">b</b title='>'>c", "abc"),
    ("a<b title=x'>b<b title='c>d'>e", "abe"),
    ("a<script></script x='>'>b<script></scripty></script\n>c", "abc"),
    ("a<\u017fcript>b</\u017fcript>c", "a<\u017fcript>b</\u017fcript>c"),
    ("<textarea><!--</textarea>a<b alt='-->'>b", "ab"),
    ("<title><style></title>a<p></style>b", "a\nb"),
    ("<xmp><b alt='</xmp>a<b alt=''>b", "\n<b alt='\nab"),
    ("a<style><!--</style>b<!-- -->c", "abc"),
    ("a<style>b<!-- </style>c", "ac"),
    ("a<iframe><b alt='</iframe>b<b alt=''>c", "abc"),
    ("a<noscript><b>b</b></noscript>c<noscript><!--</noscript>d-->", "acd-->"),
    ("a<? <!-- >b<! <!-- >c</ <!-- >d", "ab<! <!-- >c</ <!-- >d"),
    ("a<![CDATA[<script>b]]></script>c", "ab]]>c"),
    ("a<three words '<!--'>b<!-- x -->c", "a<three words '<!--'>bc"),
    ("a<plaintext><!-- b -->", "a\n<!-- b -->\n"),
    # A `</script>` after `<!--<script>` does not end the outer script.
    ("a<script><!--<script></script><a alt='</script>b'>c", "ab'>c"),
    # The contents of these elements are parsed by other rules.
    ("<svg x=y><path/></svg>a<style>b{}</style>c", "ac"),
    ("<svg><style><p>a</style>b", "\nab"),
    ("<svg><style/>a</style>b", "ab"),
    ("<svg><![CDATA[><!--]]>a-->", "><!--a-->"),
    ("<select><style><option>a</style></select>b", "b"),
    ("<math><style>a</style>b", "b"),
]


@pytest.mark.parametrize(("raw", "shown"), ODD_MARKUP)
def test_text_that_browsers_show_is_not_hidden(raw: str, shown: str) -> None:
    assert visible_text(raw) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        # Line breaks in HTML become spaces, except in <pre>; in plain text, they are kept.
        ("<p>one\ntwo  <b>\nthree</b><br>four<pre>five\n six</pre>", "\none two three\nfour\nfive\n six\n"),
        ("one\ntwo &amp; <b>three</b>\n\nfour", "one\ntwo & three\n\nfour"),
        ("<table><tr><td>a</td> <td> <td> b<td></table>", "\n\na\tb\n"),
        # A hidden article, which a script reveals, is shown; a hidden menu of short items is not.
        (f"<body><div style='display: none'><p>{TEXT}</div>", f"\n\n{TEXT}\n"),
        (f"<p>Read on<noscript><p>{TEXT}</noscript>", f"\nRead on\n{TEXT}"),
        (f"<p>{TEXT}<noscript><p>{TEXT}</noscript>", f"\n{TEXT}"),
        (f"<p>{TEXT}<ul hidden>{'<li>Sport' * 99}</ul>", f"\n{TEXT}\n\n"),
        (f"<p>{TEXT}<!-- {TEXT * 2}", f"\n{TEXT}<!-- {TEXT * 2}"),
        (f"<p>{TEXT}<!-- <b>cut off", f"\n{TEXT}"),
        # A hidden element ends with the element around it.
        ("<div><p hidden>a<div>b</div><span hidden>c</div>d<b hidden>e<i></b>f", "\n\nb\n\ndf"),
        (
            "one of <three words ltd>, <Fletcher Industries>",
            "one of <three words ltd>, <Fletcher Industries>",
        ),
    ],
)
def test_text_flows_as_in_a_browser(raw: str, shown: str) -> None:
    assert visible_text(raw) == shown


def test_an_attribute_cannot_begin_a_comment() -> None:
    article = f"{TEXT} <a title='<!-- 1'>Read on</a> {HIDDEN * 9} <!-- x -->"
    assert visible_text(article) == f"{TEXT} Read on {HIDDEN * 9} "


# Characters of each kind that browsers do not show, and characters that look like a space.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u180f\u200b\u200d\u200e\u2060\u2065\u206f\ufe00\ufe0f\ufeff"
    "\ufff0\ufff9\ufffc\U0001bca0\U0001d173\U000e0001\U000e0041\U000e0080\U000e0100\U000e01f0\U000e0fff"
)
BLANK = "\u200c\u2800\u3164\uffa0"


@pytest.mark.parametrize("invisible", INVISIBLE, ids=ascii)
def test_invisible_characters_do_not_split_words(invisible: str) -> None:
    expected = ["the cafe 오늘 각 市议会"]
    assert (
        normalise([f"The c{invisible}afe{invisible}\u0301 오{invisible}늘 각 市{invisible}議會"]) == expected
    )
    # A text without combining accents takes another path, which looks up each character by itself.
    assert normalise([f"The fer{invisible}ry"]) == ["the ferry"]


@pytest.mark.parametrize("blank", BLANK, ids=ascii)
def test_characters_that_look_like_spaces_are_spaces(blank: str) -> None:
    assert normalise([f"the{blank}ferry", f"the{blank}cafe\u0301"]) == ["the ferry", "the cafe"]


@pytest.mark.parametrize("character", INVISIBLE + BLANK, ids=ascii)
def test_an_invisible_text_has_no_fingerprint(character: str) -> None:
    assert not Fingerprinter(VERIFIED).fingerprint([character * 400]).exists[0]


@pytest.mark.parametrize("hiding", HIDING)
def test_visible_and_fingerprinted_text_agree(hiding: str) -> None:
    raw = f"{TEXT} {hiding.format(HIDDEN)} Nobody spoke against it."
    is_compared = "secret" in normalise([raw])[0]
    assert ("secret" in visible_text(raw)) == is_compared


@given(st.text(st.sampled_from("<>!-/&;= abpstyle\u202e\u200b\r\n#x1"), max_size=60))
def test_shown_and_compared_words_are_equal(raw: str) -> None:
    shown, compared = (
        re.findall(r"\w+", each) for each in (visible_text(raw).casefold(), normalise([raw])[0])
    )
    assert "".join(shown) == "".join(compared)


TAGS = "<p> </p> <b> <br/> <a='b '> <!-- --> <script> </script> <noscript> </noscript> <title> </title> <svg>"
REFERENCES = "&amp; &am p; & &#65; &#x4 1; &not in; &#123456789 0; a bc \u202e < </svg> <plaintext>"
PIECES = (*TAGS.split(), *REFERENCES.split(), " ", "\r", "\n")


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.integers(0, 12))
def test_the_visible_beginning_is_a_prefix_of_the_whole(raw: str, max_length: int) -> None:
    whole, beginning = visible_text(raw), _core.visible_text(raw, max_length=max_length)
    assert whole.startswith(beginning)
    assert beginning == whole or len(beginning) > max_length


def test_markup_after_the_fingerprinted_text_is_not_read() -> None:
    """A former version read all of a 4.5 MB text three times, so showing the text took 22 seconds."""
    raw = "<p>a</p>" * 50_000
    found = Fingerprinter(VERIFIED.with_changes(max_text_length=300)).fingerprint([raw])
    assert found.are_cut.tolist() == [True]
    located = LocatedPassages.of(raw, max_length=300)
    assert len(located.passages.hashes) == 100
    assert len(located.visible) < 310


def test_bidirectional_overrides_are_removed() -> None:
    assert (
        visible_text("pay \u202e001\u202c now, \u202dnot\u202c later &#8238;")
        == "pay 001\u202c now, not\u202c later "
    )


@pytest.mark.parametrize(
    "padding",
    [
        *(each.format(HIDDEN * 50) for each in HIDING[:-1]),
        " " * 2_000,
        *(each * 60 for each in INVISIBLE + BLANK),
    ],
    ids=ascii,
)
def test_padding_does_not_make_an_article_longer(padding: str) -> None:
    assert Fingerprinter(VERIFIED).fingerprint([TEXT, TEXT + padding]).alphanumerics.tolist() == [61, 61]


NOTHING_LEARNED = Boilerplate().filter()
# Characters that end sentences, combine, expand, are dropped, or belong to markup.
CHARACTERS = st.sampled_from(
    "e1. 。!\n\u0301\u0323\u200d\u00ad\u2026\ufdfa\u2488\u1100\u1161\u81fa\u0130&<>p/;"
)
TEXTS = st.text(CHARACTERS | st.characters())


@given(TEXTS)
@example("")
@example("\u0301a\u0301")
@example("a\u2026\u2026b\u3099")
@example("\U0003d000")
def test_the_text_of_each_passage_contains_its_letters(text: str) -> None:
    """One character may be the end of a passage and the beginning of the next: `\u2488` is `1.`."""
    found = LocatedPassages.of(text, max_length=10_000)
    assert (np.diff(found.starts) >= 0).all()
    assert (np.diff(found.ends) >= 0).all()
    for start, end, letters in zip(
        found.starts.tolist(), found.ends.tolist(), found.passages.alphanumerics.tolist(), strict=True
    ):
        assert 0 <= start < end <= len(found.visible)
        assert sum(map(is_alnum, normal_form(found.visible[start:end]))) >= letters


@given(
    st.lists(
        st.sampled_from(
            ["Zuerst ", "e\u0301te\u0301", "12", "<p>", "&amp;", "。", ". ", "\n\n", "\u2026", "臺北", "! "]
        )
    )
)
def test_passages_are_located_correctly(pieces: list[str]) -> None:
    found = LocatedPassages.of("".join(pieces), max_length=10_000)
    assert (found.starts < found.ends).all()
    assert (found.ends <= len(found.visible)).all()
    for number, expected in enumerate(found.passages.hashes.tolist()):
        alone = LocatedPassages.of(found.text(number).replace("&", "&amp;"), max_length=10_000)
        assert alone.passages.hashes.tolist() == [expected]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_omissions_are_reported_in_the_visible_text(form: Literal["NFC", "NFD"]) -> None:
    text = unicodedata.normalize(
        form, f"<p>Économie &amp; été<p>À propos</p>\n{article(1)}<!-- no --> Fin…<p>À suivre"
    )
    found = left_out(text, NOTHING_LEARNED, max_length=10_000)
    assert [span.text for span in found.spans] == [
        unicodedata.normalize(form, "Économie & été\nÀ propos"),
        unicodedata.normalize(form, "Fin…\nÀ suivre"),
    ]
    assert (found.passages, found.of_passages) == (4, 10)
    assert found.letters == sum(map(str.isalnum, "Économie & été À propos Fin À suivre"))


def test_only_fingerprinted_text_is_reported() -> None:
    whole = page(article(1), HARBOUR)
    found = left_out(f"{whole}\n\n{MENU}", NOTHING_LEARNED, max_length=len(whole) + 10)
    assert found.spans[-1].end <= len(whole) + 10
    assert found.of_letters < sum(map(str.isalnum, f"{whole}{MENU}"))


ENGLISH = (
    "The harbour office of Northport will close its old crane in spring. It had lifted timber for "
    "ninety years, said the master of the harbour, and nobody could remember a day on which it had not. "
    "A new one comes from abroad and is to be paid for by the county."
)
SECOND = (
    'Shopkeepers near the quay fear the noise of the works. "We were asked by nobody at all," said one of '
    "them, who sells nets and lamps and has been there since the bridge was opened."
)
CHINESE = (
    "北港市政府昨日宣布，2026年春天将拆除老码头的起重机。"
    "这台设备已经运转了90年，装卸过无数木材和粮食，"
    "许多老工人对它很有感情。新的起重机将从国外购买，"
    "费用由县里承担，预计明年年底投入使用。"
)


def passages(text: str) -> list[int]:
    found: list[int] = LocatedPassages.of(text, max_length=10_000).passages.hashes.tolist()
    return found


def chunks(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def columns(text: str, width: int) -> str:
    """Wrap a text at the given number of columns; an East Asian character takes two columns."""
    lines, used = [""], 0
    for character in text:
        needed = 2 if ord(character) > 0x2E7F else 1
        if used + needed > width:
            lines.append("")
            used = 0
        lines[-1] += character
        used += needed
    return "\n".join(lines)


@pytest.mark.parametrize("width", [40, 72, 110, 140])
@pytest.mark.parametrize("gap", ["\n", "\n\n", "\n    "])
def test_wrapped_english_has_the_passages_of_its_paragraphs(width: int, gap: str) -> None:
    wrapped = gap.join("\n".join(textwrap.wrap(each, width)) for each in (ENGLISH, SECOND))
    assert passages(wrapped) == passages(f"{ENGLISH}\n\n{SECOND}")


@pytest.mark.parametrize("wrap", [chunks, columns])
@pytest.mark.parametrize("width", [18, 24, 35])
def test_wrapped_chinese_has_the_passages_of_its_paragraph(wrap: object, width: int) -> None:
    assert callable(wrap)
    width *= 1 + (wrap is columns)
    text = CHINESE.replace("2026", "").replace("90", "")
    assert passages(wrap(text, width)) == passages(text)


def test_lines_with_numbers_are_unwrapped_by_characters_or_columns() -> None:
    """Lines of equal length in characters differ in columns if they contain numbers, and vice versa."""
    text = CHINESE.replace("无数", "12,345,678吨")
    for wrapped in (chunks(text, 45), columns(text, 84)):
        assert len(passages(wrapped)) == len(passages(text)) == 3


@pytest.mark.parametrize(
    "lines",
    [
        # Short lines that do not fill the width of the longest line.
        ["Council delays the bridge again", "Crane of the harbour is taken down", "Snow", "A new mayor"],
        # Lines of nearly the same length, without a full stop.
        [
            "Old crane of Northport to be closed",
            "Council to vote on the budget today",
            "Snow expected in eastern valleys",
        ],
        # Truncated teasers.
        ["The harbour office of Northport will. Close...", "Shopkeepers near the quay fear the n. Oise..."],
        ["Home", "News", "Sport"],
        ["北港拆除老起重机引发工人不舍之情", "议会表决", "山谷大雪"],
    ],
)
def test_list_items_are_not_joined(lines: list[str]) -> None:
    found = passages("\n".join(lines))
    assert found == [each for line in lines for each in passages(line)]


@pytest.mark.parametrize(
    "text",
    [
        "Er sagte: \u201eDas war alles, was wir wissen wollten.\u201c",
        "Han sagde: \u00bbDet var alt, hvad vi ville vide.\u00ab",
        "\u201aDas war alles.\u2018",
        "That was all there was to say.[12]",
        "That was all there was to say! \U0001f600\U0001f389",
    ],
)
def test_full_stops_are_recognised_before_quotes_notes_and_emoji(text: str) -> None:
    assert LocatedPassages.of(text, max_length=1_000).passages.are_prose.all()


@pytest.mark.parametrize(
    "text", ["Read more...", "Read more ... \u00bb", "Home \u00bb", "Notes [12]", "[1]", "Gallery \U0001f4f7"]
)
def test_links_and_notes_are_not_prose(text: str) -> None:
    found = LocatedPassages.of(f"It is said.\n{text}", max_length=1_000).passages
    assert found.are_prose.tolist() == [True, False]

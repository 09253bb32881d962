"""Normalising raw texts, and splitting them into sentences, passages and tokens."""

import itertools
import operator
import re
import unicodedata
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import make_tables
from esdedup import VERIFIED
from esdedup._core import normal_form
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.text.parsed import LocatedPassages, ParsedTexts
from tests.support.normal_forms import normalise
from tests.unit.test_fingerprinter import content_hashes, hashed_words

# Characters whose normal form depends on neighbours or has several characters, and plain characters.
TRICKY = (
    "e\u0301ﬁ㎏…각ᄀ\u1161\u11a8ｶﾞ가\u200b\ud800\x00\x1e\r\n臺后乾ß İ\u0130\u00adＡ，。!\u2028\u0323"
    "\u034f\ufe0f\u3164\U000e0100и\u0306"
)
texts = st.lists(
    st.one_of(st.text(max_size=30), st.text(st.sampled_from(TRICKY), max_size=20)).filter(
        lambda text: "<" not in text and "&" not in text
    ),
    max_size=8,
)


@pytest.mark.night
def test_the_tables_match_those_of_the_crate() -> None:
    """This test runs only in `make nightly`; the tests below compare random texts."""
    assert make_tables.FOLDER.joinpath("characters.txt").read_text("utf-8") == make_tables.characters()
    assert make_tables.FOLDER.joinpath("references.txt").read_text("utf-8") == make_tables.references()


@given(st.text())
def test_normal_forms_match_the_tables(text: str) -> None:
    assert normal_form(text) == make_tables.normal_form(text)


def test_letters_newer_than_pythons_unicode_are_known() -> None:
    """Garay letters (Unicode 16) have two cases; each Chinese character of Unicode 15 is a token."""
    assert normal_form("\U00010d50\U00010d65") == "\U00010d70\U00010d85"
    assert content_hashes("\U00031350\U00031351")[0] == content_hashes("\U00031350 \U00031351")[0] != 0


# Characters unassigned (Cn) in Python's version of Unicode may be assigned in a newer one.
KNOWN = st.characters(max_codepoint=0x2E7F, exclude_categories=["Cn", "Cs", "Cc", "Cf", "Zl", "Zp"])
# Letters and marks of Indian scripts and of Thai, none of which is optional in spelling.
WRITTEN_ONE_WAY = st.characters(min_codepoint=0x0900, max_codepoint=0x0E7F, categories=["L", "M"])


@given(st.text(WRITTEN_ONE_WAY | st.characters(max_codepoint=0x7E, categories=["L", "N", "P", "Zs"])))
def test_normal_form_is_nfkc_and_case_folded(text: str) -> None:
    assert normal_form(text) == unicodedata.normalize("NFKC", text).casefold()


@given(st.text(KNOWN, max_size=40))
def test_normal_form_ignores_case_and_composition(text: str) -> None:
    spellings = (unicodedata.normalize("NFKD", text), unicodedata.normalize("NFKC", text).casefold())
    assert {*map(normal_form, spellings)} == {normal_form(text)}


@pytest.mark.parametrize(
    ("spellings", "normal"),
    [
        ("Économie économie ECONOMIE e\u0301conomie", "economie"),
        ("łódź ŁÓDŹ lodz", "lodz"),
        ("đường Đường duong", "duong"),
        ("ΆΝΘΡΩΠΟΣ άνθρωπος ανθρωποσ", "ανθρωποσ"),
        ("İSPARTA Isparta ısparta", "isparta"),
        ("Ёлка елка ѐлка е\u0301лка", "елка"),
        ("Йод йод и\u0306од", "йод"),
        ("їжа і\u0308жа", "їжа"),
        ("١٢٣ ۱۲۳ १२३ ๑๒๓ １２３", "123"),
        ("علی على علي", "علي"),
        ("كتاب کتاب كتـاب كِتاب", "كتاب"),
        ("أحمد إحمد ٱحمد احمد", "احمد"),
        ("مدرسة مدرسه", "مدرسه"),
        ("שָׁלוֹם שלום", "שלום"),
        ("か\u3099 が", "が"),
        ("हिन्दी", "हिन्दी"),
        ("ก็", "ก็"),
    ],
)
def test_spellings_of_a_word_have_one_form(spellings: str, normal: str) -> None:
    assert {*normal_form(spellings).split()} == {normal}


# Combining marks of several classes, some of which decompose into two.
MARKS = "\u0301\u0316\u0344\u0f73\u3099"


@pytest.mark.parametrize("unit", [*MARKS, MARKS, "e" + MARKS * 7], ids=ascii)
def test_long_runs_of_marks_are_split_before_sorting(unit: str) -> None:
    """Sorting a run of marks takes quadratic time: eleven seconds for 100,000 marks."""
    parts, count = [""], 0
    for character in unit * 100:
        count = count + 1 if character in MARKS else 0
        parts[-1] += character
        if count == 30:
            parts.append("")
            count = 0
    assert normal_form(unit * 100) == "".join(map(normal_form, parts))
    assert len(normalise([unit * 100_000])) == 1


@given(st.text(st.sampled_from(MARKS + "e각\u1161 "), max_size=30))
def test_short_runs_of_marks_are_normalised_as_nfkc(text: str) -> None:
    decomposed = unicodedata.normalize("NFKD", text).translate(dict.fromkeys(map(ord, "\u0301\u0308\u0316")))
    assert normal_form(text) == unicodedata.normalize("NFKC", decomposed).casefold()


@given(texts)
def test_normalised_text_can_be_encoded(batch: list[str]) -> None:
    for text in normalise(batch):
        assert "\x00" not in text.encode().decode()


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("ＡＢＣ１２３，！", "abc123,!"),
        ("臺灣開放、乾杯", "台湾开放、干杯"),
        ("STRASSE Straße", "strasse strasse"),
        ("co\u00adop\u200berate", "cooperate"),
        ("a\x00b\ud800c", "a b c"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("fish &amp; chips &lt;3 &#20013;", "fish & chips <3 中"),
        ("<p>One</p><p>two <b>b</b>old</p>", "\none\n\ntwo bold\n"),
        ("a<script>var x = '<p>';</script>b<!-- c\n -->d", "abd"),
        ("3 < 5 and 7 > 6", "3 < 5 and 7 > 6"),
        ("if a<b and c>d, i<n; p<q && r>s", "if a<b and c>d, i<n; p<q && r>s"),
        ("若a<b,则c>d。x<y 。另一句 z-w>v", "若a<b,则c>d。x<y 。另一句 z-w>v"),
        ("one of <three words ltd>, <me@example.com>", "one of <three words ltd>, <me@example.com>"),
        ("<P\nclass = 'x y'>a<td nowrap>b<br / >c<br/>d<o:p></o:p>", "\nab\nc\nd"),
        ("<div data-v-7ba5bd90>a<td nowrap width=5>b<i v-if='x' nowrap>c<!DOCTYPE html>", "\nabc"),
        ("<!-- never closed", "<!-- never closed"),
        ("a<STYLE>p {}</Style\n>b <script>never closed", "ab never closed"),
        ("&#" + "9" * 5_000 + "; x", "\ufffd x"),
    ],
)
def test_normalised_text_has_no_markup_case_or_width(raw: str, normal: str) -> None:
    assert normalise([raw]) == [normal]


HOSTILE = (
    "<!-- <style> <a & &#x < =' <? </ <!--> <noscript> <svg><style> <script><!-- <script><!--</script> "
    "<script><!--<script></script> <title> <div> <b></p> <b><p> <table><tr><td> <ul><li> <svg><g> </x>"
)


@pytest.mark.parametrize(
    "part", [*HOSTILE.split(), "<script ", "<p ", "</script ", "<a b='", "<a b='>", "<div hidden>"]
)
def test_hostile_markup_takes_no_longer_than_other_text(part: str) -> None:
    # A quadratic algorithm would take minutes for this text.
    text = part * (400_000 // len(part))
    assert len(normalise([text])) == 1


@pytest.mark.parametrize("part", [" ", "a", " a", "a ", " a=", "=", "-", " a-", "/", " /", ":", "a  ", "\n"])
@pytest.mark.parametrize("start", ["<p", "<p ", "<p a", "<p a ", "<p a=", "<p a b", "<p a b "])
def test_hostile_attributes_take_no_longer_than_other_text(start: str, part: str) -> None:
    text = start + part * (400_000 // len(part))
    assert len(normalise([text])) == 1


token_texts = st.lists(st.text(st.sampled_from("ab1 2.,:中文。\n"), max_size=25), min_size=1, max_size=5)


RUN_UNITS = 4


def parsed(*batch: str) -> ParsedTexts:
    return ParsedTexts.of(batch, max_length=1_000)


def runs(tokens: list[str], units: int) -> list[tuple[str, ...]]:
    """Return the runs of at least `units` units, computed naively."""
    found = []
    for start in range(len(tokens)):
        stop, length = start, 0
        while stop < len(tokens) and length < units:
            length += 1 if tokens[stop] >= "\u2e80" else 2
            stop += 1
        if length >= units or start == 0:
            found.append(tuple(tokens[start:stop]))
    return found


@given(token_texts, token_texts)
def test_equal_tokens_give_equal_runs(ones: list[str], others: list[str]) -> None:
    """Runs and figures are counted as in explanations; some numbers do not count as figures."""
    for one, other in zip(ones, others, strict=False):
        # Numbers are compared without the punctuation in them.
        mine, yours = (
            [re.sub(r"\b[.,:]\b", "", word) for word in hashed_words(text)] for text in (one, other)
        )
        ((of_runs, of_figures),) = parsed(one).core.overlap(b"", parsed(other).core, b"")
        ours, theirs = (set(runs(each, RUN_UNITS)) for each in (mine, yours))
        assert of_runs == (len(ours & theirs), len(ours), len(theirs))
        figures, other_figures = (
            Counter(word for word in each if word[0].isdigit()) for each in (mine, yours)
        )
        numbers = ((figures & other_figures).total(), figures.total(), other_figures.total())
        assert all(map(operator.le, of_figures, numbers))


def hashes_of_words(chosen: list[str]) -> npt.NDArray[np.uint64]:
    """Return the hash of each word, which is also the simhash of a sentence of this word alone."""
    return ParsedTexts.of(chosen, max_length=1_000).passages.hashes


def test_words_cannot_be_built_to_share_a_key() -> None:
    """If a hash were a sum over the parts of a word, parts could be combined to flood any key.

    The last key of a simhash is its lowest 25 bits, so thirty of 10^9 pairs of parts have a given key.
    """
    key = (1 << 25) - 1
    parts = ["".join(letters) for letters in itertools.permutations("abcdefghijklmno", 4)]
    fronts = hashes_of_words([f"{part}aaaa" for part in parts]) & np.uint64(key)
    backs = hashes_of_words([f"aaaa{part}" for part in parts])
    differences = (backs - hashes_of_words(["aaaaaaaa"])) & np.uint64(key)
    by_difference = dict(zip(differences.tolist(), parts, strict=True))
    found = [
        front + by_difference[0x5EED - own & key]
        for front, own in zip(parts, fronts.tolist(), strict=True)
        if 0x5EED - own & key in by_difference
    ]
    assert len(found) >= 10
    assert np.count_nonzero(hashes_of_words(found) & np.uint64(key) == 0x5EED) <= 1


@given(token_texts)
def test_passages_do_not_depend_on_the_batch(batch: list[str]) -> None:
    together = parsed(*batch).passages
    alone = [parsed(text).passages for text in batch]
    assert together.hashes.tolist() == [each for one in alone for each in one.hashes.tolist()]
    assert together.have_figures.tolist() == [each for one in alone for each in one.have_figures.tolist()]


sentence_texts = st.lists(st.text(st.sampled_from("ab1。. \n中!"), max_size=30), max_size=6)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    found = LocatedPassages.of(text, max_length=10_000)
    return [found.text(number).rstrip(" 。.!") for number in range(len(found.starts))]


def letters(text: str) -> int:
    return sum(map(str.isalnum, text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("短。这一句话比较长一些!也短", "这一句话比较长一些"),
        ("first wins. equal one. other two", "first wins"),
        ("pi is 3.14159 and e is 2.718. short.", "pi is 3.14159 and e is 2.718"),
        ("written by j. smith of the daily news. no.", "written by j. smith of the daily news"),
        (
            "a line of text that was wrapped by\na program goes on until its end. no.",
            "a line of text that was wrapped by\na program goes on until its end",
        ),
        ("a headline of words\n\nthen a text that is longer", "then a text that is longer"),
        # In texts from crawlers, each line is a paragraph.
        ("home\nnews\nsport\n" + "a word and " * 10 + "a stop\nshare this", "a word and " * 10 + "a stop"),
        ("a wrapped\nline of text\n\n" + "and a word " * 10, ("and a word " * 10).strip()),
        ("home\nnews\n" + "a word and " * 8 + "no more", "a word and " * 8 + "no more"),
        ("中文标题没有句号\n正文也没有句号但是更长", "正文也没有句号但是更长"),
    ],
)
def test_the_longest_sentence_is_found(text: str, sentence: str) -> None:
    assert max(sentences_of(text), key=letters) == " ".join(sentence.split())


@pytest.mark.parametrize("text", ["!!! ??? ...", "", "\n\n"])
def test_a_text_without_letters_has_no_sentence(text: str) -> None:
    found = ParsedTexts.of([text, "one. two", text], max_length=100)
    assert found.passages.texts.tolist() == [1, 1]
    assert found.alphanumerics.tolist() == [0, 6, 0]


@given(sentence_texts)
def test_sentences_do_not_depend_on_the_batch(batch: list[str]) -> None:
    together = ParsedTexts.of(batch, max_length=100)
    alone = [ParsedTexts.of([text], max_length=100).passages.alphanumerics.tolist() for text in batch]
    assert together.passages.alphanumerics.tolist() == [each for one in alone for each in one]
    assert together.alphanumerics.tolist() == [letters(text) for text in batch]


@given(sentence_texts)
def test_the_longest_sentence_of_each_half_is_chosen(batch: list[str]) -> None:
    fingerprinter = Fingerprinter(VERIFIED)
    for text in batch:
        own = sentences_of(text)
        halves = (own[: len(own) // 2], own[len(own) // 2 :])
        expected = [max(half, key=letters) for half in halves if half]
        found = fingerprinter.passages(text)
        assert [" ".join(each.split()).rstrip(" 。.!") for each in found] == expected


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
        # Rows of tables, including short rows.
        ("Shr 73 cts vs 55", "Shr 74 cts vs 55", False),
        ("Net 26.0 mln", "Net 27.0 mln", False),
        ("Deaths: 3", "Deaths: 4", False),
        ("\u6b7b\u4ea13\u4f8b\u3002", "\u6b7b\u4ea14\u4f8b\u3002", False),
        ("Harbour 3, Rovers 2 on 22 Nov 2026", "Harbour 3, Rovers 1 on 22 Nov 2026", False),
        # Figures of a neighbouring passage do not count.
        ("Posted 2026-11-22\nNet 26.0 mln", "Posted 2025-01-02\nNet 26.0 mln", True),
        # In a bulletin, different figures make a different passage.
        (
            "The province reported 12 new cases and 3 deaths.",
            "The province reported 0 new cases and 1 deaths.",
            False,
        ),
        ("Share this!", "SHARE  this.", True),
    ],
)
def test_figures_distinguish_passages_but_dates_do_not(one: str, other: str, are_equal: bool) -> None:
    assert (hashes(one) == hashes(other)) is are_equal


_LONG = "This sentence is long enough to be one of an article."


@pytest.mark.parametrize(
    ("rows", "alone", "amid_prose"),
    [
        ("Interest rate: 0.25 %\nMaturity: 26 June 2034\nSeller: the canton", True, True),
        ("利率：0.25%\n到期日：2034年6月26日\n发行人：州财政", True, True),
        ("سعر الفائدة: 0.25 %\nالاستحقاق: 26 يونيو 2034", True, True),
        ("Rate .... 0.25 %\nMaturity .... 26 June 2034", True, True),
        ("Rate:\n0.25 %\nMaturity:\n26 June 2034", True, True),
        ("| Rate | 0.25 % |\n| Maturity | 26 June 2034 |", True, True),
        ("Rate\n0.25 %\nMaturity\n26 June 2034", True, True),
        ("利率\n0.25%\n到期日\n2034年6月26日", True, True),
        ("Rate: 0.2 % Bids: 65.7 Sold: 51.6 At: 99", True, True),
        ("Sport\n12\nPolitics\n7", False, False),
        ("Rate\n0.25 %", False, False),
        ("Rate = 0.25 %\nMaturity = 26 June 2034", True, True),
        ("Rate\t0.25 %\nMaturity\t26 June 2034", True, True),
        ("June 9 – West Haven\nJune 12 – Tamberg", False, True),
        ("Accused: a man from Tamberg\nCourt: that of the region", False, True),
        ("About us | Contact | Careers\nTerms | Privacy | Cookies", False, False),
        ("Read more: how to sleep\nRead more: how to wake", False, False),
        ("Posted: 22 November 2026, 07:30\nUpdated: 23 November 2026, 09:10", False, False),
        ("Views: 1523\nComments: 12", False, False),
        ("07:30 – A headline\n08:10 – Another one", False, False),
        ("Price: 12.50", False, False),
    ],
)
def test_rows_of_facts_are_prose(rows: str, alone: bool, amid_prose: bool) -> None:
    """Two rows are prose if they contain facts in numbers or have prose around them; menus are not."""
    count = len(rows.splitlines())
    assert _are_prose(f"Menu\n{rows}\nFooter") == [False, *[alone] * count, False]
    assert _are_prose(f"{_LONG}\n{rows}\n{_LONG}") == [True, *[amid_prose] * count, True]


@pytest.mark.parametrize(
    ("rows", "are_prose"),
    [
        ("Product: Hazelnut spread\nBrand: Lindgren\nReason: Salmonella", True),
        ("产品：榛子酱\n品牌：林格伦\n召回原因：沙门氏菌", True),
        ("Termin: Montag, 7. Dezember 2026\nOrt: Rathaus Lund\nBeginn: 18 Uhr", True),
        ("More: How to sleep in a hot summer\nVideo: Storm over Lund\nSport: Lund wins again", False),
        ("Previous stories: the archive\nIn this issue: Lund, 28 November 2026", False),
    ],
)
def test_three_rows_of_terms_next_to_prose_are_prose(rows: str, are_prose: bool) -> None:
    for text in (f"{_LONG}\n{rows}", f"{rows}\n{_LONG}"):
        assert all(_are_prose(text)) is are_prose


def _are_prose(text: str) -> list[bool]:
    found: list[bool] = LocatedPassages.of(text, max_length=10_000).passages.are_prose.tolist()
    return found

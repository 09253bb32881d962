import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import make_tables
from esdedup.text.normalise import normal_form, normalise

# Characters whose normal form depends on neighbours, or is no single character, beside plain ones.
TRICKY = (
    "e\u0301ﬁ㎏…각ᄀ\u1161\u11a8ｶﾞ가\u200b\ud800\x00\x1e\r\n臺后乾ß İ\u0130\u00adＡ，。!\u2028\u0323"
    "\u034f\ufe0f\u3164\U000e0100"
)
of_the_tables = pytest.mark.skipif(
    unicodedata.unidata_version != make_tables.UNICODE, reason="this Python has other tables of Unicode"
)
texts = st.lists(
    st.one_of(st.text(max_size=30), st.text(st.sampled_from(TRICKY), max_size=20)).filter(
        lambda text: "<" not in text and "&" not in text
    ),
    max_size=8,
)


@pytest.mark.slow
@of_the_tables
def test_the_tables_are_those_of_the_crate() -> None:
    assert make_tables.FOLDER.joinpath("characters.txt").read_text("utf-8") == make_tables.characters()
    assert make_tables.FOLDER.joinpath("references.txt").read_text("utf-8") == make_tables.references()


@of_the_tables
@given(st.text())
def test_a_normal_form_is_that_of_python(text: str) -> None:
    assert normal_form(text) == make_tables.normal_form(text)


@given(texts)
def test_a_batch_is_normalised_like_each_text_alone(batch: list[str]) -> None:
    line_breaks = [text.replace("\r\n", "\n").replace("\r", "\n") for text in batch]
    assert normalise(batch) == [normal_form(text) for text in line_breaks]


@of_the_tables
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), max_size=40))
def test_normal_form_is_nfkc_and_case_folded(text: str) -> None:
    if all(ord(character) < 0x2E80 for character in text):
        assert normal_form(text) == unicodedata.normalize("NFKC", text).casefold()


# Combining marks of several classes, some of which stand for two, and characters before them.
MARKS = "\u0301\u0316\u0344\u0f73\u3099"


@pytest.mark.parametrize("unit", [*MARKS, MARKS, "e" + MARKS * 7], ids=ascii)
def test_no_long_run_of_marks_is_sorted(unit: str) -> None:
    """Sorting a run takes quadratic time: 100,000 marks took eleven seconds. So it is cut after every 30."""
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
def test_marks_that_occur_in_texts_are_normalised_together(text: str) -> None:
    assert normal_form(text) == unicodedata.normalize("NFKC", text).casefold()


@given(texts)
def test_normalised_text_can_be_written(batch: list[str]) -> None:
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
        ("<div data-v-7ba5bd90>a<td nowrap width=5>b<i v-if='x' hidden>c<!DOCTYPE html>", "\nabc"),
        ("<!-- never closed", "<!-- never closed"),
        ("a<STYLE>p {}</Style\n>b <script>never closed", "ab never closed"),
        ("&#" + "9" * 5_000 + "; x", "  x"),
    ],
)
def test_normalised_text_has_no_markup_case_or_width(raw: str, normal: str) -> None:
    assert normalise([raw]) == [normal]


@pytest.mark.parametrize(
    "part",
    [
        *(
            "<!--",
            "<script ",
            "<style>",
            "<a",
            "<p ",
            "&",
            "&#x",
            "</script ",
            "<",
            "<a b='",
            "='",
            "<?",
            "</",
        ),
        *(
            "<!-->",
            "<noscript>",
            "<svg><style>",
            "<script><!--",
            "<script><!--</script>",
            "<title>",
            "<a b='>",
        ),
    ],
)
def test_hostile_markup_takes_no_longer_than_other_text(part: str) -> None:
    # A quadratic pass over this would take minutes; the suite would not come to its end.
    text = part * (400_000 // len(part))
    assert len(normalise([text])) == 1


@pytest.mark.parametrize("part", [" ", "a", " a", "a ", " a=", "=", "-", " a-", "/", " /", ":", "a  ", "\n"])
@pytest.mark.parametrize("start", ["<p", "<p ", "<p a", "<p a ", "<p a=", "<p a b", "<p a b "])
def test_hostile_attributes_take_no_longer_than_other_text(start: str, part: str) -> None:
    text = start + part * (400_000 // len(part))
    assert len(normalise([text])) == 1

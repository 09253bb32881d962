import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, VERIFIED
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.text.left_out import LocatedPassages
from esdedup.text.parsed import ParsedTexts

texts = st.lists(st.text(st.sampled_from("ab1。. \n中!"), max_size=30), max_size=6)


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
        # As crawlers bring them: a line is a paragraph.
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
    assert found.letters.tolist() == [0, 6, 0]


@given(texts)
def test_sentences_do_not_depend_on_the_batch(batch: list[str]) -> None:
    together = ParsedTexts.of(batch, max_length=100)
    alone = [ParsedTexts.of([text], max_length=100).passages.letters.tolist() for text in batch]
    assert together.passages.letters.tolist() == [each for one in alone for each in one]
    assert together.letters.tolist() == [letters(text) for text in batch]


@given(texts)
def test_the_longest_sentence_of_each_half(batch: list[str]) -> None:
    fingerprinter = Fingerprinter(VERIFIED)
    for text in batch:
        own = sentences_of(text)
        halves = (own[: len(own) // 2], own[len(own) // 2 :])
        expected = [max(half, key=letters) for half in halves if half]
        found = fingerprinter.passages(text)
        assert [" ".join(each.split()).rstrip(" 。.!") for each in found] == expected


def test_rows_are_joined_where_one_alone_is_too_short() -> None:
    """Not over a blank line, nor after a full stop or an East Asian character."""
    fingerprinter = Fingerprinter(CLASSIC)
    for text, longest in (
        ("Net 26 mln\nRevs 110 mln\n\nPay April 15", "net 26 mln\nrevs 110 mln"),
        ("Pay April 15\nIt rose. So did", "pay april 15\nit rose"),
        ("So did costs\n净利润\n营收", "so did costs\n净利润"),
        ("净利润增长\n营收", "净利润增长"),
    ):
        assert fingerprinter.passages(text) == [longest]
    assert fingerprinter.passages("...") == []

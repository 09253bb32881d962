import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.text.characters import SEPARATOR, classes, code_points
from esdedup.text.sentences import Sentences

texts = st.lists(st.text(st.sampled_from("ab1。. \n中!"), max_size=30), max_size=6)


def sentences_of(batch: list[str]) -> Sentences:
    points = code_points("".join(text + SEPARATOR for text in batch))
    return Sentences.of(points, classes()[points])


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
    found = sentences_of(["before. it", text, "after"])
    assert found.string(int(found.longest()[1])).strip() == sentence


@pytest.mark.parametrize("text", ["!!! ??? ...", "", "\n\n"])
def test_a_text_without_letters_has_no_sentence(text: str) -> None:
    found = sentences_of([text, "one. two", text])
    assert found.texts.tolist() == [1, 1]
    assert found.letters_of_texts.tolist() == [0, 6, 0]


@given(texts)
def test_sentences_do_not_depend_on_the_batch(batch: list[str]) -> None:
    together = sentences_of(batch)
    alone = [sentences_of([text]) for text in batch]
    assert [together.string(each, max_length=5) for each in range(len(together.starts))] == [
        one.string(each, max_length=5) for one in alone for each in range(len(one.starts))
    ]
    assert together.letters_of_texts.tolist() == [letters(text) for text in batch]


@given(texts)
def test_the_longest_sentence_of_each_half(batch: list[str]) -> None:
    found = sentences_of(batch)
    expected = []
    for text in range(len(batch)):
        own = [at for at, of in enumerate(found.texts.tolist()) if of == text]
        for half in range(2):
            part = own[len(own) * half // 2 : len(own) * (half + 1) // 2]
            if part:
                expected.append(max(part, key=lambda at: (letters(found.string(at)), -at)))
    assert found.longest_of_halves().tolist() == expected


def test_rows_are_joined_where_one_alone_is_too_short() -> None:
    """Not over a blank line, nor after a full stop or an East Asian character."""
    text = "Net 26 mln\nRevs 110 mln\n\nPay April 15\nIt rose. So did costs\n净利润\n营收"
    found = sentences_of([text]).with_rows_joined()
    strings = [found.string(each).strip() for each in range(len(found.texts))]
    assert strings == ["Net 26 mln\nRevs 110 mln", "Pay April 15\nIt rose", "So did costs\n净利润", "营收"]
    assert found.letters.tolist() == [len("Net26mlnRevs110mln"), len("PayApril15Itrose"), 13, 2]
    assert len(sentences_of(["", "..."]).with_rows_joined().texts) == 0

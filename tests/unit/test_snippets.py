import pytest

from esdedup.fields import Fields
from esdedup.reading.results import Row
from esdedup.reading.row_details import snippets_body, snippets_of

ROW = Row(id="1", index="news", root="r", title="A title", similar=0, matching=1)


def shown(**highlight: list[str]) -> tuple[str, str]:
    """Return title and text of a snippet, with searched words in brackets."""
    (snippet,) = snippets_of([ROW], [{"_index": "news", "_id": "1", "highlight": highlight}], fields=Fields())

    def written(parts: object) -> str:
        return "".join(f"[{part.text}]" if part.is_match else part.text for part in parts)  # type: ignore[attr-defined]

    return written(snippet.title), written(snippet.text)


def test_searched_words_are_marked() -> None:
    assert shown(title=["The \ue000ferry\ue001"], text=["A \ue000ferry\ue001, \ue000two\ue001 docks"]) == (
        "The [ferry]",
        "A [ferry], [two] docks",
    )


def test_what_is_not_found_has_no_marks() -> None:
    assert shown() == ("A title", "")
    # Of a field with several values, the first counts.
    assert shown(title=["one", "two"]) == ("one", "")
    (snippet,) = snippets_of([ROW], [{"_index": "other", "_id": "1"}], fields=Fields())
    assert snippet.title[0].text == "A title"


@pytest.mark.parametrize(
    ("fragment", "visible"),
    [
        ("a <b>bold</b>\n\n word", "a bold word"),
        ('class="x">the rest <a href="https://a.exa', "the rest"),
        ("3 > 2 and 1 < 2", "3 > 2 and 1 < 2"),
        ('<p title="\ue000ferry\ue001">a \ue000ferry\ue001</p>', "…a [ferry]"),
        ("Fish &amp; chips", "Fish & chips"),
    ],
)
def test_markup_is_not_shown(fragment: str, visible: str) -> None:
    assert shown(text=[fragment])[1] == visible


@pytest.mark.parametrize(
    ("fragment", "is_cut"),
    [
        ("Word " * 40, (False, True)),
        ("word " * 35 + "\ue000ferry\ue001.", (True, False)),
        ("\ue000ferry\ue001 " * 40, (True, True)),
        ("Word " * 40 + "“the end.”", (False, False)),
        ("市议会" * 70, (False, True)),
        ("市议会" * 70 + "。", (False, False)),
        ("short, and without a full stop", (False, False)),
    ],
)
def test_an_ellipsis_stands_where_a_sentence_is_cut(fragment: str, is_cut: tuple[bool, bool]) -> None:
    text = shown(text=[fragment])[1]
    assert (text.startswith("…"), text.endswith("…")) == is_cut


def test_rows_of_one_id_in_two_indices_are_told_apart() -> None:
    rows = [ROW, ROW.model_copy(update={"index": "old"})]
    hits = [
        {"_index": "old", "_id": "1", "highlight": {"text": ["old text"]}},
        {"_index": "news", "_id": "1", "highlight": {"text": ["new text"]}},
    ]
    found = snippets_of(rows, hits, fields=Fields())
    assert [each.text[0].text for each in found] == ["new text", "old text"]
    assert snippets_body(rows, None, fields=Fields())["query"] == {"ids": {"values": ["1"]}}

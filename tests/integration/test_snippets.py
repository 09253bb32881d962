"""Rows with the searched words marked, from a real node."""

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Reader
from tests.support.forests import Read
from tests.support.names import Names


@pytest.mark.parametrize("sort", ["relevance", "newest", "similar-desc"])
def test_rows_say_where_the_words_are(read: Read, unchanged: tuple[str, str], sort: str) -> None:
    query = read("search_query", unchanged[0], "harbour")
    page = read("list", unchanged[0], query=query, sort=sort, head="earliest", details=True)
    assert page.rows
    for row in page.rows:
        marked = [
            part.text for part in (*row.details.snippet.title, *row.details.snippet.text) if part.is_match
        ]
        assert marked
        assert {each.lower() for each in marked} == {"harbour"}
        assert "".join(part.text for part in row.details.snippet.title) == row.title
        assert len("".join(part.text for part in row.details.snippet.text)) < 400


def test_without_words_a_row_shows_how_its_text_begins(read: Read, unchanged: tuple[str, str]) -> None:
    for row in read("list", unchanged[0], details=True, size=5).rows:
        text = read("article", unchanged[0], row.id, in_index=row.index).text
        (part,) = row.details.snippet.text
        assert not part.is_match
        assert " ".join(text.split()).startswith(part.text.removesuffix("…"))


def test_a_text_of_any_length_has_a_snippet(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("long")
    texts = {"long": "word " * 300_000 + "ferry", "empty": "", "one": "ferry" * 4_000}
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        actions = [{"_index": index, "_id": each, "text": text} for each, text in texts.items()]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    found = Reader(es).list(index, details=True).rows
    rows = {row.id: row.details.snippet for row in found if row.details is not None}
    assert rows.keys() == texts.keys()
    assert rows["empty"].text == ()
    assert len(rows["long"].text[0].text) < 400

"""What a reader refuses before it sends anything."""

from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import Fields, Reader, SettingError
from esdedup.reading.search_form import words


@pytest.fixture
def reader() -> Reader:
    # No server answers there: a request would raise ServerUnavailable.
    return Reader(Elasticsearch("http://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("operation", "arguments", "options", "message"),
    [
        ("list", ["news"], {"query": "ferry"}, "the query is a str; it must be a dict"),
        ("list", ["news"], {"query": "ferry", "sort": "newest"}, "the query is a str"),
        ("list", ["news"], {"after": 5}, "the cursor is 5"),
        ("list", ["news"], {"size": "20"}, "whole numbers"),
        ("list", [["news"]], {}, "the index is a list, not a string"),
        ("list", [""], {}, "the name of the index is empty"),
        ("source_names", ["news"], {"size": 0}, "0 names of sources"),
        ("source_names", ["news"], {"size": 65_537}, "65,537 names of sources"),
        ("timeline", ["news", None], {}, "the root is None"),
        ("timeline", ["news", ""], {}, "the root is ''"),
        ("similar_to_text", ["news", None], {}, "the text is a NoneType"),
    ],
)
def test_invalid_arguments_are_refused(
    reader: Reader, operation: str, arguments: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        getattr(reader, operation)(*arguments, **options)


@pytest.mark.parametrize("forest", ["", "Upper", "one,two", "all-*"])
def test_a_forest_needs_the_name_of_one_index(forest: str) -> None:
    with pytest.raises(SettingError, match="cannot name one index"):
        Reader(Elasticsearch("http://127.0.0.1:9"), forest=forest)


@pytest.mark.parametrize("text", ["", "  ", "!!!", "- …"])
def test_a_query_without_words_finds_nothing(text: str) -> None:
    assert words(text, Fields()) == {"match_none": {}}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("ferry port", "ferry port"),
        ("ferry - port", "ferry - port"),
        ("渡轮 码头", '"渡轮" "码头"'),
        ("-渡轮", '-"渡轮"'),
        ("long-term -well-known", '"long-term" -"well-known"'),
        ('"new ferry" "to the', '"new ferry" "to the'),
        ("(ferry|port) fer*", "(ferry|port) fer*"),
        ("(渡轮 | naïve)", '("渡轮" | "naïve")'),
        ("a|b C++ 北京*", "a|b C++ 北京*"),
        ("2026", "2026"),
        ("😀", "😀"),
    ],
)
def test_what_the_analyser_would_cut_is_sent_as_a_phrase(text: str, sent: str) -> None:
    assert words(text, Fields())["simple_query_string"]["query"] == sent

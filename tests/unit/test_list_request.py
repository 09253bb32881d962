"""What may be asked of the list, and which sort it has if none is chosen."""

from typing import Any

import pytest

from esdedup import Fields, SettingError
from esdedup.elastic.requests import Query
from esdedup.reading.list_request import ListRequest, default_sort
from esdedup.reading.paging import Paging
from esdedup.reading.queries import ranks_articles
from esdedup.reading.search_form import narrowed

MATCH: Query = {"match": {"title": "ferry"}}
TERM: Query = {"term": {"source": "A"}}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (None, False),
        ({}, False),
        ({"match_all": {}}, False),
        (TERM, False),
        ({"range": {"published_at": {"gte": 0}}}, False),
        ({"constant_score": {"filter": MATCH}}, False),
        ({"bool": {"filter": [MATCH], "must_not": MATCH}}, False),
        ({"bool": {"must": [TERM, {"bool": {"filter": MATCH}}]}}, False),
        ({"bool": {"must": None}}, False),
        (MATCH, True),
        ({"query_string": {"query": "ferry"}}, True),
        ({"function_score": {"query": TERM}}, True),
        ({"bool": {"must": MATCH, "filter": TERM}}, True),
        ({"bool": {"should": [TERM, MATCH]}}, True),
        ({"bool": {"must": {"bool": {"should": [MATCH]}}}}, True),
    ],
)
def test_a_query_ranks_articles_if_it_has_words(query: Query | None, expected: bool) -> None:
    assert ranks_articles(query) is expected


def test_the_default_sort_is_relevance_for_words_and_else_newest() -> None:
    words = narrowed("ferry", fields=Fields(), filters=[TERM], since="2026-01-01")
    filters = narrowed(None, fields=Fields(), filters=[TERM], since="2026-01-01")
    assert default_sort(words, only=None) == "relevance"
    assert default_sort(words, only="similar") == default_sort(words, only="single") == "newest"
    assert default_sort(filters, only=None) == default_sort(None, only=None) == "newest"


def request(**values: Any) -> ListRequest:
    given: dict[str, Any] = {
        "index": "news",
        "fields": Fields(),
        "query": None,
        "sort": "newest",
        "head": None,
        "counting": "similar",
        "only": None,
        "dedup": True,
        "paging": Paging(page=1, size=20),
    }
    return ListRequest(**given | values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sort": "random"}, "there is no sort 'random'; choose from relevance, newest"),
        ({"head": "shortest"}, "no head"),
        ({"counting": "all"}, "no counting"),
        ({"only": "double"}, "no only"),
        ({"query": "ferry"}, "the query is a str"),
        ({"counting": "matching"}, "counting 'matching' needs a sort by count"),
        ({"counting": "matching", "sort": "relevance"}, "needs a sort by count"),
        ({"sort": "relevance", "only": "similar"}, "needs the sort newest or oldest"),
        ({"sort": "similar-asc", "only": "single"}, "needs the sort newest or oldest"),
        ({"dedup": False, "sort": "similar-asc"}, "without dedup"),
        ({"dedup": False, "only": "similar"}, "without dedup"),
        ({"dedup": False, "head": "best"}, "without dedup"),
    ],
)
def test_what_does_not_exist_or_go_together_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        request(**values)


@pytest.mark.parametrize(
    ("paging", "message"),
    [
        ({"page": 0, "size": 20}, "at least 1"),
        ({"page": 1, "size": 0}, "at least 1"),
        ({"page": 1, "size": 1_001}, "at most 1,000"),
        ({"page": 2, "size": 20, "after": "x"}, "not both"),
        ({"page": "2", "size": 20}, "whole numbers"),
        ({"page": 1, "size": 20, "after": 5}, "the cursor is 5, which is not a string"),
    ],
)
def test_pages_that_do_not_exist_are_refused(paging: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Paging(**paging)


@pytest.mark.parametrize(
    ("sort", "instead"), [("newest", "cursor `next`"), ("relevance", "narrow the query")]
)
def test_numbered_pages_end_at_row_10_000(sort: str, instead: str) -> None:
    assert request(sort=sort, paging=Paging(page=500, size=20)).start().offset == 9_980
    with pytest.raises(SettingError, match=instead):
        request(sort=sort, paging=Paging(page=501, size=20)).start()


def test_a_cursor_fits_its_own_list_only() -> None:
    first = request(paging=Paging(page=1, size=20))
    cursor = first.start().next(rows=20, place=[1_790_000_000_000, 7, "news"])
    text = first.write(cursor)
    again = Paging(page=1, size=20, after=text)
    assert request(paging=again).start() == cursor
    # A page of another size continues at the same place.
    assert request(paging=Paging(page=1, size=5, after=text)).start() == cursor
    for other in ({"sort": "oldest"}, {"query": MATCH}, {"only": "single"}, {"dedup": False}, {"index": "x"}):
        with pytest.raises(SettingError, match="another list"):
            request(**other, paging=again).start()
    for broken in ("", "!", "nonsense", text[:-3]):
        with pytest.raises(SettingError, match="not a valid cursor"):
            request(paging=Paging(page=1, size=20, after=broken)).start()

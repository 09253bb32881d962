"""Reading without a server: refused arguments, requests of operations, and results made from responses."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import Reader, ServerUnavailable, SettingError
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.limits import Limits
from esdedup.elastic.mappings import article_index
from esdedup.elastic.pages import all_hits
from esdedup.elastic.requests import (
    ClosePointInTime,
    OpenPointInTime,
    Query,
    Request,
    Requests,
    Search,
    SearchPoint,
)
from esdedup.fields import Fields
from esdedup.fingerprint.bands import TRIPLES
from esdedup.fingerprint.profile import CLASSIC
from esdedup.neighbours.relation import relation_of
from esdedup.reading.articles import article
from esdedup.reading.clusters import similar
from esdedup.reading.excerpts import search_with_excerpts
from esdedup.reading.list_request import ListRequest, default_sort, ranks_articles
from esdedup.reading.paging import Paging
from esdedup.reading.queries import values_of
from esdedup.reading.results import Excerpts, QuotedStory, Row
from esdedup.reading.row_details import snippets_body, snippets_of
from esdedup.reading.scope import CheckedIndex, Scope
from esdedup.reading.search_form import SearchForm, words
from esdedup.reading.versions import sources

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


def test_the_default_sort_is_relevance_only_for_words() -> None:
    words = SearchForm(words="ferry", since="2026-01-01").query(Fields(), [TERM])
    filters = SearchForm(since="2026-01-01").query(Fields(), [TERM])
    assert default_sort(words) == "relevance"
    assert default_sort(filters) == default_sort(None) == "newest"


def request(**values: Any) -> ListRequest:
    given: dict[str, Any] = {
        "index": "news",
        "fields": Fields(),
        "query": None,
        "sort": "newest",
        "head": None,
        "dedup": True,
        "paging": Paging(page=1, size=20),
    }
    return ListRequest(**given | values)


@pytest.mark.parametrize(
    ("sort", "instead"), [("newest", "cursor `next`"), ("relevance", "narrow the query")]
)
def test_numbered_pages_end_at_row_10_000(sort: str, instead: str) -> None:
    assert request(sort=sort, paging=Paging(page=500, size=20)).start().offset == 9_980
    with pytest.raises(SettingError, match=instead):
        request(sort=sort, paging=Paging(page=501, size=20)).start()


def test_a_cursor_is_valid_only_for_its_list() -> None:
    first = request(paging=Paging(page=1, size=20))
    cursor = first.start().next(rows=20, place=[1_790_000_000_000, 7, "news"])
    text = first.write(cursor)
    again = Paging(page=1, size=20, after=text)
    assert request(paging=again).start() == cursor
    # A results page of another size continues at the same place.
    assert request(paging=Paging(page=1, size=5, after=text)).start() == cursor
    for other in ({"sort": "oldest"}, {"query": MATCH}, {"min_similar": 1}, {"dedup": False}, {"index": "x"}):
        with pytest.raises(SettingError, match="another list"):
            request(**other, paging=again).start()
    for broken in ("", "!", "nonsense", text[:-3]):
        with pytest.raises(SettingError, match="not a valid cursor"):
            request(paging=Paging(page=1, size=20, after=broken)).start()


@pytest.fixture
def reader() -> Reader:
    # No server listens at this address, so a request would raise ServerUnavailable.
    return Reader(Elasticsearch("http://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("operation", "arguments", "options", "message"),
    [
        *(
            ("list", ["news"], options, message)
            for options, message in (
                ({"sort": "random"}, "there is no sort 'random'; choose from relevance, newest"),
                ({"head": "shortest"}, "no head"),
                ({"query": "ferry"}, "the query is a str; it must be a dict"),
                ({"query": "ferry", "sort": "newest"}, "the query is a str"),
                ({"dedup": False, "sort": "similar-asc"}, "without dedup"),
                ({"dedup": False, "min_similar": 1}, "without dedup"),
                ({"dedup": False, "head": "best"}, "without dedup"),
                ({"page": 0}, "at least 1"),
                ({"size": 0}, "at least 1"),
                ({"size": 1_001}, "at most 1,000"),
                ({"page": 2, "after": "x"}, "not both"),
                ({"page": "2"}, "whole numbers"),
                ({"after": 5}, "the cursor is 5, which is not a string"),
                ({"size": "20"}, "whole numbers"),
                ({"min_similar": -1}, "at least 0"),
                ({"min_sources": 1_001}, "at most 1,000"),
            )
        ),
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
def test_a_forest_must_name_one_index(forest: str) -> None:
    with pytest.raises(SettingError, match="is not a valid name for an index"):
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
def test_words_that_the_analyser_splits_become_a_phrase(text: str, sent: str) -> None:
    assert words(text, Fields())["simple_query_string"]["query"] == sent


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (" The ferry\n", "The ferry"),
        (["The ferry", " ", "An update"], "The ferry, An update"),
        (["", None], None),
        (" ", None),
        (7, "7"),
        ({"text": "x"}, None),
        (None, None),
    ],
)
def test_titles_are_shown_as_one_string(title: Any, shown: str | None) -> None:
    hit = {"_id": "1", "_index": "news", "_source": {"title": title}}
    assert values_of(hit, Fields())["title"] == shown


ROW = Row(id="1", index="news", root="r", title="A title", similar=0, matching=1)


def shown(**highlight: list[str]) -> tuple[str, str]:
    """Return the title and text of a snippet, with search terms in brackets."""
    (snippet,) = snippets_of([ROW], [{"_index": "news", "_id": "1", "highlight": highlight}], fields=Fields())

    def written(parts: object) -> str:
        return "".join(f"[{part.text}]" if part.is_match else part.text for part in parts)  # type: ignore[attr-defined]

    return written(snippet.title), written(snippet.text)


def test_search_terms_are_highlighted() -> None:
    assert shown(title=["The \ue000ferry\ue001"], text=["A \ue000ferry\ue001, \ue000two\ue001 docks"]) == (
        "The [ferry]",
        "A [ferry], [two] docks",
    )


def test_snippets_without_matches_have_no_highlighting() -> None:
    assert shown() == ("A title", "")
    # If a field has several values, the first is shown.
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
def test_an_ellipsis_marks_where_a_sentence_is_cut(fragment: str, is_cut: tuple[bool, bool]) -> None:
    text = shown(text=[fragment])[1]
    assert (text.startswith("…"), text.endswith("…")) == is_cut


def test_equal_ids_in_two_indices_are_distinct_rows() -> None:
    rows = [ROW, ROW.model_copy(update={"index": "old"})]
    hits = [
        {"_index": "old", "_id": "1", "highlight": {"text": ["old text"]}},
        {"_index": "news", "_id": "1", "highlight": {"text": ["new text"]}},
    ]
    found = snippets_of(rows, hits, fields=Fields())
    assert [each.text[0].text for each in found] == ["new text", "old text"]
    assert snippets_body(rows, None, fields=Fields())["query"] == {"ids": {"values": ["1"]}}


def run(requests: Requests[Any], *answers: Any) -> tuple[list[Request], Any]:
    """Send responses to an operation one by one; return its requests and its result."""
    asked: list[Request] = [next(requests)]
    for answer in answers:
        try:
            asked.append(requests.send(answer))
        except StopIteration as end:
            assert len(asked) == len(answers)
            return asked, end.value
    raise AssertionError(f"the operation sent another request: {asked[-1]}")


@pytest.mark.parametrize(
    ("root", "part_of", "links", "searches"),
    [(None, None, 0, [1]), ("r", None, 0, [3]), ("r", None, 1, [3, 2]), ("r", "w", 0, [3, 2])],
)
def test_excerpts_are_read_only_if_there_are_links(
    root: str | None, part_of: str | None, links: int, searches: list[int]
) -> None:
    answer: dict[str, Any] = {
        "hits": {"hits": [], "total": {"value": links}},
        "aggregations": {
            "clusters": {"count": 0},
            **{name: {"buckets": []} for name in ("newest", "roots")},
            **{name: {"hits": {"hits": []}} for name in ("some", "one")},
        },
    }
    ready = CheckedIndex(
        name="news",
        index="news",
        not_set_up=(),
        fields=Fields(),
        source_field=None,
        is_routed_by_root=False,
        mappings={},
        unsearchable={},
    )
    requests = search_with_excerpts(ready, TERM, root=root, part_of=part_of)
    asked, (_, story) = run(requests, *([answer] * each for each in searches))
    bodies = [each.bodies for each in asked if isinstance(each, Search)]
    assert (bodies[0][0], [*map(len, bodies)]) == (TERM, searches)
    assert story.get("excerpts", Excerpts()).articles == links
    # A quoted story may have no articles.
    assert story.get("excerpt_of") == (QuotedStory(root="w", articles=0, first=None) if part_of else None)


def served(requests: Requests[Any], answer: Callable[[Request], Any]) -> Any:
    """Answer all requests of an operation with `answer`; return the result of the operation."""
    response: Any = None
    while True:
        try:
            asked = requests.send(response)
        except StopIteration as end:
            return end.value
        response = answer(asked)


def hits(*ids: str) -> dict[str, Any]:
    return {"hits": {"hits": [{"_id": each, "sort": [each, 1]} for each in ids]}}


def test_reading_all_hits_closes_the_point_in_time() -> None:
    body = {"size": 2, "sort": ["name"]}
    asked, found = run(all_hits("news", body), "point", hits("a", "b"), hits("c", "d"), hits(), None)
    pit = {"id": "point", "keep_alive": "5m"}
    assert asked == [
        OpenPointInTime(index="news"),
        SearchPoint(index="news", body={**body, "pit": pit}),
        SearchPoint(index="news", body={**body, "pit": pit, "search_after": ["b", 1]}),
        SearchPoint(index="news", body={**body, "pit": pit, "search_after": ["d", 1]}),
        ClosePointInTime(index="news", point="point"),
    ]
    assert [hit["_id"] for hit in found] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("orders", ["abcdefg", "aaaaaaa", "aabbbcc", "abbbbbc", "abbcccd"])
@pytest.mark.parametrize("lost", list(itertools.combinations(range(8), 2)))
def test_hits_continue_after_a_lost_point_in_time(orders: str, lost: tuple[int, ...]) -> None:
    stored = [{"_id": str(at), "sort": [order, at]} for at, order in enumerate(orders)]
    searches = itertools.count()

    def answer(asked: Request) -> Any:
        match asked:
            case OpenPointInTime():
                return "point"
            case SearchPoint(body=body):
                after = body.get("search_after", [])
                rest = [hit for hit in stored if not after or hit["sort"][: len(after)] > after]
                return None if next(searches) in lost else {"hits": {"hits": rest[:2]}}
            case _:
                return None

    assert served(all_hits("news", {"size": 2, "sort": ["name"]}), answer) == stored


def test_unordered_hits_cannot_continue_after_a_lost_point() -> None:
    body = {"size": 2, "sort": ["_doc"]}
    with pytest.raises(ServerUnavailable, match="its server was restarted"):
        run(all_hits("news", body), "point", hits("a", "b"), None)
    _, found = run(all_hits("news", body), "point", None, "other", hits("a"), None)
    assert [hit["_id"] for hit in found] == ["a"]


def test_reading_stops_if_every_point_in_time_is_lost() -> None:
    with pytest.raises(ServerUnavailable):
        run(all_hits("news", {"size": 2, "sort": ["name"]}), *["point", None] * 20)


def test_no_query_has_more_terms_than_the_limit() -> None:
    search = NodeSearch(
        forest="forest",
        relation=relation_of(CLASSIC),
        layout=TRIPLES,
        limits=Limits(max_terms=2),
    )
    answer = [{"aggregations": {"roots": {"buckets": [{"key": "a", "doc_count": 1}]}}}]
    nothing: list[Any] = [{"aggregations": {"roots": {"buckets": []}}}]
    asked, found = run(search.roots_with_leaves(["c", "b", "a"]), answer, nothing)
    terms = [
        request.bodies[0]["query"]["bool"]["filter"][0]["terms"]["root"]
        for request in asked
        if isinstance(request, Search)
    ]
    assert terms == [["a", "b"], ["c"]]
    assert found == {"a"}


def test_only_the_requested_article_is_read_with_text() -> None:
    mappings = {"news": article_index(Fields())["mappings"]}
    for operation, has_text in (
        (article(Scope(), "news", "1"), True),
        (similar(Scope(), "news", "1"), False),
        (sources(Scope(), "news", "1"), False),
    ):
        next(operation)
        asked = operation.send(mappings)
        assert isinstance(asked, Search)
        assert ("text" in asked.bodies[0]["_source"]) is has_text

"""Operations without a server: what they ask for, and what they make of the answers."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from esdedup import ServerUnavailable
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.limits import Limits
from esdedup.elastic.mappings import article_index
from esdedup.elastic.pages import all_hits
from esdedup.elastic.requests import ClosePointInTime, OpenPointInTime, Request, Requests, Search, SearchPoint
from esdedup.fields import Fields
from esdedup.fingerprint.profile import CLASSIC
from esdedup.neighbours.relation import relation_of
from esdedup.reading.articles import article
from esdedup.reading.clusters import similar
from esdedup.reading.scope import Scope
from esdedup.reading.sources import sources


def run(requests: Requests[Any], *answers: Any) -> tuple[list[Request], Any]:
    """Send an operation its answers one after the other; return its requests and its result."""
    asked: list[Request] = [next(requests)]
    for answer in answers:
        try:
            asked.append(requests.send(answer))
        except StopIteration as end:
            assert len(asked) == len(answers)
            return asked, end.value
    raise AssertionError(f"the operation asks for more: {asked[-1]}")


def served(requests: Requests[Any], answer: Callable[[Request], Any]) -> Any:
    """Answer an operation's requests; return its result."""
    said: Any = None
    while True:
        try:
            asked = requests.send(said)
        except StopIteration as end:
            return end.value
        said = answer(asked)


def hits(*ids: str) -> dict[str, Any]:
    return {"hits": {"hits": [{"_id": each, "sort": [each, 1]} for each in ids]}}


def test_all_hits_are_read_page_by_page_and_the_point_is_closed() -> None:
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
def test_hits_go_on_where_they_were_when_a_point_in_time_is_lost(orders: str, lost: tuple[int, ...]) -> None:
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


def test_hits_in_no_order_end_with_their_point_in_time() -> None:
    body = {"size": 2, "sort": ["_doc"]}
    with pytest.raises(ServerUnavailable, match="its server was started again"):
        run(all_hits("news", body), "point", hits("a", "b"), None)
    _, found = run(all_hits("news", body), "point", None, "other", hits("a"), None)
    assert [hit["_id"] for hit in found] == ["a"]


def test_a_server_that_forgets_each_point_at_once_is_given_up() -> None:
    with pytest.raises(ServerUnavailable):
        run(all_hits("news", {"size": 2, "sort": ["name"]}), *["point", None] * 20)


def test_no_query_has_more_terms_than_the_limit() -> None:
    search = NodeSearch(
        forest="forest",
        relation=relation_of(CLASSIC),
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


def test_only_the_article_itself_is_read_with_its_text() -> None:
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

"""Blocking and async clients raise server errors in the operation that made the request."""

import asyncio
import dataclasses
import gc
import weakref
from collections.abc import Callable
from typing import Any

import elastic_transport
import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.elastic.execute import ServerCache, execute, execute_async, hit_pages
from esdedup.elastic.forest.meta import Meta
from esdedup.elastic.mappings import article_index, forest_index
from esdedup.elastic.pages import all_hits
from esdedup.elastic.patience import patient
from esdedup.elastic.requests import (
    AskOwner,
    ReadClock,
    Requests,
    carrying,
    recent,
    refresh,
    search,
)
from esdedup.errors import IndexNotReady, ServerError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import CLASSIC
from esdedup.reading.clusters import ForestScope
from esdedup.reading.explanation import explain_articles
from tests.support.between import Answer, Send, Sent, client_with

URL = "http://127.0.0.1:9"
BODY: dict[str, Any] = {"size": 1, "sort": ["name"]}
HIT = {"_id": "1", "sort": ["a", 1]}
REFUSED = {"error": {"type": "x", "reason": "refused on purpose"}}

Answers = Callable[..., list[str]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Return a function that queues server responses, and returns the list of requests."""

    def answers(*queue: tuple[int, Any] | Exception) -> list[str]:
        left, asked = list(queue), list[str]()

        def answer(_: object, method: str, target: str, **__: Any) -> elastic_transport.TransportApiResponse:
            asked.append(f"{method} {target.partition('?')[0]}")
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            headers = elastic_transport.HttpHeaders({"x-elastic-product": "Elasticsearch"})
            node = elastic_transport.NodeConfig("http", "127.0.0.1", 9)
            meta = elastic_transport.ApiResponseMeta(found[0], "1.1", headers, 0.0, node)
            return elastic_transport.TransportApiResponse(meta, found[1])

        async def answer_async(*request: Any, **options: Any) -> elastic_transport.TransportApiResponse:
            return answer(*request, **options)

        monkeypatch.setattr(elastic_transport.Transport, "perform_request", answer)
        monkeypatch.setattr(elastic_transport.AsyncTransport, "perform_request", answer_async)
        return asked

    return answers


def with_both_clients(operation: Callable[[], Requests[Any]]) -> list[Any]:
    async def with_async_client() -> Any:
        async with AsyncElasticsearch(URL) as client:
            return await execute_async(client, operation())

    with Elasticsearch(URL) as client:
        return [execute(client, operation()), asyncio.run(with_async_client())]


def test_an_operation_can_continue_after_an_error_response(answers: Answers) -> None:
    def found() -> Requests[str]:
        try:
            yield from search("news", BODY)
        except IndexNotReady as error:
            (other,) = yield from search("others", BODY)
            return f"{error.index} {other}"
        return "unreachable"

    asked = answers(*2 * [(404, REFUSED), (200, "found")])
    assert with_both_clients(found) == ["news found", "news found"]
    assert asked == 2 * ["POST /news/_search", "POST /others/_search"]


def test_further_searches_are_sent_with_the_first(answers: Answers) -> None:
    def twice() -> Requests[list[Any]]:
        (one,) = yield from search("news", BODY)
        (other,) = yield from search("news", BODY)
        return [one, other]

    def never() -> Requests[str]:
        yield from ()
        return "nothing was searched"

    first = (200, {"responses": [{"took": 1}, {"took": 2}, {"took": 3}]})
    asked = answers(*2 * [first, (200, "last")])
    expected: Any = ([{"took": 1}, "last"], [{"took": 2}, {"took": 3}])
    assert with_both_clients(lambda: carrying(twice(), "news", BODY, BODY)) == 2 * [expected]
    assert asked == 2 * ["POST /_msearch", "POST /news/_search"]
    answers(*2 * [(200, "alone")])
    expected = ("nothing was searched", ["alone"])
    assert with_both_clients(lambda: carrying(never(), "news", BODY)) == 2 * [expected]


def test_an_error_in_combined_searches_reaches_the_operation(answers: Answers) -> None:
    def found() -> Requests[str]:
        try:
            yield from search("news", BODY)
        except IndexNotReady:
            (other,) = yield from search("others", BODY)
            return f"others {other}"
        return "unreachable"

    answers(*2 * [(404, REFUSED), (200, "found"), (200, "carried")])
    expected = ("others found", ["carried"])
    assert with_both_clients(lambda: carrying(found(), "news", BODY)) == 2 * [expected]


def test_a_response_is_cached_for_ten_seconds(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    known = ServerCache()
    asked = answers(*((200, f"answer {number}") for number in range(4)))
    with Elasticsearch(URL) as client:

        def answer(body: Any) -> Any:
            return execute(client, recent("news", body), known=known)

        assert [answer(BODY), answer(BODY)] == 2 * ["answer 0"]
        assert answer(BODY | {"size": 2}) == "answer 1"
        now_s += 9.9
        assert answer(BODY) == "answer 0"
        now_s += 0.2
        assert answer(BODY) == "answer 2"
        # Without a cache, each search is sent.
        assert execute(client, recent("news", BODY)) == "answer 3"
    assert len(asked) == 4


def test_a_failed_refresh_is_retried(answers: Answers) -> None:
    known = ServerCache(refresh_interval_s=60.0)
    asked = answers((500, REFUSED), (200, {}))
    with Elasticsearch(URL) as client:
        with pytest.raises(ServerError, match="cannot refresh the index 'news': refused on purpose"):
            execute(client, refresh("news"), known=known)
        execute(client, refresh("news"), known=known)
        execute(client, refresh("news"), known=known)
    assert asked == 2 * ["POST /news/_refresh"]


def test_asking_a_missing_owner_returns_none() -> None:
    def asked() -> Requests[Any]:
        return (yield AskOwner(text="some text", site=None))

    assert with_both_clients(asked) == [None, None]


def test_a_failed_search_closes_its_point_in_time(answers: Answers) -> None:
    page = {"hits": {"hits": [HIT]}}
    expected = ["POST /news/_pit", "POST /_search", "POST /_search", "DELETE /_pit"]
    with Elasticsearch(URL) as client:
        for closed in ((200, {}), (500, REFUSED)):
            asked = answers((200, {"id": "point"}), (200, page), (400, REFUSED), closed)
            with pytest.raises(ServerError, match="cannot search the index 'news': refused on purpose"):
                execute(client, all_hits("news", BODY))
            assert asked == expected
        asked = answers((200, {"id": "point"}), (200, page), (400, REFUSED), (200, {}))
        with pytest.raises(ServerError, match="refused on purpose"):
            list(hit_pages(client, "news", BODY))
        assert asked == expected
        # A server that does not respond is not asked to close the point in time.
        asked = answers((200, {"id": "point"}), (200, page), elastic_transport.ConnectionError("gone"))
        with pytest.raises(ServerError, match="no server answers"):
            execute(client, all_hits("news", BODY))
        assert asked == expected[:-1]


def test_a_deleted_forest_is_reported_despite_cached_mappings(answers: Answers) -> None:
    known = ServerCache()
    forest = forest_index(meta=dataclasses.asdict(Meta.of(CLASSIC)))
    for name, index in (("news", article_index(Fields())), ("forest", forest)):
        known.keep({name: index["mappings"]}, name)
    hit = {"_index": "news", "_id": "1", "_source": {"text": "The ferry runs from Monday."}}
    article = {"hits": {"total": {"value": 1}, "hits": [hit]}}
    answers((200, article), (200, article), *3 * [(404, REFUSED)])
    with Elasticsearch(URL) as client:
        scope = ForestScope(given_forest="forest", profile=CLASSIC)
        found = execute(client, explain_articles(scope, "news", "1", "1"), known=known)
    assert (found.forest_missing or "").startswith("there is no forest 'forest'")
    assert found.comparison.one.fingerprint == found.comparison.other.fingerprint


def test_the_time_limit_applies_to_all_attempts_together() -> None:
    sent = []

    def between(request: Sent, _: Send) -> Answer:
        sent.append(request)
        raise elastic_transport.ConnectionTimeout("no answer in time")

    with (
        client_with("http://127.0.0.1:9", between) as client,
        pytest.raises(elastic_transport.ConnectionTimeout),
    ):
        patient(client, patience_s=1e-6).info()
    assert len(sent) == 1


def test_unused_clients_can_be_garbage_collected() -> None:
    def nothing() -> Requests[int]:
        yield ReadClock()
        return 1

    client = Elasticsearch("http://127.0.0.1:1")
    assert [execute(client, nothing()), execute(client, nothing())] == [1, 1]
    held = weakref.ref(client)
    client.close()
    del client
    gc.collect()
    assert held() is None

"""The sidecar treats requests, odd bodies and responses as Elasticsearch does."""

import asyncio
import http.client
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from elasticsearch import (
    ApiError,
    AsyncElasticsearch,
    BadRequestError,
    ConflictError,
    Elasticsearch,
    NotFoundError,
    helpers,
)
from esdedup.ingest.actions import Addition
from hypothesis import given
from hypothesis import strategies as st

from esdedup.sidecar.bulk import merged, read_document, refused_item, whole_answer
from esdedup.sidecar.bulk_request import Rejection, RequestRefused, read_bulk
from esdedup.sidecar.paths import article_path, error_body, routed
from tests.support.exploring import examples
from tests.support.names import Names, new_names
from tests.support.sidecar import Feeding

# A document that resembles a bulk response.
DOCUMENT = {
    "items": [{"index": {"status": 1}}, {"index": {"_index": "x", "deep": [[{"a": 1}, 2], []]}}, {}],
    "a": {"b": {"c": 1, "a": {"b": 2}}, "e": {}, "l": [], "n": None, "d.e": 1},
    "d.e": {"f": [1, {"a": 2}]},
}
# The response is the same each time, because each action fails or changes nothing.
_LINES: list[Any] = [
    {"update": {"_id": "1", "_source": True}},
    {"doc": DOCUMENT},
    {"create": {"_id": "1"}},
    {"text": "x"},
    {"update": {"_id": "none"}},
    {"doc": {}},
    {"index": {"_id": ""}},
    {"text": "x"},
]
BODY = b"".join(json.dumps(each).encode() + b"\n" for each in _LINES)


class Server:
    """Sends request targets unchanged, whereas other clients normalise dots and escape sequences."""

    def __init__(self, url: str, index: str) -> None:
        self.index = index
        address = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)

    def send(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        self._connection.request(method, target, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, re.sub(rb'"took"( ?):( ?)\d+', rb'"took"\1:\g<2>5', answer.read())

    def close(self) -> None:
        self._connection.close()

    def bulk(self, query: str) -> bytes:
        return self.send("POST", f"/{self.index}/_bulk?{query}", BODY)[1]


@pytest.fixture(scope="module")
def server(es: Elasticsearch, elasticsearch_url: str) -> Iterator[Server]:
    with new_names(es) as name:
        index = name("answers")
        es.indices.create(index=index, mappings={"dynamic": False}, settings={"number_of_replicas": 0})
        es.index(index=index, id="1", document=DOCUMENT)
        sending = Server(elasticsearch_url, index)
        yield sending
        sending.close()


@pytest.fixture(scope="module")
def whole(server: Server) -> bytes:
    return server.bulk("")


@pytest.mark.parametrize(
    "query",
    [
        *("", "pretty", "pretty=false&filter_path=nope", "filter%5Fpath=took", "filter_path=took;pretty"),
        *(
            "pretty=x",
            "&&filter_path=-items&",
            "format=yaml&filter_path=+took,errors",
            "filter_path=took#&pretty",
        ),
    ],
)
def test_the_sidecar_requests_unfiltered_responses(server: Server, whole: bytes, query: str) -> None:
    assert server.bulk(whole_answer(query.encode()).decode()) == whole


def test_refused_articles_keep_their_places_in_the_response(server: Server) -> None:
    items = read_bulk(BODY, index=server.index)
    whole = json.loads(server.bulk(""))
    for places in itertools.chain.from_iterable(itertools.combinations(range(4), n) for n in range(4)):
        sent = b"".join(each.lines() for place, each in enumerate(items) if place not in places)
        _, answer = server.send("POST", f"/{server.index}/_bulk", sent)
        refused = {place: refused_item(items[place], Rejection("no text")) for place in places}
        parsed = json.loads(merged(answer, refused, count=4))
        assert parsed["errors"] is True
        assert parsed["items"] == [refused.get(place, each) for place, each in enumerate(whole["items"])]
        for place in places:
            ((operation, values),) = parsed["items"][place].items()
            assert operation == items[place].operation
            # Elasticsearch reports a failure with the same keys.
            assert list(values) == list(whole["items"][3]["index"])


@pytest.mark.parametrize("operation", ["_doc", "_create", "_update"])
def test_a_request_without_a_document_is_refused_identically(server: Server, operation: str) -> None:
    path = f"/{server.index}/{operation}/1"
    read = article_path("POST", path.encode())
    assert read is not None
    with pytest.raises(RequestRefused) as caught:
        read_document(read, b"", b"")
    status, answer = server.send("POST", path, b"")
    refused = caught.value
    body = error_body(refused.status, refused.kind, str(refused))
    assert (refused.status, json.loads(body)) == (status, json.loads(answer))


_PARTS = ["", "I", "I", "_doc", "_create", "_update", "%5Fdoc", "a%2Fb", "a+b", "%C3%A9", "%ff", "%zz", "1;b"]


@examples(25)
@given(
    st.sampled_from(["POST", "PUT"]),
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4),
    st.sampled_from(["", "/", "//", "#x"]),
)
def test_document_paths_are_parsed_as_by_elasticsearch(
    server: Server, method: str, parts: list[str], end: str
) -> None:
    path = "/" + "/".join(parts).replace("I", server.index) + end
    read = article_path(method, path.encode())
    # Skip paths for which the server would create another index.
    if len(parts) > 1 and parts[1].startswith("_") and parts[0] != "I":
        return
    body = b'{"doc":{"text":"x"},"upsert":{"text":"x"}}' if "_update" in parts else b'{"text":"x"}'
    status, answer = server.send(method, path, body)
    values = json.loads(answer)
    if read is None or read.operation == "bulk":
        assert "_id" not in values
    else:
        assert status in (200, 201, 409), values
        if status != 409 and read.id is not None:
            assert values["_id"] == read.id


def test_the_routing_of_a_document_can_be_replaced(server: Server) -> None:
    path = article_path("PUT", f"/{server.index}/_doc/routed%2F1".encode())
    assert path is not None
    query = b"routing=old&refresh=true;rout%69ng=older&op_type=create"
    item = read_document(path, query, b'{\n "text" : "x"\n}\n')
    assert (item.operation, item.meta["_id"], item.meta["routing"]) == ("create", "routed/1", "older")
    item.objects, item.added = ("dedup",), Addition({"source": {"root": "r"}})
    source = item.body()
    target = f"/{server.index}/_doc/routed%2F1?{routed(query, 'r/ü&').decode()}"
    assert server.send("PUT", target, source)[0] == 201
    search = {"query": {"ids": {"values": ["routed/1"]}}}
    _, answer = server.send("POST", f"/{server.index}/_search", json.dumps(search).encode())
    (hit,) = json.loads(answer)["hits"]["hits"]
    assert hit["_routing"] == "r/ü&"
    assert hit["_source"] == {"text": "x", "dedup": {"root": "r"}}


@pytest.fixture
def client(sidecar: str) -> Iterator[Elasticsearch]:
    # The machine may be busy with other tests.
    with Elasticsearch(sidecar, http_compress=True, request_timeout=60) as client:
        yield client


@pytest.mark.parametrize("threads", [1, 4])
def test_bulk_helpers_feed_articles(
    client: Elasticsearch, es: Elasticsearch, feeding: Feeding, threads: int
) -> None:
    actions = [{"_index": feeding.index, **article} for article in feeding.articles]
    if threads == 1:
        assert helpers.bulk(client, actions, chunk_size=100)[0] == len(actions)
    else:
        parallel = helpers.parallel_bulk(client, actions, chunk_size=50, thread_count=threads)
        assert all(ok for ok, _ in parallel)
    feeding.check_articles(es, in_order=threads == 1)


def test_async_bulk_helpers_feed_articles(es: Elasticsearch, feeding: Feeding) -> None:
    async def feed() -> int:
        async with AsyncElasticsearch(feeding.sidecar, http_compress=True, request_timeout=60) as client:
            actions = [{"_index": feeding.index, **article} for article in feeding.articles]
            succeeded, _ = await helpers.async_bulk(client, actions, chunk_size=100)
            return succeeded

    assert asyncio.run(feed()) == len(feeding.articles)
    feeding.check_articles(es)


def test_an_update_does_not_change_a_root(client: Elasticsearch, es: Elasticsearch, feeding: Feeding) -> None:
    helpers.bulk(client, [{"_index": feeding.index, **article} for article in feeding.articles[:2]])
    to = {"index": feeding.index, "id": feeding.articles[0]["_id"]}
    as_assigned = es.get(**to)["_source"]
    forged = {"dedup": {"root": "forged"}, "dedup.seq": 1, "clicks": 1}
    client.update(**to, doc=forged)
    client.bulk(operations=[{"update": {"_index": to["index"], "_id": to["id"]}}, {"doc": forged | {"n": 2}}])
    assert es.get(**to)["_source"] == as_assigned | {"clicks": 1, "n": 2}
    new: dict[str, Any] = {"index": feeding.index, "id": "new", "doc": {"n": 1}}
    with pytest.raises(BadRequestError, match="without a text"):
        client.update(**new, upsert=forged)
    path = f"/{feeding.index}/_update/new?doc_as_upsert=true"
    with pytest.raises(BadRequestError, match="doc_as_upsert in its query"):
        client.perform_request("POST", path, body={"doc": {}}, headers={"content-type": "application/json"})
    assert not es.exists(index=feeding.index, id="new")
    client.update(**new, upsert=forged | {"text": feeding.articles[0]["text"]})
    made = es.get(index=feeding.index, id="new")["_source"]
    assert made["dedup"]["root"] == as_assigned["dedup"]["root"]
    assert (made["clicks"], "dedup.seq" in made) == (1, False)


def test_other_client_requests_are_passed_on(
    client: Elasticsearch, es: Elasticsearch, unchanged: tuple[str, str], index_name: Names
) -> None:
    """An index may even have the name of one of the sidecar's own paths."""
    index, _ = unchanged
    query = {"match": {"text": "the"}}
    assert client.ping() == es.ping()
    assert _response_or_error(client.info) == _response_or_error(es.info)
    assert client.cluster.health().body["cluster_name"] == es.cluster.health().body["cluster_name"]
    assert client.indices.exists(index=index)
    assert not client.indices.exists(index="metrics")
    assert client.indices.get_mapping(index=index) == es.indices.get_mapping(index=index)
    scanned = {hit["_id"] for hit in helpers.scan(client, index=index, query={"query": query}, size=50)}
    pit = client.open_point_in_time(index=index, keep_alive="1m")["id"]
    found = client.search(query=query, pit={"id": pit}, size=1_000, sort="_shard_doc")
    assert client.close_point_in_time(id=pit)["succeeded"]
    assert scanned == {hit["_id"] for hit in found["hits"]["hits"]}
    assert scanned

    template = index_name("template")
    client.indices.put_index_template(name=template, index_patterns=[f"{template}-*"])
    assert client.indices.exists_index_template(name=template)
    client.indices.delete_index_template(name=template)


def test_clients_receive_the_errors_of_elasticsearch(client: Elasticsearch, index_name: Names) -> None:
    index = index_name("errors")
    client.create(index=index, id="a/b %", document={"a": 1})
    with pytest.raises(ConflictError):
        client.create(index=index, id="a/b %", document={"a": 1})
    with pytest.raises(NotFoundError):
        client.get(index=index, id="a")
    with pytest.raises(BadRequestError, match="none"):
        client.search(index=index, query={"none": {}})
    with pytest.raises(helpers.BulkIndexError) as raised:
        helpers.bulk(client, [{"_op_type": "create", "_index": index, "_id": "a/b %", "a": 1}])
    assert raised.value.errors[0]["create"]["status"] == 409


def _response_or_error(ask: Callable[[], Any]) -> Any:
    """Return the response, or the error, since the embedded node has no `GET /`."""
    try:
        return ask().body
    except ApiError as error:
        return error.status_code, error.body

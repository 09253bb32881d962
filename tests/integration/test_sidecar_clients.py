"""The sidecar, fed and asked by the official client for Python."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

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

from tests.support.names import Names
from tests.support.sidecar import Feeding


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def client(request: pytest.FixtureRequest, sidecar: str) -> Iterator[Elasticsearch]:
    # The machine may be busy with other tests.
    with Elasticsearch(sidecar, http_compress=request.param, request_timeout=60) as client:
        yield client


def _bulk(client: Elasticsearch, actions: list[dict[str, Any]]) -> int:
    succeeded, _ = helpers.bulk(client, actions, chunk_size=100)
    return succeeded


def _streaming(client: Elasticsearch, actions: list[dict[str, Any]]) -> int:
    return sum(ok for ok, _ in helpers.streaming_bulk(client, actions, chunk_size=100))


def _parallel(client: Elasticsearch, actions: list[dict[str, Any]]) -> int:
    return sum(ok for ok, _ in helpers.parallel_bulk(client, actions, chunk_size=50, thread_count=4))


@pytest.mark.parametrize("feed", [_bulk, _streaming, _parallel])
def test_helpers_feed(
    client: Elasticsearch,
    es: Elasticsearch,
    feeding: Feeding,
    feed: Callable[[Elasticsearch, list[dict[str, Any]]], int],
) -> None:
    actions = [{"_index": feeding.index, **article} for article in feeding.articles]
    assert feed(client, actions) == len(actions)
    feeding.check_articles(es, in_order=feed is not _parallel)


def test_async_helpers_feed(es: Elasticsearch, feeding: Feeding) -> None:
    async def feed() -> int:
        async with AsyncElasticsearch(feeding.sidecar, http_compress=True, request_timeout=60) as client:
            actions = [{"_index": feeding.index, **article} for article in feeding.articles]
            succeeded, _ = await helpers.async_bulk(client, actions, chunk_size=100)
            return succeeded

    assert asyncio.run(feed()) == len(feeding.articles)
    feeding.check_articles(es)


def test_an_update_does_not_change_a_root(client: Elasticsearch, es: Elasticsearch, feeding: Feeding) -> None:
    _bulk(client, [{"_index": feeding.index, **article} for article in feeding.articles[:2]])
    to = {"index": feeding.index, "id": feeding.articles[0]["_id"]}
    as_assigned = es.get(**to)["_source"]
    forged = {"dedup": {"root": "forged"}, "dedup.seq": 1, "clicks": 1}
    client.update(**to, doc=forged)
    client.bulk(operations=[{"update": {"_index": to["index"], "_id": to["id"]}}, {"doc": forged | {"n": 2}}])
    client.update(index=feeding.index, id="new", doc={"n": 1}, upsert=forged)
    assert es.get(**to)["_source"] == as_assigned | {"clicks": 1, "n": 2}
    assert es.get(index=feeding.index, id="new")["_source"] == {"clicks": 1}


def test_what_a_client_asks(
    client: Elasticsearch, es: Elasticsearch, unchanged: tuple[str, str], index_name: Names
) -> None:
    """Also with the name of an index that is a path of the sidecar's own."""
    index, _ = unchanged
    query = {"match": {"text": "the"}}
    assert client.ping() == es.ping()
    assert _said(client.info) == _said(es.info)
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


def test_errors_of_elasticsearch_are_the_clients_errors(client: Elasticsearch, index_name: Names) -> None:
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


def _said(ask: Callable[[], Any]) -> Any:
    """Return what is answered, or the error: the embedded node has no `GET /`."""
    try:
        return ask().body
    except ApiError as error:
        return error.status_code, error.body

"""`AsyncDedup` gives the same results as `Dedup`, without blocking the event loop."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers

from esdedup import AsyncDedup, Dedup, ForestBusy, SettingError, SidecarUnavailable
from esdedup.elastic.client import blocking_twin
from tests.support.forests import feed, roots
from tests.support.names import Names
from tests.support.pages import pages
from tests.support.wire import closed_port

PAGES: list[dict[str, Any]] = [{"_id": page["id"], "text": page["text"]} for page in pages(200)]


async def awaited(index: str) -> AsyncIterator[dict[str, Any]]:
    for page in PAGES:
        await asyncio.sleep(0)
        yield {"_index": index, **page}


def test_async_feeding_gives_the_same_roots(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    alone, index, forest = index_name("alone"), index_name("articles"), index_name("forest")
    with Dedup(es, forest=index_name("other")) as dedup:
        dedup.setup(alone)
        feed(es, dedup, alone, PAGES)

    async def fed() -> Any:
        async with AsyncElasticsearch(elasticsearch_url) as client:
            async with AsyncDedup(client, forest=forest, batch_size=70) as dedup:
                assert await dedup.setup(index)
                await helpers.async_bulk(client, dedup.enrich(awaited(index)), refresh=True)
                with pytest.raises(ForestBusy):
                    list(Dedup(es, forest=forest).enrich(PAGES[:1]))
                found = await dedup.reader.list(index)
                again = [action async for action in dedup.enrich(PAGES[:3])]
                assert [each["_source"]["dedup"]["seq"] for each in again] == [201, 202, 203]
                assert (await dedup.expire()).checked == 0
                assert await dedup.learn(["a page that nobody has seen before today"]) == 1
            # The forest is released, and the caller's client still works.
            list(Dedup(es, forest=forest).enrich(PAGES[:1]))
            assert (await client.count(index=index))["count"] == len(PAGES)
            return found

    found = asyncio.run(fed())
    assert roots(es, index) == roots(es, alone)
    assert found.total_rows == len(set(roots(es, index).values()))


def test_callbacks_run_in_order_in_the_event_loop(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    seen: list[tuple[str, str]] = []
    loops = set()

    def note(kind: str, name: str) -> None:
        seen.append((kind, name))
        loops.add((threading.get_ident(), asyncio.get_running_loop()))

    async def fed() -> None:
        actions: list[Any] = [
            {"_id": "a", "text": "one text"},
            {"_id": "b"},
            {"_id": "c", "text": "another text"},
        ]
        async with (
            AsyncElasticsearch(elasticsearch_url) as client,
            AsyncDedup(client, forest=index_name("forest")) as dedup,
        ):
            enriched = dedup.enrich(
                [*actions, {"_index": "no-such-index", "_id": "d", "text": "a third"}],
                on_rejected=lambda rejected: note("rejected", rejected.article),
                on_assigned=lambda article, _: note("assigned", article.name),
            )
            with pytest.raises(Exception, match="no-such-index"):
                [action async for action in enriched]
            enriched = dedup.enrich(
                actions,
                on_rejected=lambda rejected: note("rejected", rejected.article),
                on_assigned=lambda article, _: note("assigned", article.name),
                flush_interval_s=0.05,
            )
            while (action := await anext(enriched, None)) is not None:
                seen.append(("yielded", action["_id"]))

    asyncio.run(fed())
    assert seen == [
        ("rejected", "b"),
        *(("assigned", "a"), ("yielded", "a"), ("rejected", "b"), ("assigned", "c"), ("yielded", "c")),
    ]
    assert len(loops) == 1
    assert next(iter(loops))[0] == threading.get_ident()


def test_waiting_for_a_sidecar_does_not_block_the_loop(elasticsearch_url: str) -> None:
    async def fed() -> int:
        turns = 0
        async with AsyncElasticsearch(elasticsearch_url) as client:
            sidecar = f"http://127.0.0.1:{closed_port()}"
            async with AsyncDedup(client, sidecar=[sidecar], sidecar_patience_s=0.5) as dedup:
                waiting = asyncio.create_task(anext(aiter(dedup.enrich(PAGES[:1]))))
                while not waiting.done():
                    await asyncio.sleep(0.01)
                    turns += 1
                with pytest.raises(SidecarUnavailable):
                    await waiting
        return turns

    assert asyncio.run(fed()) > 5


def test_async_dedup_has_the_parameters_of_dedup(elasticsearch_url: str) -> None:
    own, other = inspect.signature(AsyncDedup), inspect.signature(Dedup)
    assert list(own.parameters) == list(other.parameters)
    assert own.parameters["client"].annotation is AsyncElasticsearch
    blocking: Any = Elasticsearch(elasticsearch_url)
    with blocking, pytest.raises(SettingError, match="AsyncDedup needs an AsyncElasticsearch"):
        AsyncDedup(blocking)
    for name in ("setup", "require_ready", "learn", "expire", "close"):
        assert inspect.iscoroutinefunction(getattr(AsyncDedup, name)), name
    client = AsyncElasticsearch(
        "http://localhost:9200", basic_auth=("somebody", "secret"), headers={"x-own": "1"}
    )
    twin = blocking_twin(client)
    assert {**twin._headers, **client._headers} == dict(twin._headers)
    assert [each.base_url for each in twin.transport.node_pool.all()] == ["http://localhost:9200"]
    asyncio.run(client.close())
    twin.close()

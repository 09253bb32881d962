"""Threads of one process that feed one forest."""

import asyncio
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup import AsyncReader, Dedup, ForestBusy, Maintenance, Reader, SettingError
from tests.support.forests import ARTICLES, feed
from tests.support.names import Names

THREADS = 6


def test_threads_may_share_a_dedup(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    start = threading.Barrier(THREADS)
    with Dedup(es, forest=forest, batch_size=10) as dedup:
        dedup.setup(index)

        def work(number: int) -> None:
            start.wait(30)
            feed(es, dedup, index, ARTICLES[number::THREADS])

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(work, range(THREADS)))
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    sources = es.search(index=index, size=1_000, source_includes=["dedup.seq"])["hits"]["hits"]
    assert sorted(hit["_source"]["dedup"]["seq"] for hit in sources) == list(range(1, len(ARTICLES) + 1))


def test_what_comes_slowly_is_assigned_before_a_batch_is_full(es: Elasticsearch, index_name: Names) -> None:
    """Each article is answered before the next one comes."""
    answered = queue.Queue[str]()

    def trickle() -> Iterator[dict[str, Any]]:
        for article in ARTICLES[:5]:
            yield article
            assert answered.get(timeout=20) == article["_id"]

    with Dedup(es, forest=index_name("forest")) as dedup:
        for action in dedup.enrich(trickle(), flush_interval_s=0.05):
            assert action["_source"]["dedup"]["root"]
            answered.put(action["_id"])
    assert answered.empty()


def test_a_second_dedup_of_one_process_is_told_what_to_do(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with Dedup(es, forest=forest) as one:
        list(one.enrich(ARTICLES[:1]))
        with pytest.raises(
            ForestBusy, match="That is this process: share its Dedup between threads, or close it"
        ):
            list(Dedup(es, forest=forest).enrich(ARTICLES[1:2]))
        with pytest.raises(ForestBusy, match="That is this process"):
            Maintenance(es, forest=forest).expire()


def test_a_client_of_the_wrong_kind_is_refused_at_once() -> None:
    other = AsyncElasticsearch("http://127.0.0.1:9")
    takers: list[Any] = [Dedup, Maintenance, Reader]
    for taker in takers:
        with pytest.raises(
            SettingError, match=f"AsyncElasticsearch; {taker.__name__} needs an Elasticsearch"
        ):
            taker(other)
    asyncio.run(other.close())
    blocking: Any = Elasticsearch("http://127.0.0.1:9")
    with blocking, pytest.raises(SettingError, match="AsyncReader needs an AsyncElasticsearch"):
        AsyncReader(blocking)

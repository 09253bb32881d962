"""Forked processes must not use their parent's clients; the parent continues undisturbed."""

import asyncio
import contextlib
import inspect
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers
from esdedup.ingest.batches import Filling, _read_ahead

from esdedup import AsyncReader, Dedup, Maintenance, Reader
from esdedup.elastic.client import connect
from tests.support.forests import ARTICLES, feed, owner_of, roots
from tests.support.names import Names

# Since version 3.12, Python warns about forks of processes with several threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

BATCH = 20
TIMEOUT_S = 60


def in_child(*attempts: Callable[[], Any]) -> list[str]:
    """Fork, run the attempts in the child, and return the name of each attempt's error, or "done"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        stopper = threading.Timer(TIMEOUT_S, os.kill, (child, 9))
        stopper.start()
        with open(reading) as pipe:  # noqa: PTH123 - a descriptor
            outcome: list[str] = json.loads(pipe.read() or '["the child hung or died"]')
        stopper.cancel()
        os.waitpid(child, 0)
        return outcome
    outcome = []
    for attempt in attempts:
        try:
            attempt()
        except BaseException as error:
            outcome.append(type(error).__name__)
        else:
            outcome.append("done")
    os.write(writing, json.dumps(outcome).encode())
    os._exit(0)


def actions(index: str, articles: list[dict[str, Any]] = ARTICLES) -> list[dict[str, Any]]:
    return [{"_index": index, **article} for article in articles]


def numbers(es: Elasticsearch, index: str) -> dict[str, int]:
    hits = helpers.scan(es, index=index, _source=["dedup.seq"])
    return {hit["_id"]: hit["_source"]["dedup"]["seq"] for hit in hits}


def refused_in_child(attempt: Callable[[], Any]) -> None:
    assert in_child(attempt) == ["ClientForked"]


def test_a_child_neither_feeds_nor_disturbs_its_parent(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, unchanged: tuple[str, str]
) -> None:
    """The fork happens in the middle of a batch, and the child forks again."""
    index, forest = index_name("articles"), index_name("forest")
    outcome: list[str] = []

    def enter_and_leave() -> None:
        with dedup:
            pass

    with connect(elasticsearch_url) as client, Dedup(client, forest=forest, batch_size=BATCH) as dedup:
        dedup.setup(index)
        feeding = dedup.enrich(actions(index))
        enriched = [next(feeding) for _ in range(BATCH + BATCH // 2)]
        verifying = Maintenance(client, forest=forest).verify()
        attempts = (
            lambda: next(feeding),
            lambda: helpers.bulk(connect(elasticsearch_url), dedup.enrich(actions(index))),
            lambda: dedup.setup(index),
            dedup.expire,
            lambda: Reader(client).list(index),
            lambda: Maintenance(client, forest=forest).repair([index]),
            lambda: list(verifying),
            lambda: list(Dedup(client, forest=forest).enrich(actions(index))),
            dedup.close,
            enter_and_leave,
            # Even after closing, the child has its parent's client.
            lambda: list(dedup.enrich(actions(index))),
            # With its own client, the child is refused because its parent owns the forest.
            lambda: list(Dedup(connect(elasticsearch_url), forest=forest).enrich(actions(index))),
        )
        outcome = in_child(*attempts, lambda: outcome.extend(in_child(*attempts)))
        helpers.bulk(client, [*enriched, *feeding])
    refused = ["ClientForked"] * 8
    assert outcome == [*refused, "done", "done", "ClientForked", "ForestBusy", "done"]
    assert roots(es, index) == roots(es, unchanged[0])
    assert numbers(es, index) == {article["_id"]: seq for seq, article in enumerate(ARTICLES, 1)}
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_a_child_is_refused_while_its_parent_holds_locks(elasticsearch_url: str, index_name: Names) -> None:
    forest = index_name("forest")
    with connect(elasticsearch_url) as client, Dedup(client, forest=forest) as dedup:
        list(dedup.enrich(ARTICLES[:1]))
        store = owner_of(dedup)._store
        assert store is not None
        lease = store.writer.lease
        lock_of_event: Any = vars(lease._ended)["_cond"]
        with held_by_another_thread(owner_of(dedup)._lock, lease._writing, lock_of_event):
            outcome = in_child(
                lambda: list(dedup.enrich(ARTICLES[1:2])),
                dedup.expire,
                lease.renew,
                lease.release,
                dedup.close,
            )
        assert outcome == ["ClientForked"] * 3 + ["done"] * 2
        (again,) = dedup.enrich(ARTICLES[1:2])
        assert again["_source"]["dedup"]["seq"] == 2


def test_an_unused_object_may_be_used_after_a_fork(elasticsearch_url: str, index_name: Names) -> None:
    """A server may create its client before it forks its workers."""
    forest = index_name("forest")
    with Elasticsearch(elasticsearch_url) as client, Dedup(client, forest=forest) as dedup:
        assert in_child(lambda: list(dedup.enrich(ARTICLES[:1])), dedup.close) == ["done", "done"]
        (second,) = dedup.enrich(ARTICLES[1:2])
        assert second["_source"]["dedup"]["seq"] == 2


@pytest.fixture
def small(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    """An index of one article, and its forest."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:1])
    return index, forest


def test_a_used_reader_is_refused_in_a_child(elasticsearch_url: str, small: tuple[str, str]) -> None:
    index, forest = small
    with Elasticsearch(elasticsearch_url) as client:
        reader = Reader(client)
        assert in_child(lambda: reader.list(index), lambda: Reader(client).list(index)) == ["done"] * 2
        reader.list(index)
        assert in_child(
            lambda: reader.list(index),
            lambda: list(Maintenance(client, forest=forest).verify()),
            lambda: refused_in_child(lambda: Reader(client).list(index)),
            lambda: Reader(connect(elasticsearch_url)).list(index),
        ) == ["ClientForked", "ClientForked", "done", "done"]
        assert reader.list(index).total_articles == 1


def test_a_used_async_reader_is_refused_in_a_child(elasticsearch_url: str, small: tuple[str, str]) -> None:
    index, _ = small

    async def read(given: AsyncReader) -> None:
        assert (await given.list(index)).total_articles == 1

    async def read_and_close() -> None:
        await read(reader)
        await client.close()

    with asyncio.Runner() as runner:
        client = AsyncElasticsearch(elasticsearch_url)
        reader = AsyncReader(client)
        assert in_child(lambda: asyncio.run(read_and_close())) == ["done"]
        runner.run(read(reader))
        attempts = (lambda: runner.run(read(reader)), lambda: runner.run(read(AsyncReader(client))))
        assert in_child(*attempts) == ["ClientForked", "ClientForked"]
        runner.run(read_and_close())


@pytest.mark.parametrize("flush_interval_s", [None, 0.2])
def test_a_child_cannot_continue_a_stream_of_its_parent(
    elasticsearch_url: str, index_name: Names, flush_interval_s: float | None
) -> None:
    """Even deletions, which need no request, are refused: the child lacks the thread that reads actions."""
    deletions = [{"_op_type": "delete", "_index": "any", "_id": str(n)} for n in range(2 * BATCH)]
    with Elasticsearch(elasticsearch_url) as client:
        dedup = Dedup(client, forest=index_name("forest"), batch_size=BATCH)
        stream = dedup.enrich(deletions, flush_interval_s=flush_interval_s)
        not_begun = dedup.enrich(deletions, flush_interval_s=flush_interval_s)
        first = [next(stream) for _ in range(BATCH)]
        assert in_child(lambda: list(stream), lambda: list(not_begun)) == ["ClientForked"] * 2
        assert [*first, *stream] == deletions


def test_a_child_may_drop_a_stream_of_its_parent() -> None:
    stream: Any = _read_ahead(ARTICLES, Filling(most=1, size_of=len), 60.0)
    assert next(stream) == ARTICLES[:1]
    with held_by_another_thread(inspect.getgeneratorlocals(stream)["changed"]):
        assert in_child(stream.close) == ["done"]
    assert next(filter(None, stream)) == ARTICLES[1:2]


@contextlib.contextmanager
def held_by_another_thread(*locks: Any) -> Iterator[None]:
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            taken.set()
            done.wait(TIMEOUT_S)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(TIMEOUT_S)
    try:
        yield
    finally:
        done.set()
        holder.join()

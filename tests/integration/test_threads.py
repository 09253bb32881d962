"""Threads that feed one forest in a process, and signal handlers that interrupt a batch or close `Dedup`."""

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup import AsyncReader, Dedup, ForestBusy, Maintenance, Reader, SettingError
from esdedup.elastic.forest.lease import Lease
from esdedup.elastic.forest.store import ElasticStore
from esdedup.forest import Nodes, decide
from tests.support.faults import Interrupted, Interrupts
from tests.support.forests import ARTICLES, LOOKUPS, feed, owner_of
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


def test_a_second_dedup_in_a_process_is_refused(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with Dedup(es, forest=forest) as one:
        list(one.enrich(ARTICLES[:1]))
        with pytest.raises(
            ForestBusy, match="That is this process: share its Dedup between threads, or close it"
        ):
            list(Dedup(es, forest=forest).enrich(ARTICLES[1:2]))
        with pytest.raises(ForestBusy, match="That is this process"):
            Maintenance(es, forest=forest).expire()


def test_a_wrong_kind_of_client_is_refused() -> None:
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


TIMEOUT_S = 30
# These functions change the state in memory that later batches use.
CHANGING: list[Any] = [
    *(decide, ElasticStore.begin, ElasticStore.commit, ElasticStore._refresh),
]
# These functions change the state, too, when the functions above call them. Methods of the crate
# are never interrupted halfway.
_UNDONE = [Nodes.assign, Nodes.keep, Nodes.undo, ElasticStore._recover]
CALLED: dict[str, list[Any]] = {"searched": [Nodes.assign], "both": _UNDONE, "in memory": _UNDONE}


def changing(functions: list[Any]) -> Callable[[FrameType], bool]:
    """Return a function that reports whether a call is one of `functions` and changes a store's state."""
    codes = {function.__code__ for function in functions}
    changing_codes = {function.__code__ for function in CHANGING}

    def changes(frame: FrameType) -> bool:
        caller: FrameType | None = frame if frame.f_code in codes else None
        while caller is not None and caller.f_code not in changing_codes:
            caller = caller.f_back
        return caller is not None

    return changes


def batch(number: int) -> list[dict[str, Any]]:
    """Return an article, and a reprint of the previous article."""
    article, before = ARTICLES[number], ARTICLES[number - 1]
    return [
        article,
        {"_id": f"{before['_id']}-reprint", "text": f"{before['text']} Copyright by the agency."},
    ]


def roots_of(dedup: Dedup, number: int) -> list[str]:
    return [action["_source"]["dedup"]["root"] for action in dedup.enrich(batch(number))]


@pytest.mark.parametrize(
    ("lookup", "called"), [(LOOKUPS[name], CALLED[name]) for name in LOOKUPS], ids=LOOKUPS
)
def test_a_batch_interrupted_anywhere_may_be_repeated(
    elasticsearch_url: str, index_name: Names, lookup: dict[str, Any], called: list[Any]
) -> None:
    """The repeated batch gets the same roots as in an undisturbed forest."""
    functions = [*CHANGING, *called]
    interrupts = Interrupts(changing(functions))
    client = Elasticsearch(elasticsearch_url)
    undisturbed, disturbed = (Dedup(client, forest=index_name("forest"), **lookup) for _ in range(2))
    with client, undisturbed, disturbed:
        for number in range(1, len(ARTICLES)):
            expected, count = roots_of(undisturbed, number), len(interrupts.raised)
            found: list[str] = []
            while not found:
                with contextlib.suppress(Interrupted), interrupts.one():
                    found = roots_of(disturbed, number)
            assert found == expected, sorted(interrupts.raised)[-3:]
            if number > 1 and len(interrupts.raised) == count:
                break
    assert interrupts.functions == {function.__qualname__ for function in functions}


def test_a_process_may_retake_a_dropped_lease(elasticsearch_url: str, index_name: Names) -> None:
    """An exception may occur after the lease is acquired and before its holder is stored."""
    with Elasticsearch(elasticsearch_url) as client, Dedup(client, forest=index_name("forest")) as dedup:
        list(dedup.enrich(ARTICLES[:1]))
        owner_of(dedup)._store = None
        gc.collect()
        (second,) = dedup.enrich(ARTICLES[1:2])
        assert second["_source"]["dedup"]["seq"] == 2


@pytest.mark.parametrize("is_sent_first", [False, True])
def test_a_signal_handler_may_close_dedup_during_a_renewal(
    elasticsearch_url: str, index_name: Names, is_sent_first: bool
) -> None:
    """The forest is released immediately, the renewal does not retake it, and the batch is stored."""
    forest = index_name("forest")
    seqs: list[int] = []

    def feed() -> None:
        seqs.extend(action["_source"]["dedup"]["seq"] for action in dedup.enrich(ARTICLES[1:2]))

    with Elasticsearch(elasticsearch_url) as client:
        # If the test fails, `dedup` is not closed, because closing it would hang, too.
        dedup = Dedup(client, forest=forest)
        list(dedup.enrich(ARTICLES[:1]))
        store = owner_of(dedup)._store
        assert store is not None
        lease = store.writer.lease
        lease._hasty = closing_meanwhile(lease, dedup.close, is_sent_first=is_sent_first)
        lease._renewed_at -= lease._terms.ttl_s / 2
        feeding = threading.Thread(target=feed, daemon=True)
        feeding.start()
        feeding.join(TIMEOUT_S)
        assert not feeding.is_alive(), "the handler hangs"
        assert seqs == [2]
        claim, _ = lease._read()
        assert claim is not None
        assert claim.released
        (third,) = dedup.enrich(ARTICLES[2:3])
        assert third["_source"]["dedup"]["seq"] == 3
        dedup.close()


def closing_meanwhile(lease: Lease, close: Callable[[], None], *, is_sent_first: bool) -> Any:
    """Return a client for a lease's renewals that calls `close` before or after each request."""

    class Client:
        def index(self, **request: Any) -> Any:
            if not is_sent_first:
                close()
            answer = lease._client.index(**request)
            if is_sent_first:
                close()
            return answer

    return Client()

"""Nodes that a forest's owner keeps in memory, if there is enough memory for all nodes."""

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, Dedup, IndexBlocked
from esdedup.elastic.forest import loading
from esdedup.elastic.forest import store as store_module
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import StoredHash
from esdedup.elastic.pages import Hits
from esdedup.elastic.requests import Query
from esdedup.forest import NO_TIME, Assignment, Kind, Nodes, State
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign
from tests.support.between import recording
from tests.support.forests import (
    ARTICLES,
    LOOKUPS,
    feed,
    hashes,
    in_each_way,
    nodes,
    owner_of,
    remove,
    without_hashes,
    write,
)
from tests.support.names import Names

MUCH, LITTLE = 2**30, 1_000


def test_a_batch_needs_one_request_and_no_search(elasticsearch_url: str, index_name: Names) -> None:
    with (
        recording(elasticsearch_url) as (client, sent),
        Dedup(client, forest=index_name("forest"), batch_size=100, lease_ttl_s=600) as dedup,
    ):
        list(dedup.enrich(ARTICLES[:100]))
        sent.clear()
        list(dedup.enrich(ARTICLES[100:300]))
        assert [each.operation for each in sent] == ["_bulk"] * 2


def test_nodes_that_exceed_the_memory_are_searched(
    es: Elasticsearch, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    """There is no error, whether the limit is reached at the beginning or in the middle of a stream."""
    caplog.set_level(logging.INFO, "esdedup")
    forest = index_name("forest")

    def opened(memory_bytes: int) -> ElasticStore:
        how: dict[str, Any] = {"lookup": "search", "memory_bytes": memory_bytes}
        return ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **how)

    def kinds(store: ElasticStore, numbers: range) -> set[str]:
        batch = [Arrival(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}", 0) for number in numbers]
        return {each.kind.value for each in assign(store, as_batch(batch), now_ms=NOW_MS)}

    with opened(MUCH) as store:
        empty_bytes = store.contents().memory_bytes
    with opened(empty_bytes + 20_000) as store:
        assert kinds(store, range(100)) == {"new_root"}
        assert caplog.messages == []
        assert kinds(store, range(100, 2_000)) == {"new_root"}
        assert "more than" in caplog.text
        assert kinds(store, range(2_000)) == {"known"}
        # The nodes are found after a failure, too.
        store._is_incomplete = True
        assert kinds(store, range(2_000)) == {"known"}
    assert len(caplog.messages) == 1
    with opened(LITTLE) as store:
        assert len(caplog.messages) == 2
        assert kinds(store, range(2_000)) == {"known"}


@contextlib.contextmanager
def read_only(es: Elasticsearch, forest: str) -> Iterator[None]:
    es.indices.put_settings(index=forest, settings={"index.blocks.write": True})
    yield
    es.indices.put_settings(index=forest, settings={"index.blocks.write": None})


@in_each_way
def test_a_refused_write_does_not_revive_expired_leaves(
    es: Elasticsearch, index_name: Names, lookup: dict[str, Any]
) -> None:
    """The leaf's root has expired, too, and its text has arrived again as a leaf of another tree."""
    forest, first, between, last = index_name("forest"), "00" * 8, "00" * 7 + "07", "00" * 7 + "3f"
    with ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **lookup) as store:

        def roots_of(*arrivals: Arrival) -> list[str | None]:
            return [each.root for each in assign(store, as_batch(list(arrivals)), now_ms=NOW_MS)]

        later = AGING.retention_ms * 10
        assert roots_of(Arrival(between, 0, hash=1), Arrival(last, 0, hash=2)) == [between] * 2
        assert roots_of(Arrival(first, later, hash=3), Arrival(between, later, hash=4)) == [first] * 2
        with read_only(es, forest), pytest.raises(IndexBlocked):
            roots_of(Arrival(last, later, hash=5))
        assert roots_of(Arrival(between, later, hash=4)) == [first]
    assert nodes(es, forest)[between].root == first


@in_each_way
def test_content_hashes_keep_their_nodes_after_failed_writes(
    es: Elasticsearch, index_name: Names, lookup: dict[str, Any]
) -> None:
    forest, one, other = index_name("forest"), "00" * 8, "ff" * 8
    with ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **lookup) as store:

        def roots_of(*arrivals: Arrival) -> list[str | None]:
            return [each.root for each in assign(store, as_batch(list(arrivals)), now_ms=NOW_MS)]

        assert [roots_of(Arrival(one, 0, hash=number)) for number in (1, 2)] == [[one]] * 2
        store._is_incomplete = True
        # A content hash keeps its node, whatever fingerprint its text has now.
        assert roots_of(Arrival(other, 0, hash=2)) == [one]


def test_nodes_are_reloaded_after_the_core_failed(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    forest = index_name("forest")
    with ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, memory_bytes=MUCH) as store:
        first = assign(store, as_batch([Arrival(ROOT, 0)]), now_ms=NOW_MS)
        broken = store._nodes
        monkeypatch.setattr(Nodes, "is_broken", property(lambda nodes: nodes is broken))
        second = assign(store, as_batch([Arrival(LEAF, 0)]), now_ms=NOW_MS)
        assert [each.root for each in (*first, *second)] == [ROOT, ROOT]
        assert store._nodes is not broken


ROOT, LEAF = "00" * 8, "00" * 7 + "07"


@in_each_way
def test_a_damaged_forest_can_be_fed(es: Elasticsearch, index_name: Names, lookup: dict[str, Any]) -> None:
    """A missing root is recreated from its leaf; a content hash without its node is ignored."""
    forest = index_name("forest")

    def opened() -> ElasticStore:
        return ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **lookup)

    def assigned(*arrivals: Arrival) -> list[tuple[str, str | None]]:
        with opened() as store:
            answers = assign(store, as_batch(list(arrivals)), now_ms=NOW_MS)
            return [(each.kind.value, each.root) for each in answers]

    assert assigned(Arrival(ROOT, 0), Arrival(LEAF, 0)) == [("new_root", ROOT), ("joined", ROOT)]
    remove(es, forest, ROOT)
    write(es, forest, StoredHash(f"{77:016x}", "f" * 16, 100))
    assert assigned(Arrival(LEAF, 5, hash=9)) == [("known", ROOT)]
    # For a node that existed before, the log contains only the node's new time.
    assert nodes(es, forest).keys() == ({LEAF} if lookup["lookup"] == "memory" else {LEAF, ROOT})
    other = "0f" * 8
    assert assigned(Arrival(other, 5, hash=77)) == [("new_root", other)]
    # A leaf that another leaf names as its root is treated as a root.
    found = nodes(es, forest)
    write(es, forest, found[other]._replace(id="0f" * 7 + "0e", root=LEAF, content_hash=""))
    assert assigned(Arrival("0f" * 7 + "0e", 5)) == [("known", LEAF)]


def test_expired_nodes_are_removed_from_memory(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, memory_bytes=MUCH) as store:
        sizes = []
        for day in range(6):
            numbers = range(2_000 * day, 2_000 * (day + 1))
            batch = [Arrival(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}", 1_000 * day) for n in numbers]
            assign(store, as_batch(batch), now_ms=NOW_MS)
            sizes.append(store.contents().memory_bytes)
        assert sizes[-1] < 2 * sizes[1]


class PausedLoading:
    """Delays the loading of nodes, after reading them, until `may_continue` is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.may_continue = threading.Event()
        plain = ForestIndex.hit_pages

        def hit_pages(index: ForestIndex, query: Query, **values: Any) -> Iterator[Hits]:
            found = list(plain(index, query, **values))
            if threading.current_thread().name == "esdedup-loading":
                assert self.may_continue.wait(30)
            yield from found

        patch.setattr(ForestIndex, "hit_pages", hit_pages)
        patch.setattr(store_module, "_SHORT_LOADING_S", 0.0)


@pytest.mark.parametrize(("profile", "left"), [(CLASSIC, 500), (VERIFIED, 0)], ids=["classic", "verified"])
def test_batches_are_assigned_while_nodes_are_loaded(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch, profile: Any, left: int
) -> None:
    """Known texts, reprints and content hashes arrive both while nodes are loaded and afterwards."""
    monkeypatch.setattr(loading, "_LEFT", left)
    batches = [ARTICLES[:120], ARTICLES[60:180], ARTICLES[150:], ARTICLES[:250], ARTICLES[40:]]
    found, index = [], index_name("articles")
    for how in (LOOKUPS["searched"], LOOKUPS["both"]):
        forest = index_name("forest")
        answers = []
        with Dedup(es, forest=forest, profile=profile, **how) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, _dated(batches[0], 0))
        paused = PausedLoading(monkeypatch)
        with Dedup(es, forest=forest, profile=profile, **how) as dedup:
            for day, batch in enumerate(batches[1:], 1):
                if day == 3:
                    paused.may_continue.set()
                    if how["memory_bytes"]:
                        _await_loaded(dedup)
                answers.append(
                    [each["_source"]["dedup"]["root"] for each in dedup.enrich(_dated(batch, day))]
                )
        each = without_hashes(nodes(es, forest)), {(name, node) for name, node, _ in hashes(es, forest)}
        found.append((answers, [node._replace(made_ms=0, seen_ms=0) for node in each[0]], each[1]))
        monkeypatch.undo()
        es.indices.delete(index=index)
    assert found[0] == found[1]


def test_loading_during_batches_equals_loading_beforehand(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that arrives again after the retention gets another node with the same id."""
    day = AGING.retention_ms
    texts = [Arrival(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}", 0, hash=n + 1) for n in range(40)]
    forest = index_name("forest")

    def opened() -> ElasticStore:
        return ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **LOOKUPS["both"])

    def fed(store: ElasticStore, arrivals: list[Arrival], time: int) -> None:
        moved = [dataclasses.replace(each, time=time) for each in arrivals]
        assign(store, as_batch(moved), now_ms=NOW_MS)

    with opened() as store:
        fed(store, texts[:30], 0)
    paused = PausedLoading(monkeypatch)
    with opened() as store:
        fed(store, texts[20:], day // 2)
        fed(store, texts[10:15], 2 * day)
        fed(store, texts[:12], 2 * day + 1)
        loading = store._loading
        assert loading is not None
        paused.may_continue.set()
        assert loading.is_done(timeout_s=30)
        one = loading.nodes()
        assert one is not None
        state = store.state
        first = _assigned(one, texts, state)
    monkeypatch.undo()
    with opened() as store:
        other = store._nodes
        assert other is not None
        second = _assigned(other, texts, state)
    assert first == second
    assert sum(each.kind is Kind.KNOWN for each in first) == 15


def _assigned(nodes: Nodes, texts: list[Arrival], state: State) -> Sequence[Assignment]:
    """Return the assignments that texts would get."""
    batch = as_batch([dataclasses.replace(each, time=NO_TIME) for each in texts])
    plan = nodes.assign(batch, state, now_ms=0)
    nodes.undo()
    return plan.assignments


def _dated(articles: list[dict[str, Any]], day: int) -> list[dict[str, Any]]:
    return [article | {"date": 1_788_849_041_000 + day} for article in articles]


def _await_loaded(dedup: Dedup) -> None:
    store = owner_of(dedup)._store
    assert store is not None
    loading = store._loading
    assert loading is not None
    assert loading.is_done(timeout_s=30)

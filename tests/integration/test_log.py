"""A forest whose nodes are in a log: its documents, and the memory limit of its owner."""

import base64
import logging
from http import HTTPStatus
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, Dedup, ForestFull, ForestMismatch, Maintenance
from esdedup.elastic.bulk import Result, send_bulk
from esdedup.elastic.forest import writer
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.log import EVERY_LOG
from esdedup.elastic.forest.store import ElasticStore
from esdedup.forest import Assignment
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign
from tests.support.forests import (
    ARTICLES,
    assert_rearrivals_are_known,
    hashes,
    nodes,
    roots,
    without_hashes,
)
from tests.support.names import Names


def documents(es: Elasticsearch, forest: str) -> list[str]:
    es.indices.refresh(index=forest)
    hits = es.search(index=forest, query=EVERY_LOG, size=1_000, sort="log")["hits"]["hits"]
    return [str(hit["_id"]) for hit in hits]


def opened(es: Elasticsearch, forest: str, *, memory_bytes: int = 2**30) -> ElasticStore:
    return ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, memory_bytes=memory_bytes)


def arrive(store: ElasticStore, numbers: range, *, time: int = 0) -> list[Assignment]:
    batch = [Arrival(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}", time) for number in numbers]
    return assign(store, as_batch(batch), now_ms=NOW_MS)


def test_small_batches_share_a_document(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with opened(es, forest) as store:
        for number in range(20):
            arrive(store, range(number, number + 1))
        assert documents(es, forest) == ["log-1"]
        arrive(store, range(1_000, 2_000))
        arrive(store, range(20, 21))
        assert documents(es, forest) == ["log-1", "log-2", "log-3"]
    with opened(es, forest) as store:
        assert {each.kind.value for each in arrive(store, range(21))} == {"known"}
        # A new owner starts a new document, since its predecessor may have left the last document incomplete.
        assert documents(es, forest)[-1] == "log-4"


def test_a_late_copy_of_a_write_changes_nothing(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write is sent again because its response was lost, and its first copy arrives after later writes."""
    forest, sent = index_name("forest"), []

    def send(client: Elasticsearch, operations: Any, **options: Any) -> list[Result]:
        sent.append((client, operations, options))
        return send_bulk(client, operations, **options)

    monkeypatch.setattr(writer, "send_bulk", send)
    with opened(es, forest) as store:
        arrive(store, range(1))
        client, operations, options = sent[-1]
        arrive(store, range(1, 2))
        found = nodes(es, forest)
        late = send_bulk(client, operations, **options | {"is_settled": lambda _: True})
        assert {each["status"] for each in late} == {HTTPStatus.CONFLICT}
        assert nodes(es, forest) == found
        assert len(found) == 2


def test_a_node_seen_again_is_logged_without_its_signature(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")

    def size_bytes() -> int:
        es.indices.refresh(index=forest)
        body = {"query": EVERY_LOG, "docvalue_fields": ["packed"], "size": 100}
        hits = es.search(index=forest, body=body)["hits"]["hits"]
        return sum(len(hit["fields"]["packed"][0]) for hit in hits)

    with opened(es, forest) as store:
        arrive(store, range(500))
        before = size_bytes()
        arrive(store, range(500), time=AGING.granularity_ms * 3)
        # The record of a node that is seen again takes 25 bytes instead of 65.
        assert size_bytes() < 1.5 * before


@pytest.mark.parametrize("is_by_owner", [True, False])
def test_expired_documents_are_deleted_but_live_nodes_kept(
    es: Elasticsearch, index_name: Names, is_by_owner: bool
) -> None:
    forest, day = index_name("forest"), AGING.retention_ms
    maintenance = Maintenance(es, forest=forest)
    with opened(es, forest) as store:
        arrive(store, range(1_000))
        arrive(store, range(10), time=day // 2)
        arrive(store, range(1_000, 2_000), time=day + day // 4)
        first, *others = documents(es, forest)
        if is_by_owner:
            *_, expired = store.expiring()
            # A second call finds nothing to expire.
            assert list(store.expiring()) == []
    if not is_by_owner:
        found = maintenance.expire(dry_run=True)
        assert found.leaves + found.roots == 990
        expired = maintenance.expire()
    assert (expired.leaves + expired.roots, expired.kept) == (990, 10)
    assert first not in documents(es, forest)
    assert set(others) <= set(documents(es, forest))
    assert len(nodes(es, forest)) == 1_010
    with opened(es, forest) as store:
        assert {each.kind.value for each in arrive(store, range(10))} == {"known"}
    assert list(maintenance.verify()) == []


def test_a_damaged_document_does_not_affect_other_documents(es: Elasticsearch, index_name: Names) -> None:
    """The damaged document is deleted together with an expired document."""
    forest, day = index_name("forest"), AGING.retention_ms
    with opened(es, forest) as store:
        arrive(store, range(500))
        arrive(store, range(500, 1_000))
        arrive(store, range(700, 710), time=day // 2)
        arrive(store, range(1_000, 1_500), time=day + day // 4)
        body = {"query": {"ids": {"values": ["log-1"]}}, "docvalue_fields": ["packed"]}
        es.indices.refresh(index=forest)
        (hit,) = es.search(index=forest, body=body)["hits"]["hits"]
        packed = base64.b64encode(base64.b64decode(hit["fields"]["packed"][0])[:1_000]).decode()
        es.index(index=forest, id="log-1", document={"log": 1, "packed": packed, "seen": 0}, refresh=True)
        *_, expired = store.expiring()
        assert expired.kept == 10
    assert len(nodes(es, forest)) == 510
    with opened(es, forest) as store:
        assert {each.kind.value for each in arrive(store, range(700, 710))} == {"known"}


def test_a_forest_beyond_its_memory_limit_refuses_articles(
    es: Elasticsearch, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    """The owner warns once before it refuses articles. It accepts articles again when the limit is raised."""
    forest = index_name("forest")
    with opened(es, forest) as store:
        arrive(store, range(4_000))
        size_bytes = store.contents().memory_bytes
    with (
        caplog.at_level(logging.WARNING, "esdedup"),
        opened(es, forest, memory_bytes=size_bytes + 20_000) as store,
    ):
        arrive(store, range(10))
        arrive(store, range(10))
        assert len(caplog.messages) == 1
        assert "then articles are refused" in caplog.text
        arrive(store, range(4_000, 20_000))
        with pytest.raises(ForestFull, match="the lookup 'search'") as raised:
            arrive(store, range(10))
        assert raised.value.forest == forest
    with pytest.raises(ForestFull):
        opened(es, forest, memory_bytes=10_000)
    with opened(es, forest) as store:
        assert {each.kind.value for each in arrive(store, range(4_000))} == {"known"}


def test_a_forest_with_the_most_nodes_refuses_articles(
    es: Elasticsearch, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    forest = index_name("forest")
    with caplog.at_level(logging.WARNING, "esdedup"), opened(es, forest) as store:
        store.relation.most_nodes = 1_000
        arrive(store, range(799))
        arrive(store, range(799, 800))
        assert store.contents().filled == 0.8
        assert not caplog.messages
        arrive(store, range(800, 900))
        arrive(store, range(900, 1_001))
        assert len(caplog.messages) == 1
        assert "has 900 nodes in" in caplog.text
        assert "may have 1,000 nodes in" in caplog.text
        with pytest.raises(ForestFull, match=r"has as many nodes as memory can hold\. Shorten the retention"):
            arrive(store, range(10))


def test_a_rebuild_can_change_the_lookup(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = roots(es, index)
    maintenance = Maintenance(es, forest=forest)
    for lookup in ("search", "memory"):
        # The articles that arrive again below may be seen in a later hour.
        nodes_before, hashes_before = nodes(es, forest), hashes(es, forest)
        maintenance.rebuild([index], lookup=lookup)
        assert ForestIndex.find(es, forest).meta.lookup == lookup
        assert without_hashes(nodes(es, forest)) == without_hashes(nodes_before)
        assert hashes(es, forest) == hashes_before
        assert list(maintenance.verify([index])) == []
        assert_rearrivals_are_known(es, index, forest, VERIFIED)
    # A rebuild keeps the lookup unless another one is given.
    maintenance.rebuild([index])
    assert ForestIndex.find(es, forest).meta.lookup == "memory"
    with (
        Dedup(es, forest=forest, lookup="search") as dedup,
        pytest.raises(ForestMismatch, match="has the lookup 'memory'"),
    ):
        list(dedup.enrich([{"_index": index, **ARTICLES[0]}]))
    assert roots(es, index) == before

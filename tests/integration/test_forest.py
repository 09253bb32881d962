"""The forest on a real server: refused indices, failed writes, and unrefreshed writes."""

import dataclasses
import logging
import threading
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import VERIFIED, Dedup, ForestMismatch, Maintenance, ServerError
from esdedup.elastic.forest.meta import Lookup, Meta
from esdedup.elastic.forest.store import ElasticStore
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import begin, decide
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign
from tests.support.between import Answer, Send, Sent, client_with, failure
from tests.support.forests import ARTICLES, TEXT, in_both_lookups, in_each_way
from tests.support.names import Names
from tests.support.secured import secured


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({}, "not a forest of esdedup"),
        ({"esdedup": {"format": 99, "profile": "classic-4"}}, "format 99"),
        (
            {
                "esdedup": dataclasses.asdict(Meta.of(VERIFIED))
                | {"profile": "verified-3", "agreement": {"least_resemblance": 0.53, "root_slack": 0.15}}
            },
            "another version of esdedup .*profile verified-3.*`esdedup migrate`",
        ),
        ({"esdedup": dataclasses.asdict(Meta.of(VERIFIED)) | {"layout": "4x16"}}, "`esdedup migrate`"),
    ],
)
def test_indices_that_are_not_usable_forests_are_refused(
    es: Elasticsearch, index_name: Names, meta: dict[str, Any], message: str
) -> None:
    forest = index_name("forest")
    es.indices.create(index=forest, mappings={"_meta": meta})
    with pytest.raises(ForestMismatch, match=message):
        list(Dedup(es, forest=forest).enrich([{"_id": "1", "text": TEXT}]))


def test_an_alias_is_refused_as_a_forest(es: Elasticsearch, index_name: Names) -> None:
    forest, alias = index_name("forest"), index_name("alias")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()
    es.indices.put_alias(index=forest, name=alias)
    with pytest.raises(ForestMismatch, match="alias of"):
        ElasticStore(es, forest=alias, profile=CLASSIC, aging=AGING)


@pytest.mark.parametrize(("written", "kind", "seq"), [(0, "new_root", 1), (2, "joined", 3), (3, "joined", 3)])
@in_each_way
def test_assignments_stay_correct_after_a_failed_write(
    elasticsearch_url: str, index_name: Names, lookup: dict[str, Any], written: int, kind: str, seq: int
) -> None:
    fails = False

    def between(request: Sent, send: Send) -> Answer:
        if not fails or request.operation != "_bulk" or b"~batch" in request.body[:40]:
            return send()
        # The request writes the state and two nodes. With lookup in memory, the forest has a log, which
        # stores all three in one document.
        assert len(request.items) == (1 if lookup["lookup"] == "memory" else 3)
        if written:
            send(b"".join(request.items[:written]))
        return failure()

    first, other, near = (
        Arrival(fingerprint, 0)
        for fingerprint in ("1111222233334444", "00ff00ff00ff00ff", "1111222233334445")
    )
    with (
        client_with(elasticsearch_url, between) as client,
        ElasticStore(client, forest=index_name("forest"), profile=CLASSIC, aging=AGING, **lookup) as store,
    ):
        fails = True
        with pytest.raises(ServerError, match="failed on purpose"):
            assign(store, as_batch([first, other]), now_ms=NOW_MS)
        fails = False
        (answer,) = assign(store, as_batch([near]), now_ms=NOW_MS)
    if "forest_shards" in lookup:
        # Several shards get the whole batch again.
        kind, seq = "joined", 3
    root = near.id if kind == "new_root" else first.id
    assert (answer.kind.value, answer.root, answer.seq) == (kind, root, seq)


@in_each_way
def test_a_batch_fails_if_its_predecessor_was_not_written(
    elasticsearch_url: str, index_name: Names, lookup: dict[str, Any]
) -> None:
    """The later batch relied on nodes that were never written."""
    may_continue = threading.Event()
    fails = False

    def between(request: Sent, send: Send) -> Answer:
        if not fails or request.operation != "_bulk":
            return send()
        assert may_continue.wait(10)
        return failure()

    first, near = (Arrival(each, 0) for each in ("1111222233334444", "1111222233334445"))
    with (
        client_with(elasticsearch_url, between) as client,
        ElasticStore(client, forest=index_name("forest"), profile=CLASSIC, aging=AGING, **lookup) as store,
    ):
        fails = True
        begin(store)
        decided = decide(store, as_batch([first]), now_ms=NOW_MS)
        assert not decided.written.done()
        begin(store)
        threading.Timer(0.1, may_continue.set).start()
        with pytest.raises(ServerError, match="failed on purpose"):
            decide(store, as_batch([near]), now_ms=NOW_MS)
        with pytest.raises(ServerError, match="failed on purpose"):
            decided.written.result()
        fails = False
        (answer,) = assign(store, as_batch([near]), now_ms=NOW_MS)
        assert (answer.kind.value, answer.root, answer.seq) == ("new_root", near.id, 1)


FIRST, THEN = ARTICLES[:5], ARTICLES[5:205]


def mostly_unrefreshed(es: Elasticsearch, index_name: Names, lookup: Lookup) -> tuple[Dedup, str, str]:
    """Feed a forest without refreshing it, so searches miss most articles and nodes."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, lookup=lookup) as dedup:
        dedup.setup(index)
        es.indices.put_settings(index=index, settings={"refresh_interval": -1})
        helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in FIRST))
    dedup = Dedup(es, forest=forest)
    helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in THEN))
    return dedup, index, forest


@in_both_lookups
def test_maintenance_sees_unrefreshed_writes(es: Elasticsearch, index_name: Names, lookup: Lookup) -> None:
    dedup, index, forest = mostly_unrefreshed(es, index_name, lookup)
    with dedup:
        maintenance = Maintenance(es, forest=forest)
        assert maintenance.count_articles([index]) == len(FIRST) + len(THEN)
        seen: list[int] = []
        assert list(maintenance.verify([index], on_progress=seen.append)) == []
        assert sum(seen) == maintenance.count([index]) > len(FIRST) + len(THEN)
        helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in ARTICLES[205:210]))
    assert Maintenance(es, forest=forest).rebuild([index]) == maintenance.stats().nodes


def test_a_client_that_may_not_refresh_is_warned(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    dedup, index, forest = mostly_unrefreshed(es, index_name, "search")
    names = {"names": ["*"], "privileges": ["view_index_metadata", "read"]}
    es.indices.refresh(index=index)
    with dedup, secured(elasticsearch_url, {"reader": {"indices": [names]}}) as node:
        reader = Elasticsearch(node.url, basic_auth=("reader", "password"))
        with pytest.raises(ForestMismatch, match="this client may not refresh it"):
            list(Maintenance(reader, forest=forest).verify([index]))
        es.indices.refresh(index=forest)
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="esdedup"):
            assert list(Maintenance(reader, forest=forest).verify([index])) == []
        (warning,) = (each.message for each in caplog.records if each.name == "esdedup")
        assert "(it lacks the privilege `maintenance`)" in warning

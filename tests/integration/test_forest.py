"""The forest on a real server: which indices are refused, and failed writes that its laws survive."""

import dataclasses
import threading
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import KEYWORDS, VERIFIED, Dedup, ForestMismatch, ServerUnavailable
from esdedup.elastic.bulk import send_bulk
from esdedup.elastic.forest import writer
from esdedup.elastic.forest.meta import Meta
from esdedup.elastic.forest.store import ElasticStore
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import Forest
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.forests import TEXT, in_each_way
from tests.support.names import Names


def test_another_profile_is_refused(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    with pytest.raises(ForestMismatch, match=r"verified-3.*keywords-2") as refused:
        list(Dedup(es, forest=forest, profile=KEYWORDS).enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    assert refused.value.forest == forest
    assert (refused.value.found, refused.value.supported) == ("verified-3", "keywords-2")


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({}, "not a forest of esdedup"),
        ({"esdedup": {"format": 99, "profile": "classic-2"}}, "format 99"),
        (
            {"esdedup": dataclasses.asdict(Meta.of(VERIFIED)) | {"agreement": {"number_weight": 5}}},
            r"rules \(number_weight\)",
        ),
        ({"esdedup": dataclasses.asdict(Meta.of(VERIFIED)) | {"layout": "4x16"}}, "layout '4x16'"),
    ],
)
def test_an_index_that_is_not_a_forest_is_refused(
    es: Elasticsearch, index_name: Names, meta: dict[str, Any], message: str
) -> None:
    forest = index_name("forest")
    es.indices.create(index=forest, mappings={"_meta": meta})
    with pytest.raises(ForestMismatch, match=message):
        list(Dedup(es, forest=forest).enrich([{"_id": "1", "text": TEXT}]))


def test_an_alias_is_refused(es: Elasticsearch, index_name: Names) -> None:
    forest, alias = index_name("forest"), index_name("alias")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()
    es.indices.put_alias(index=forest, name=alias)
    with pytest.raises(ForestMismatch, match="alias of"):
        ElasticStore(es, forest=alias, profile=CLASSIC, aging=AGING)


@pytest.mark.parametrize(("written", "kind", "seq"), [(0, "new_root", 1), (2, "joined", 3), (3, "joined", 3)])
@in_each_way
def test_after_a_failed_write_the_forest_goes_on_by_its_laws(
    es: Elasticsearch,
    index_name: Names,
    monkeypatch: pytest.MonkeyPatch,
    lookup: dict[str, Any],
    written: int,
    kind: str,
    seq: int,
) -> None:
    forest = index_name("forest")
    store = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **lookup)

    def fail(client: Elasticsearch, state_and_nodes: list[Any], **options: Any) -> None:
        # A log has all of it in one.
        assert len(state_and_nodes) == (1 if lookup["lookup"] == "memory" else 3)
        send_bulk(client, state_and_nodes[:written], **options)
        raise ServerUnavailable("failed on purpose")

    first, other, near = (
        Arrival(fingerprint, 0)
        for fingerprint in ("1111222233334444", "00ff00ff00ff00ff", "1111222233334445")
    )
    with monkeypatch.context() as patch:
        patch.setattr(writer, "send_bulk", fail)
        with pytest.raises(ServerUnavailable):
            Forest(store).assign(as_batch([first, other]), now_ms=NOW_MS)
    (answer,) = Forest(store).assign(as_batch([near]), now_ms=NOW_MS)
    root = near.id if kind == "new_root" else first.id
    assert (answer.kind.value, answer.root, answer.seq) == (kind, root, seq)
    store.close()


@in_each_way
def test_a_batch_that_was_decided_after_one_that_cannot_be_written_fails_with_it(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch, lookup: dict[str, Any]
) -> None:
    """It has found nodes that no crash would leave."""
    goes_on = threading.Event()

    def fail(*_: object, **__: object) -> None:
        assert goes_on.wait(10)
        raise ServerUnavailable("failed on purpose")

    first, near = (Arrival(each, 0) for each in ("1111222233334444", "1111222233334445"))
    forest = index_name("forest")
    with ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, **lookup) as store:
        with monkeypatch.context() as patch:
            patch.setattr(writer, "send_bulk", fail)
            Forest(store).begin()
            decided = Forest(store).decide(as_batch([first]), now_ms=NOW_MS)
            assert not decided.written.done()
            Forest(store).begin()
            threading.Timer(0.1, goes_on.set).start()
            with pytest.raises(ServerUnavailable):
                Forest(store).decide(as_batch([near]), now_ms=NOW_MS)
            with pytest.raises(ServerUnavailable):
                decided.written.result()
        (answer,) = Forest(store).assign(as_batch([near]), now_ms=NOW_MS)
        assert (answer.kind.value, answer.root, answer.seq) == ("new_root", near.id, 1)

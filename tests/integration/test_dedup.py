"""Feeding an index on a real server with `Dedup`."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import (
    ArticleRejected,
    Dedup,
    Maintenance,
    ServerUnavailable,
    SettingError,
)
from esdedup.elastic.client import connect
from tests.support.forests import TEXT, roots
from tests.support.names import Names


def test_every_kind_of_action_is_enriched(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("news")
    seen: list[ArticleRejected] = []
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        run: list[dict[str, Any] | str | bytes] = [
            {"_index": index, "_id": "flat", "text": TEXT},
            {"_index": index, "_id": "doomed", "text": TEXT + " today"},
            {"_op_type": "create", "_index": index, "_id": "made", "_source": {"text": TEXT + "!"}},
            {"_index": index, "_id": "bad", "text": 7},
            {"_op_type": "delete", "_index": index, "_id": "doomed"},
            {"_op_type": "update", "_index": index, "_id": "flat", "doc": {"clicks": 1}},
            {
                "_op_type": "update",
                "_index": index,
                "_id": "made",
                "doc": {"text": "Quite another text about a cat"},
            },
            {"_index": index, "_id": "empty-1", "text": ""},
            {"_index": index, "_id": "empty-2", "text": "!!!"},
            {"_index": index, "text": TEXT},
            f'{{"text": "{TEXT}"}}',
        ]
        helpers.bulk(es, dedup.enrich(run, on_rejected=seen.append), index=index)
    found = roots(es, index)
    assert [each.article for each in seen] == ["bad"]
    assert "doomed" not in found
    assert found["made"] != found["flat"]
    assert len({found["empty-1"], found["empty-2"]}) == 2
    assert Counter(found.values())[found["flat"]] == 3
    assert es.get(index=index, id="flat")["_source"]["clicks"] == 1


def test_rejections_are_logged_without_text(
    es: Elasticsearch, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    dedup = Dedup(es, forest=index_name("forest"))
    assert list(dedup.enrich([{"_id": "a", "text": ["a secret", 5]}])) == []
    assert caplog.messages == ["article left out: a: the text in the field 'text' is a list, not a string"]


def test_backfill_takes_time_from_the_articles(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("news")
    run = [
        {"_index": index, "_id": "1", "text": TEXT, "published_at": "2020-01-01T00:00:00Z"},
        {"_index": index, "_id": "2", "text": TEXT + " x", "published_at": "2020-01-05T00:00:00Z"},
        {
            "_index": index,
            "_id": "3",
            "text": "Quite another text about a cat",
            "published_at": "2020-01-20T00:00:00Z",
        },
        {"_index": index, "_id": "4", "text": TEXT, "published_at": "3732-01-01T00:00:00Z"},
    ]
    kinds: list[tuple[str, int]] = []
    with Dedup(es, forest=index_name("forest"), retention=timedelta(days=7)) as dedup:
        dedup.setup(index)
        enriched = dedup.enrich(
            run, backfill=True, on_assigned=lambda _, each: kinds.append((each.kind.value, each.time_ms))
        )
        helpers.bulk(es, enriched)
    day = 86_400_000
    start = 1577836800000
    assert [time_ms for _, time_ms in kinds] == [start, start + 4 * day, start + 19 * day, start + 19 * day]
    # The first cluster had expired when its text arrived again.
    assert [kind for kind, _ in kinds][2:] == ["new_root", "new_root"]


def test_one_reachable_server_of_several_is_enough(elasticsearch_url: str) -> None:
    with connect(f"http://127.0.0.1:9, {elasticsearch_url}") as client:
        assert len(client.transport.node_pool.all()) == 2
        for _ in range(4):
            client.cluster.health()


def test_an_unreachable_server_is_reported(index_name: Names) -> None:
    with pytest.raises(ServerUnavailable, match="cannot read the mapping"):
        Dedup(Elasticsearch("http://127.0.0.1:9")).reader.list("news")


@pytest.mark.parametrize(
    "parameters",
    [
        {"batch_size": 0},
        {"batch_size": 5_001},
        {"forest": "Upper"},
        {"forest": ""},
        {"retention": timedelta(0)},
        {"lease_ttl_s": 0.5},
        {"lease_ttl_s": float("nan")},
        {"wait_s": -1},
        {"wait_s": float("nan")},
        {"most_plausible_leaves": 0},
        {"most_plausible_leaves": 1_000},
    ],
)
def test_invalid_settings_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Dedup(Elasticsearch("http://127.0.0.1:9"), **parameters)


def test_an_invalid_id_rejects_only_its_article(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("news")
    seen: list[ArticleRejected] = []
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        bad: list[Any] = ["x" * 513, ["a"], "", True, 1.5]
        run = [{"_index": index, "_id": each, "text": TEXT} for each in ("good", *bad, 7)]
        assert helpers.bulk(es, dedup.enrich(run, on_rejected=seen.append)) == (2, [])
    assert len(seen) == len(bad)
    assert set(roots(es, index)) == {"good", "7"}


def test_an_update_leaves_no_fingerprint_of_the_previous_text(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        article = {"_index": index, "_id": "1"}
        for text, has_fingerprint in ((TEXT, True), ("!", False), (TEXT, True)):
            update = {"_op_type": "update", **article, "doc": {"text": text}, "doc_as_upsert": True}
            helpers.bulk(es, dedup.enrich([update]), refresh=True)
            stored = es.get(index=index, id="1")["_source"]["dedup"]
            bare = {name for name in ("fingerprint", "signature", "bands", "page") if stored[name] is None}
            assert bare == (set() if has_fingerprint else {"fingerprint", "signature", "bands", "page"})
            assert stored["root"].startswith("~") is not has_fingerprint
            assert list(Maintenance(es, forest=forest).verify([index])) == []
            assert dedup.reader.list(index).rows[0].root == stored["root"]
            assert dedup.reader.similar(index, "1").total == 0

"""`Dedup` on a real server: feeding, and who may feed."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import (
    KEYWORDS,
    ArticleRejected,
    Dedup,
    Fields,
    ForestBusy,
    ForestLost,
    ForestMismatch,
    IndexNotReady,
    ServerUnavailable,
    SettingError,
    sample,
)
from esdedup.elastic.forest_index import ElasticStore
from esdedup.elastic.lease import LEASE_ID
from esdedup.forest import Aging, Forest
from esdedup.profile import CLASSIC
from tests.arrivals import NOW_MS, Arrival, as_batch

Names = Callable[[str], str]
TEXT = "The quick brown fox jumps over the lazy dog near the river"


def actions(index: str) -> Iterator[dict[str, Any]]:
    for article in sample.articles():
        source = dict(article)
        yield {"_index": index, "_id": source.pop("id"), "_source": source}


def roots(es: Elasticsearch, index: str) -> dict[str, str]:
    es.indices.refresh(index=index)
    hits = es.search(index=index, size=10_000, source=["dedup"])["hits"]["hits"]
    return {hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits}


def test_the_lines_of_the_readme(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        assert dedup.setup(index)
        indexed, _ = helpers.bulk(es, dedup.enrich(actions(index)))
        es.indices.refresh(index=index)
        page = dedup.list(index, query={"match": {"title": "piano"}}, sort="newest", size=20)
        similar = dedup.similar(index, page.rows[0].id)
    assert indexed == len(list(sample.articles()))
    assert page.rows[0].similar == similar.total > 0
    assert len(set(roots(es, index).values())) < 40


def test_indexed_again_nothing_changes(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    found = []
    for batch_size in (1_000, 7, 100):
        kinds: Counter[str] = Counter()
        with Dedup(es, forest=forest, batch_size=batch_size) as dedup:
            dedup.setup(index)
            told = dedup.enrich(
                actions(index), on_assigned=lambda _, said, kinds=kinds: kinds.update([said.kind.value])
            )
            helpers.bulk(es, told)
        found.append((roots(es, index), kinds))
    assert found[0][0] == found[1][0] == found[2][0]
    assert found[0][1]["new_root"] > 0
    assert set(found[1][1]) == set(found[2][1]) == {"known"}


def test_batches_do_not_matter(es: Elasticsearch, index_name: Names) -> None:
    found = []
    for batch_size in (1, 50, 5_000):
        index, forest = index_name("news"), index_name("forest")
        with Dedup(es, forest=forest, batch_size=batch_size) as dedup:
            dedup.setup(index)
            helpers.bulk(es, dedup.enrich(actions(index)))
        found.append(roots(es, index))
    assert found[0] == found[1] == found[2]


def test_every_kind_of_action(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("news")
    seen: list[ArticleRejected] = []
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        run = [
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
    assert list(dedup.enrich([{"_id": "a", "text": ["a secret"]}])) == []
    assert caplog.messages == ["article left out: a: its text in 'text' is a list, not a string"]


def test_enriching_is_lazy(es: Elasticsearch, index_name: Names) -> None:
    index, taken = index_name("news"), 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for action in actions(index):
            taken += 1
            yield action

    with Dedup(es, forest=index_name("forest"), batch_size=10) as dedup:
        dedup.setup(index)
        next(iter(dedup.enrich(counted())))
        assert taken == 10


def test_one_forest_for_two_indices(es: Elasticsearch, index_name: Names) -> None:
    one, other = index_name("one"), index_name("other")
    with Dedup(es, forest=index_name("forest")) as dedup:
        for index in (one, other):
            dedup.setup(index)
            helpers.bulk(es, dedup.enrich([{"_index": index, "_id": "a", "text": TEXT}]))
    assert roots(es, one) == roots(es, other)


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
        told = dedup.enrich(
            run, backfill=True, on_assigned=lambda one, said: kinds.append((said.kind.value, said.time_ms))
        )
        helpers.bulk(es, told)
    day = 86_400_000
    start = 1577836800000
    assert [time_ms for _, time_ms in kinds] == [start, start + 4 * day, start + 19 * day, start + 19 * day]
    # The first cluster had expired when its text came again.
    assert [kind for kind, _ in kinds][2:] == ["new_root", "new_root"]


def test_an_index_that_is_not_ready(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("plain"), index_name("forest")
    dedup = Dedup(es, forest=forest)
    with pytest.raises(IndexNotReady, match="setup"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    es.indices.create(index=index)
    with pytest.raises(IndexNotReady, match="lacks the fields"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    with pytest.raises(IndexNotReady, match="lacks the fields"):
        dedup.list(index)
    assert not es.indices.exists(index=forest)
    es.index(index=index, id="1", document={"text": TEXT, "dedup": {"root": "x"}}, refresh=True)
    with pytest.raises(IndexNotReady, match="root"):
        dedup.setup(index)
    with pytest.raises(IndexNotReady, match="no such index"):
        dedup.similar(index_name("none"), "1")


def test_an_index_that_exists_gets_the_fields(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("old")
    es.indices.create(index=index, mappings={"properties": {"headline": {"type": "text"}}})
    dedup = Dedup(es, forest=index_name("forest"))
    assert not dedup.setup(index)
    assert not dedup.setup(index)
    dedup.check(index)


def test_an_index_made_by_a_template(es: Elasticsearch, index_name: Names) -> None:
    import json
    from pathlib import Path

    index, name = index_name("daily"), "esdedup-test-articles"
    body = json.loads((Path(__file__).parents[2] / "mappings" / "articles.json").read_text())
    es.cluster.put_component_template(name=name, **{key.lstrip("_"): value for key, value in body.items()})
    es.indices.put_index_template(
        name=name, index_patterns=["test-daily-*"], composed_of=[name], priority=900
    )
    try:
        with Dedup(es, forest=index_name("forest")) as dedup:
            dedup.check(index)
            helpers.bulk(es, dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
            es.indices.refresh(index=index)
            assert dedup.list(index).total_rows == 1
    finally:
        es.indices.delete_index_template(name=name)
        es.cluster.delete_component_template(name=name)


def test_another_profile_is_refused(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    with pytest.raises(ForestMismatch, match=r"classic-1.*keywords-1"):
        list(Dedup(es, forest=forest, profile=KEYWORDS).enrich([{"_index": index, "_id": "1", "text": TEXT}]))


@pytest.mark.parametrize(
    ("meta", "message"),
    [({}, "no forest of esdedup"), ({"esdedup": {"format": 99, "profile": "classic-1"}}, "format 99")],
)
def test_an_index_that_is_no_forest_of_ours(
    es: Elasticsearch, index_name: Names, meta: dict[str, Any], message: str
) -> None:
    forest = index_name("forest")
    es.indices.create(index=forest, mappings={"_meta": meta})
    with pytest.raises(ForestMismatch, match=message):
        list(Dedup(es, forest=forest).enrich([{"_id": "1", "text": TEXT}]))


def test_a_second_writer_is_told_who_is_first(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with Dedup(es, forest=forest) as first:
        list(first.enrich([{"_id": "1", "text": TEXT}]))
        with pytest.raises(ForestBusy, match=r"process \d+ on .* owns it since"):
            list(Dedup(es, forest=forest).enrich([{"_id": "2", "text": TEXT}]))
        # Reading never needs the forest.
        with pytest.raises(IndexNotReady):
            Dedup(es, forest=forest).list(index_name("none"))
    with Dedup(es, forest=forest) as second:
        assert len(list(second.enrich([{"_id": "2", "text": TEXT}]))) == 1


def test_a_process_that_died_gives_way_at_once(
    es: Elasticsearch, index_name: Names, elasticsearch_url: str
) -> None:
    forest = index_name("forest")
    program = f"""
import os, signal
from elasticsearch import Elasticsearch
from esdedup import Dedup
from esdedup.elastic.client import connect
dedup = Dedup(connect({elasticsearch_url!r}), forest={forest!r})
for action in dedup.enrich([{{"_id": "1", "text": {TEXT!r}}}]):
    print(action["_source"]["dedup"]["root"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    died = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert died.returncode == -9
    started = time.monotonic()
    with Dedup(es, forest=forest) as dedup:
        (again,) = dedup.enrich([{"_id": "2", "text": TEXT}])
    assert time.monotonic() - started < 15
    assert again["_source"]["dedup"]["root"] == died.stdout.strip()
    assert again["_source"]["dedup"]["seq"] == 2


def test_whoever_lost_the_forest_cannot_write(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    aging = Aging.of(retention=timedelta(days=1))
    stale = ElasticStore(es, forest=forest, profile=CLASSIC)
    Forest(stale, aging=aging).assign(as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    # As if its time were over: another process may take the forest now.
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})
    owner = ElasticStore(es, forest=forest, profile=CLASSIC)
    with pytest.raises(ForestLost, match="lost the forest"):
        Forest(stale, aging=aging).assign(as_batch([Arrival("f" * 16, 0)]), now_ms=NOW_MS)
    assert stale.state().seq == 1
    (known,) = Forest(owner, aging=aging).assign(as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    assert known.kind.value == "known"
    es.indices.refresh(index=forest)
    assert es.count(index=forest, query={"exists": {"field": "seq"}})["count"] == 1
    owner.close()
    stale.close()


def test_a_server_that_is_not_there(index_name: Names) -> None:
    with pytest.raises(ServerUnavailable, match="cannot search"):
        Dedup(Elasticsearch("http://127.0.0.1:9")).list("news")


@pytest.mark.parametrize(
    "parameters",
    [
        {"batch_size": 0},
        {"batch_size": 5_001},
        {"forest": "Upper"},
        {"forest": ""},
        {"retention": timedelta(0)},
    ],
)
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Dedup(Elasticsearch("http://127.0.0.1:9"), **parameters)


def test_other_field_names(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("other-names")
    fields = Fields(text="body", title="headline", time="at", source="by", link="href", dedup="near")
    with Dedup(es, forest=index_name("forest"), fields=fields) as dedup:
        dedup.setup(index)
        article = {
            "body": TEXT,
            "headline": "Fox",
            "at": "2026-01-01",
            "by": "A",
            "href": "https://a.example/1",
        }
        helpers.bulk(es, dedup.enrich([{"_index": index, "_id": "1", **article}]))
        es.indices.refresh(index=index)
        (row,) = dedup.list(index).rows
    assert (row.title, row.published_at, row.source, row.url) == (
        "Fox",
        "2026-01-01",
        "A",
        "https://a.example/1",
    )

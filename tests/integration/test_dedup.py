"""`Dedup` on a real server: feeding, and who may feed."""

import gc
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
from esdedup.elastic.client import connect
from esdedup.elastic.forest_index import ForestIndex
from esdedup.elastic.lease import LEASE_ID, Lease
from esdedup.elastic.store import ElasticStore
from esdedup.forest import Aging, Forest, Kind, relation_of
from esdedup.forest.memory import MemoryStore
from esdedup.profile import CLASSIC
from tests.arrivals import AGING, NOW_MS, Arrival, as_batch

Names = Callable[[str], str]
ARTICLES = list(sample.articles(300))
TEXT = "The quick brown fox jumps over the lazy dog near the river"


def actions(index: str) -> Iterator[dict[str, Any]]:
    for article in ARTICLES:
        source = dict(article)
        yield {"_index": index, "_id": source.pop("id"), "_source": source}


def roots(es: Elasticsearch, index: str) -> dict[str, str]:
    es.indices.refresh(index=index)
    hits = es.search(index=index, size=10_000, source=["dedup"])["hits"]["hits"]
    return {hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits}


def test_the_lines_of_the_readme(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("news"), index_name("forest")
    ((title, _),) = Counter(article["title"] for article in ARTICLES).most_common(1)
    with Dedup(es, forest=forest) as dedup:
        assert dedup.setup(index)
        indexed, _ = helpers.bulk(es, dedup.enrich(actions(index)))
        es.indices.refresh(index=index)
        page = dedup.list(index, query={"match_phrase": {"title": title}}, sort="newest", size=20)
        similar = dedup.similar(index, page.rows[0].id)
    assert indexed == len(ARTICLES)
    assert page.rows[0].similar == similar.total > 0
    assert len(set(roots(es, index).values())) < 100


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
    with pytest.raises(IndexNotReady, match="lacks fields"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    with pytest.raises(IndexNotReady, match="lacks fields"):
        dedup.list(index)
    assert not es.indices.exists(index=forest)
    es.index(index=index, id="1", document={"text": TEXT, "dedup": {"root": "x"}}, refresh=True)
    with pytest.raises(IndexNotReady, match="root"):
        dedup.setup(index)
    with pytest.raises(IndexNotReady, match="there is no index"):
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
    with pytest.raises(ForestMismatch, match=r"verified-1.*keywords-1"):
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
    stale = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING)
    Forest(stale).assign(as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    # As if its time were over: another process may take the forest now.
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})
    owner = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING)
    with pytest.raises(ForestLost, match="lost the forest"):
        Forest(stale).assign(as_batch([Arrival("f" * 16, 0)]), now_ms=NOW_MS)
    with pytest.raises(ForestLost):
        stale.state()
    (known,) = Forest(owner).assign(as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    assert known.kind.value == "known"
    es.indices.refresh(index=forest)
    assert es.count(index=forest, query={"exists": {"field": "seq"}})["count"] == 1
    owner.close()
    stale.close()


def test_one_of_several_servers_is_enough(elasticsearch_url: str) -> None:
    with connect(f"http://127.0.0.1:9, {elasticsearch_url}") as client:
        assert len(client.transport.node_pool.all()) == 2
        for _ in range(4):
            client.cluster.health()


def test_a_server_that_is_not_there(index_name: Names) -> None:
    with pytest.raises(ServerUnavailable, match="cannot read the mapping"):
        Dedup(Elasticsearch("http://127.0.0.1:9")).list("news")


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


@pytest.mark.parametrize("bad", ["x" * 513, ["a"], "", True, 1.5])
def test_an_id_that_elasticsearch_refuses_costs_its_article_only(
    es: Elasticsearch, index_name: Names, bad: Any
) -> None:
    index, seen = index_name("news"), []
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        run = [{"_index": index, "_id": each, "text": TEXT} for each in ("good", bad, 7)]
        assert helpers.bulk(es, dedup.enrich(run, on_rejected=seen.append)) == (2, [])
    assert len(seen) == 1
    assert set(roots(es, index)) == {"good", "7"}


def test_an_article_cannot_bring_a_root_of_its_own(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("news")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        helpers.bulk(
            es, dedup.enrich([{"_index": index, "_id": "1", "text": TEXT, "dedup.root": "x", "dedup": 5}])
        )
        es.indices.refresh(index=index)
        assert dedup.list(index).rows[0].root != "x"
        update = {"doc": {"text": TEXT, "dedup.root": "x"}, "upsert": {"text": TEXT, "dedup.seq": 1}}
        helpers.bulk(es, dedup.enrich([{"_op_type": "update", "_index": index, "_id": "2", **update}]))
        es.indices.refresh(index=index)
        assert dedup.list(index).total_articles == 2


def test_an_update_whose_upsert_alone_carries_the_text(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("news")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        action = {
            "_op_type": "update",
            "_index": index,
            "_id": "1",
            "doc": {"n": 1},
            "upsert": {"text": TEXT},
        }
        helpers.bulk(es, dedup.enrich([action, action]))
    assert len(roots(es, index)) == 1
    assert es.get(index=index, id="1")["_source"]["n"] == 1


@pytest.mark.parametrize("written", ["nothing", "roots", "everything"])
def test_after_a_failed_write_the_forest_goes_on_by_its_laws(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    forest = index_name("forest")
    store = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING)
    whole = ForestIndex._write
    calls = 0

    def fail(self: ForestIndex, documents: Any, alias: str) -> None:
        nonlocal calls
        calls += 1
        if written == "everything" or (written == "roots" and calls == 1):
            whole(self, documents, alias)
        if calls == (2 if written != "nothing" else 1):
            raise ServerUnavailable("failed on purpose")

    first, near = Arrival("1111222233334444", 0), Arrival("1111222233334445", 0)
    with monkeypatch.context() as patch:
        patch.setattr(ForestIndex, "_write", fail)
        with pytest.raises(ServerUnavailable):
            Forest(store).assign(as_batch([first]), now_ms=NOW_MS)
    (answer,) = Forest(store).assign(as_batch([near]), now_ms=NOW_MS)
    if written == "nothing":
        assert (answer.kind.value, answer.seq) == ("new_root", 1)
    else:
        assert (answer.kind.value, answer.root, answer.seq) == ("joined", first.id, 2)
    store.close()


def test_many_leaves_that_expire_at_many_times(es: Elasticsearch, index_name: Names) -> None:
    """One root has more leaves, but most of them expire before a batch ends; on every store the same."""
    aging = Aging(retention_ms=3_000, granularity_ms=1)
    one, other = 0, 0b111111 << 20
    leaves = [1 << bit | 1 << other_bit for bit in range(40, 64) for other_bit in range(bit)]
    run = [Arrival(f"{one:016x}", 0), Arrival(f"{other:016x}", 0)]
    run += [Arrival(f"{leaf:016x}", at) for at, leaf in enumerate(leaves[:1_100], 1)]
    run += [Arrival(f"{other ^ 1 << bit | 1:016x}", 2_900) for bit in range(40, 60)]
    # Both roots are three bits away; at the second time all but a few leaves of the first have expired.
    between = f"{0b111 << 20:016x}"
    ends = [Arrival(between, 4_095), Arrival(f"{0b111 << 21:016x}", 4_096)]
    answers = []
    for store in (
        MemoryStore(aging=aging, relation=relation_of(CLASSIC)),
        ElasticStore(es, forest=index_name("forest"), profile=CLASSIC, aging=aging),
    ):
        forest = Forest(store)
        forest.assign(as_batch(run), now_ms=NOW_MS)
        answers.append([(each.kind, each.root) for each in forest.assign(as_batch(ends), now_ms=NOW_MS)])
    assert answers[0] == answers[1]
    assert answers[0][0] == (Kind.JOINED, f"{other:016x}")


def test_a_lease_whose_answer_was_lost(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is sent again meets its own writing, and must know it."""
    forest = index_name("forest")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()

    class Twice:
        def __getattr__(self, name: str) -> Any:
            return getattr(es, name)

        def index(self, **parameters: Any) -> Any:
            es.index(**parameters)
            return es.index(**parameters)

        def options(self, **parameters: Any) -> "Twice":
            return self

    lease = Lease(Twice(), forest=forest)  # type: ignore[arg-type]
    lease.acquire()
    lease._renewed_at -= 20
    lease.renew()
    lease.release()
    assert es.get(index=forest, id=LEASE_ID)["_source"]["lease"]["released"]


def test_whoever_lost_the_forest_may_take_it_again(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    dedup = Dedup(es, forest=forest)
    list(dedup.enrich([{"_id": "1", "text": TEXT}]))
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})
    with Dedup(es, forest=forest) as other:
        list(other.enrich([{"_id": "2", "text": TEXT}]))
    with pytest.raises(ForestLost):
        list(dedup.enrich([{"_id": "3", "text": TEXT}]))
    (again,) = dedup.enrich([{"_id": "3", "text": TEXT}])
    assert again["_source"]["dedup"]["seq"] == 3
    dedup.close()


def test_several_indices_at_once(es: Elasticsearch, index_name: Names) -> None:
    one, other = index_name("several-a"), index_name("several-b")
    with Dedup(es, forest=index_name("forest")) as dedup:
        for index in (one, other):
            dedup.setup(index)
            run = [{"_index": index, "_id": str(number), "text": TEXT} for number in range(3)]
            helpers.bulk(es, dedup.enrich(run))
            es.indices.refresh(index=index)
        both = f"{one},{other}"
        (row,) = dedup.list(both).rows
        assert row.similar == dedup.similar(both, "0").total == 5
        assert {article.index for article in dedup.similar(both, "0", size=10).articles} == {one, other}
        plain = index_name("several-plain")
        es.indices.create(index=plain)
        for sort in ("newest", "similar-desc"):
            with pytest.raises(IndexNotReady, match="lacks fields"):
                dedup.list(f"{one},{plain}", sort=sort)  # type: ignore[arg-type]
        with pytest.raises(IndexNotReady, match="there is no index"):
            dedup.list("test-no-such-*")
        with pytest.raises(SettingError, match="empty"):
            dedup.list("")
        with pytest.raises(SettingError, match="one index"):
            dedup.check("test-several-*")


def test_an_alias_to_write_to(es: Elasticsearch, index_name: Names) -> None:
    one, other, alias = index_name("behind-a"), index_name("behind-b"), index_name("alias")
    dedup = Dedup(es, forest=index_name("forest"))
    for index in (one, other):
        dedup.setup(index)
        es.indices.put_alias(index=index, name=alias)
    with pytest.raises(IndexNotReady, match="none of them"):
        dedup.check(alias)
    es.indices.put_alias(index=other, name=alias, is_write_index=True)
    dedup.check(alias)


def test_a_forest_is_no_alias(es: Elasticsearch, index_name: Names) -> None:
    forest, alias = index_name("forest"), index_name("alias")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()
    es.indices.put_alias(index=forest, name=alias)
    with pytest.raises(ForestMismatch, match="alias of"):
        ElasticStore(es, forest=alias, profile=CLASSIC, aging=AGING)


def test_the_heart_beats_while_the_feeder_sleeps(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()

    def renewed_s() -> float:
        return float(es.get(index=forest, id=LEASE_ID)["_source"]["lease"]["renewed_s"])

    held = Lease(es, forest=forest, ttl_s=1.5)
    held.acquire()
    first = renewed_s()
    time.sleep(2.5)
    assert renewed_s() > first
    with pytest.raises(ForestBusy):
        Lease(es, forest=forest).acquire()
    # Whoever forgets a lease does not hold it for ever.
    del held
    gc.collect()
    time.sleep(2.5)
    taken = Lease(es, forest=forest)
    assert taken.acquire()
    assert taken.epoch == 3
    taken.release()
    after = renewed_s()
    time.sleep(0.5)
    assert renewed_s() == after

"""Expiry: which nodes are deleted, and that expired nodes never live again."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.owner import Owner

from esdedup import Dedup, Maintenance, ServerError
from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.expiry import expire
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.status import STATE_ID
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import Aging
from esdedup.times import DAY_MS
from tests.support.forests import ARTICLES, classic_node, feed, nodes, roots, stories, write
from tests.support.names import Names


@pytest.fixture
def ageing(es: Elasticsearch, index_name: Names) -> tuple[ForestIndex, Aging]:
    """A forest of two expired trees and a live one, each a root and a leaf."""
    forest = index_name("forest")
    aging = Aging.of(retention=timedelta(days=10))
    index = ForestIndex.open(es, forest, profile=CLASSIC, lookup="search")
    now = 1_000 * DAY_MS
    write(
        es,
        forest,
        *(
            classic_node(f"{name}{leaf:015x}", f"{name}{0:015x}", seq=seq, ms=seen)
            for name, first, seen in (("a", 1, now - 20 * DAY_MS), ("b", 3, now - 11 * DAY_MS), ("c", 5, now))
            for seq, leaf in enumerate((0, 1), first)
        ),
    )
    state = {"seq": 6, "time_ms": now, "origin_ms": now - 20 * DAY_MS}
    es.index(index=forest, id=STATE_ID, document={"state": state}, refresh=True)
    return index, aging


def test_only_expired_nodes_are_deleted(es: Elasticsearch, ageing: tuple[ForestIndex, Aging]) -> None:
    index, aging = ageing
    assert expiry.count_expired(index, aging) == expiry.Expired(leaves=2, roots=2)
    with ForestWriter(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=2, roots=2)
    assert {node[0] for node in nodes(es, index.name)} == {"c"}


@pytest.mark.parametrize("expire_every_s", [None, 1e-6])
def test_a_process_that_feeds_deletes_them_by_itself(
    es: Elasticsearch, ageing: tuple[ForestIndex, Aging], expire_every_s: float | None
) -> None:
    index, _ = ageing
    before = nodes(es, index.name).keys()
    with Dedup(es, forest=index.name, profile=CLASSIC, batch_size=1, expire_every_s=expire_every_s) as dedup:
        # Some after each batch: leaves before roots.
        assert len(list(dedup.enrich(ARTICLES[:6]))) == 6
    after = nodes(es, index.name).keys()
    assert before & after == (set() if expire_every_s else before)
    assert len(after - before) > 0


def test_a_batch_is_assigned_though_nothing_can_be_deleted(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def blocked(_: Owner) -> Iterator[expiry.Expired]:
        raise ServerError("the disk is full")

    monkeypatch.setattr(Owner, "_expiring", blocked)
    with Dedup(es, forest=index_name("forest"), batch_size=2, expire_every_s=1e-6) as dedup:
        assert len(list(dedup.enrich(ARTICLES[:4]))) == 4
    assert caplog.messages == ["expired nodes could not be deleted: the disk is full"] * 2


def test_a_node_that_is_needed_again_meanwhile_stays(
    es: Elasticsearch, ageing: tuple[ForestIndex, Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, aging = ageing
    delete = ForestWriter.delete
    reborn = classic_node(f"a{1:015x}", f"a{1:015x}", seq=7, ms=1_000 * DAY_MS)

    def late(self: ForestWriter, hits: Any) -> int:
        found = list(hits)
        if any(hit["_id"] == reborn.id for hit in found):
            write(es, index.name, reborn)
        return delete(self, found)

    monkeypatch.setattr(ForestWriter, "delete", late)
    with ForestWriter(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=2, kept=1)
    assert nodes(es, index.name)[reborn.id] == reborn


def test_no_root_goes_before_its_leaves(
    es: Elasticsearch, ageing: tuple[ForestIndex, Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, aging = ageing
    delete = ForestWriter.delete
    # As after a crash in the middle of the leaves: one of them stays.
    monkeypatch.setattr(
        ForestWriter,
        "delete",
        lambda self, hits: delete(self, [hit for hit in hits if hit["_id"] != f"b{1:015x}"]),
    )
    with ForestWriter(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=1, kept=2)
    assert Counter(node[0] for node in nodes(es, index.name)) == {"b": 2, "c": 2}
    monkeypatch.undo()
    with ForestWriter(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=1)


def test_expired_nodes_are_no_violation(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, lookup="search", retention=timedelta(days=2)) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES, backfill=True)
        assert dedup.expire().leaves
        assert dedup.expire() == expiry.Expired()
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    assert Maintenance(es, forest=forest).stats().expired == 0


def test_a_text_that_came_back_after_it_had_expired(es: Elasticsearch, index_name: Names) -> None:
    """Its old leaves are still there, and were made before the root that it is now."""
    index, forest = index_name("articles"), index_name("forest")
    one, near = next((each[0], each[1]) for each in stories(1))
    with Dedup(es, forest=forest, profile=CLASSIC, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        days = [(one, 1), (near, 1), (one, 20)]
        articles = [
            {"_id": str(number), "text": text, "published_at": f"2026-01-{day:02}"}
            for number, (text, day) in enumerate(days)
        ]
        feed(es, dedup, index, articles, backfill=True)
    maintenance = Maintenance(es, forest=forest)
    assert list(maintenance.verify([index])) == []
    assert maintenance.repair([index]).total() == 0


def test_longer_retention_revives_no_expired_node(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    one, near, other = stories(1)[0]

    def article(number: int, text: str, day: int) -> dict[str, Any]:
        return {"_id": str(number), "text": text, "published_at": f"2026-01-{day:02}"}

    with Dedup(es, forest=forest, profile=CLASSIC, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        # The first text arrives again and becomes a leaf; its own old leaf has expired.
        old = [article(0, one, 1), article(1, near, 1), article(2, other, 5), article(3, one, 5)]
        feed(es, dedup, index, old, backfill=True)
    with Dedup(es, forest=forest, profile=CLASSIC, retention=timedelta(days=30)) as dedup:
        feed(es, dedup, index, [article(4, near, 5)], backfill=True)
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.stats().retention_days == 30
    assert list(maintenance.verify([index])) == []
    found = roots(es, index)
    assert found["4"] == found["3"] == found["2"] != found["1"]
    # Without a retention, the forest keeps its own.
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        feed(es, dedup, index, [article(5, near, 6)], backfill=True)
    assert maintenance.stats().retention_days == 30
    assert maintenance.rebuild([index], replace=True)
    assert maintenance.stats().retention_days == 30


def test_a_rebuild_with_longer_retention_revives_no_expired_node(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    one, near, _ = stories(1)[0]
    with Dedup(es, forest=forest, profile=CLASSIC, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        articles = [
            {"_id": str(day), "text": text, "published_at": f"2026-01-{day:02}"}
            for text, day in ((one, 1), (near, 5))
        ]
        feed(es, dedup, index, articles, backfill=True)
    before = roots(es, index)
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.rebuild([index], replace=True, retention=timedelta(days=30)) == 1
    assert list(maintenance.verify([index])) == []
    assert maintenance.repair([index]).total() == maintenance.repair().total() == 0
    assert roots(es, index) == before

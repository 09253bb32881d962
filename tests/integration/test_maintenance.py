"""Maintenance of a forest on a real server: verification, statistics, ownership and rebuilding."""

import functools
import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import (
    CLASSIC,
    VERIFIED,
    Dedup,
    Fields,
    ForestBusy,
    ForestError,
    ForestMismatch,
    ForestMissing,
    IndexNotReady,
    Maintenance,
    Profile,
    RetentionShorter,
)
from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.fence import Fence
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import REBUILT_SUFFIX, Lookup, Meta
from esdedup.elastic.forest.status import STATE_ID
from esdedup.elastic.forest.stored import StoredNode
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.limits import Limits
from esdedup.maintenance import ViolationKind
from tests.support import stream
from tests.support.forests import (
    ARTICLES,
    SHARDED,
    a_leaf,
    all_nodes,
    feed,
    hashes,
    in_both_lookups,
    nodes,
    remove,
    renewing_threads,
    roots,
    stories,
    without_hashes,
)
from tests.support.names import Names


def test_a_sound_forest_has_no_violations(es: Elasticsearch, unchanged: tuple[str, str]) -> None:
    index, forest = unchanged
    seen: list[int] = []
    maintenance = Maintenance(es, forest=forest)
    assert list(maintenance.verify([index], on_progress=seen.append)) == []
    assert sum(seen) == maintenance.count([index]) == len(ARTICLES) + len(nodes(es, forest))


@pytest.mark.parametrize("lookup", ["search"])
def test_a_missing_state_is_derived_from_the_nodes(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = ForestIndex.find(es, forest).status().state
    es.delete(index=forest, id=STATE_ID, refresh=True)
    after = ForestIndex.find(es, forest).status().state
    made = [node.made_ms for node in nodes(es, forest).values()]
    assert after.time_ms == max(made) <= before.time_ms
    assert after.origin_ms == min(made) == before.origin_ms
    Maintenance(es, forest=forest).repair([index])
    assert ForestIndex.find(es, forest).status().state.seq == before.seq


def test_verify_distinguishes_equal_ids_in_two_indices(es: Elasticsearch, index_name: Names) -> None:
    one, other, forest = index_name("articles"), index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        for index, text in zip((one, other), stories(2), strict=True):
            dedup.setup(index)
            feed(es, dedup, index, [{"_id": "1", "text": text[0]}])
    maintenance = Maintenance(es, forest=forest)
    assert list(maintenance.verify([one, other])) == []
    bands = es.get(index=other, id="1")["_source"]["dedup"]["bands"]
    es.update(index=one, id="1", doc={"dedup": {"bands": bands}}, refresh=True)
    assert {violation.kind for violation in maintenance.verify([one, other])} == {ViolationKind.WRONG_BANDS}


@pytest.mark.parametrize("how", [{}, *SHARDED.values()], ids=["a log", *SHARDED])
def test_verify_works_while_articles_arrive_and_expire(
    es: Elasticsearch, index_name: Names, how: dict[str, Any]
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, retention=timedelta(days=1), batch_size=20, **how) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:100], backfill=True)
        rest = iter(ARTICLES[100:])

        def feed_on(_: int) -> None:
            if some := list(itertools.islice(rest, 40)):
                feed(es, dedup, index, some, backfill=True)
                dedup.expire()

        with pytest.MonkeyPatch.context() as patch:
            # Read nodes and articles in small batches.
            find = functools.partial(ForestIndex.find, limits=Limits(max_hits=20))
            patch.setattr(ForestIndex, "find", find)
            patch.setattr("esdedup.elastic.limits.MAX_HITS", 20)
            patch.setattr("esdedup.maintenance.forest_audit.AUDIT_BATCH", 10)
            maintenance = Maintenance(es, forest=forest)
            assert list(maintenance.verify([index], on_progress=feed_on)) == []
        assert not list(rest)


def test_a_forest_deleted_during_feeding_is_not_recreated(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    others = renewing_threads()
    with Dedup(es, forest=forest, lease_ttl_s=1) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:50])
        (renewing,) = renewing_threads() - others
        es.indices.delete(index=forest)
        renewing.join(30)
        assert not renewing.is_alive()
        with pytest.raises(ForestMissing, match="was deleted while this process used it: rebuild it"):
            feed(es, dedup, index, ARTICLES[50:60])
        assert not es.indices.exists(index=forest)
        Maintenance(es, forest=forest).rebuild([index])
        feed(es, dedup, index, ARTICLES[50:60])
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_a_forest_in_use_is_not_replaced(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    with Dedup(es, forest=forest) as dedup:
        list(dedup.enrich([{"_index": index, **ARTICLES[0]}]))
        for change in (
            lambda: Maintenance(es, forest=forest).rebuild([index]),
            lambda: Maintenance(es, forest=forest).expire(),
        ):
            with pytest.raises(ForestBusy, match=r"process \d+ on .* has owned it since"):
                change()
        # Operations that only read are allowed, and so is a repair without violations.
        assert list(Maintenance(es, forest=forest).verify([index])) == []
        assert not Maintenance(es, forest=forest).repair([index])
        assert Maintenance(es, forest=forest).expire(dry_run=True) == expiry.Expired()


def test_articles_of_another_forest_are_refused(es: Elasticsearch, index_name: Names) -> None:
    own, forest = index_name("articles"), index_name("forest")
    # With `lookup="memory"`, the forest is a log that also holds the state, so the test could not change it.
    with Dedup(es, forest=forest, lookup="search") as dedup:
        dedup.setup(own)
        feed(es, dedup, own, ARTICLES[:60])
    others, other_forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=other_forest) as dedup:
        dedup.setup(others)
        texts = [each["text"][::-1] for each in ARTICLES[:40]]
        feed(es, dedup, others, [{"_id": str(at), "text": text} for at, text in enumerate(texts)])
    maintenance = Maintenance(es, forest=forest)
    before = nodes(es, forest)
    for index in (own, others):
        # Remove the forest's name, as if a version that did not store it had fed the articles.
        es.indices.put_mapping(index=index, meta={})
    for use in (
        lambda: list(maintenance.verify([own, others])),
        lambda: maintenance.repair([own, others]),
        lambda: maintenance.rebuild([own, others]),
        lambda: maintenance.stats([own, others]),
        lambda: maintenance.boilerplate([own, others]),
    ):
        with pytest.raises(
            ForestMismatch, match=f"the articles in '{others}' seem to belong to a forest other"
        ):
            use()
    assert nodes(es, forest) == before
    found = maintenance.explain(others, "1", "2")
    assert "seem to belong to a forest other than" in (found.forest_missing or "")
    assert found.forest_missing == found.learned_missing
    # A damaged forest, with no nodes or only older nodes, is not refused.
    newer = [node.id for node in before.values() if node.seq > 5]
    remove(es, forest, *newer)
    es.index(index=forest, id=STATE_ID, document={"state": {"seq": 5}}, refresh=True)
    assert maintenance.repair([own])[ViolationKind.NODE_GONE]
    remove(es, forest, *before)
    assert maintenance.repair([own])[ViolationKind.NODE_GONE]
    assert list(maintenance.verify([own])) == []


@in_both_lookups
def test_stats_count_nodes_trees_and_leaves(es: Elasticsearch, fed: tuple[str, str], lookup: Lookup) -> None:
    _, forest = fed
    found = nodes(es, forest)
    stats = Maintenance(es, forest=forest).stats()
    trees = Counter(node.root for node in found.values())
    assert (stats.nodes, stats.trees, stats.seq) == (len(found), len(trees), len(ARTICLES))
    assert sum(stats.trees_by_leaves.values()) == len(trees)
    assert stats.trees_by_leaves["0"] == sum(size == 1 for size in trees.values())
    assert [each.leaves for each in stats.largest] == sorted(
        (size - 1 for size in trees.values() if size > 1), reverse=True
    )[:10]
    assert sum(day.made for day in stats.days) == len(found)
    assert stats.expired == 0
    assert stats.growth_7_days is None


def test_maintenance_without_a_forest_suggests_rebuilding(es: Elasticsearch, index_name: Names) -> None:
    for call in (
        Maintenance.stats,
        Maintenance.expire,
        lambda each: list(each.verify()),
        lambda each: each.repair(),
    ):
        with pytest.raises(ForestError, match=r"there is no forest .* rebuild it from them"):
            call(Maintenance(es, forest=index_name("none")))
    empty = index_name("articles")
    with Dedup(es, fields=Fields()) as dedup:
        dedup.setup(empty)
    with pytest.raises(IndexNotReady, match="none of the articles was indexed through esdedup"):
        Maintenance(es, forest=index_name("forest")).rebuild([empty])


@pytest.mark.parametrize("profile", [CLASSIC, VERIFIED], ids=lambda profile: profile.name)
def test_live_nodes_are_restored_from_articles_older_than_retention(
    es: Elasticsearch, index_name: Names, profile: Profile
) -> None:
    index, forest, retention = index_name("articles"), index_name("forest"), timedelta(days=3)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    times = (began + timedelta(hours=at) for at in range(200))
    articles = [
        {"_id": each["id"], **each, "at": time.isoformat()}
        for each, time in zip(stream.articles(200, profile), times, strict=True)
    ]
    with Dedup(es, forest=forest, profile=profile, fields=Fields(time="at"), retention=retention) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles, backfill=True)

    def living() -> list[StoredNode]:
        living_since_ms = int((began + timedelta(hours=199) - retention).timestamp() * 1000)
        return [each for each in without_hashes(nodes(es, forest)) if each.seen_ms > living_since_ms]

    before, maintenance = living(), Maintenance(es, forest=forest)
    old = [each for each in before if each.seen_ms - each.made_ms > retention / timedelta(milliseconds=1)]
    assert any(each.is_root for each in old)
    maintenance.rebuild([index], articles_only=True)
    assert (living(), list(maintenance.verify([index]))) == (before, [])
    remove(es, forest, *(each.id for each in old if each.is_root))
    maintenance.repair([index])
    assert [each.signature for each in living()] == [each.signature for each in before]


def test_a_root_whose_article_was_deleted_is_recreated(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    leaf = a_leaf(nodes(es, forest))
    for hit in es.search(index=index, query={"term": {"dedup.fingerprint": leaf.root}}, size=100)["hits"][
        "hits"
    ]:
        es.delete(index=index, id=hit["_id"], refresh=True)
    es.indices.delete(index=forest)
    maintenance = Maintenance(es, forest=forest)
    maintenance.rebuild([index])
    found = nodes(es, forest)
    assert found[leaf.root].is_root
    assert found[leaf.id].root == leaf.root
    assert list(maintenance.verify([index])) == []


def test_an_interrupted_rebuild_can_be_repeated(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = fed
    before = nodes(es, forest)

    def fail(self: ForestWriter, found: list[bytes], **how: Any) -> None:
        if found:
            write_whole(self, found[: len(found) // 2])
            raise ForestError("interrupted on purpose", forest=forest)
        write_whole(self, found, **how)

    write_whole = ForestWriter.write
    with monkeypatch.context() as patch:
        patch.setattr(ForestWriter, "write", fail)
        with pytest.raises(ForestError, match="interrupted on purpose"):
            Maintenance(es, forest=forest).rebuild([index])
    made = ForestIndex(es, name=f"{forest}{REBUILT_SUFFIX}", meta=Meta.of(VERIFIED))
    made.refresh()
    assert 0 < len(list(all_nodes(made))) < len(before)
    # The forest stays in use, and the next rebuild begins again.
    with Dedup(es, forest=forest) as dedup:
        list(dedup.enrich([{"_index": index, **ARTICLES[0]}]))
    again = nodes(es, forest)
    # Only the hour when the article was last seen may have changed.
    unseen, unseen_again = (
        [each._replace(seen_ms=0) for each in without_hashes(some)] for some in (before, again)
    )
    assert unseen_again == unseen
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    epochs = Fence(es, forest=forest).epochs()
    Maintenance(es, forest=forest).rebuild([index])
    assert without_hashes(nodes(es, forest)) == without_hashes(again)
    assert not es.indices.exists(index=made.name)
    # No pending write of an earlier owner is admitted.
    assert min(Fence(es, forest=forest).epochs()) > max(epochs)


class Noticing(logging.Handler):
    """Sets an event once a rebuild has caught up, and waits for the owner to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.is_waiting = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "for its owner to stop" in record.getMessage():
            self.is_waiting.set()


@pytest.mark.parametrize(
    "how", [{"lookup": "memory"}, {"lookup": "search", "forest_shards": 3}], ids=["in memory", "3 shards"]
)
def test_a_forest_is_rebuilt_while_articles_arrive(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """Readers see one root of each article throughout."""
    index, forest = index_name("articles"), index_name("forest")
    articles = [{"_id": each["id"], **each} for each in stream.articles(400, VERIFIED)]
    monkeypatch.setattr("esdedup.maintenance.rebuild._FEW", 10)
    monkeypatch.setattr("esdedup.maintenance.rebuild._LATE", 20)
    monkeypatch.setattr("esdedup.elastic.limits.MAX_HITS", 30)
    noticing, read = Noticing(), list[dict[str, str]]()

    def feed_on() -> None:
        with Dedup(es, forest=forest) as dedup:
            begun.set()
            for at in range(100, 300, 20):
                feed(es, dedup, index, articles[at : at + 20])
                read.append(roots(es, index))
            assert noticing.is_waiting.wait(60)
            feed(es, dedup, index, articles[300:350])

    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles[:100])
    begun = threading.Event()
    logging.getLogger("esdedup").addHandler(noticing)
    try:
        with ThreadPoolExecutor() as threads:
            feeding = threads.submit(feed_on)
            assert begun.wait(60)
            Maintenance(es, forest=forest, wait_s=60).rebuild([index], **how)
            feeding.result()
    finally:
        logging.getLogger("esdedup").removeHandler(noticing)
    meta, maintenance = ForestIndex.find(es, forest).meta, Maintenance(es, forest=forest)
    assert (meta.lookup, meta.shards) == (how["lookup"], how.get("forest_shards", 1))
    assert list(maintenance.verify([index])) == []
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, articles[350:])
    assert stream.indexed(es, index) == stream.expected(articles, VERIFIED)[0]
    found = roots(es, index)
    assert all(found[name] == root for each in read for name, root in each.items())
    assert list(maintenance.verify([index])) == []


FOOTER = "subscribe to the harbour letter and read about ferries and weather every morning"
LIMIT = 4


def words(draw: Random, count: int) -> str:
    return " ".join("".join(draw.choices("abcdefghij", k=6)) for _ in range(count))


@pytest.fixture
def feed_texts(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Profile, list[str]], tuple[str, str]]:
    """Feeds texts to a new index and forest, with a low limit on the plausible number of leaves of a root."""
    monkeypatch.setattr("esdedup.maintenance.stats.MOST_PLAUSIBLE_LEAVES", LIMIT)

    def feed(profile: Profile, texts: list[str]) -> tuple[str, str]:
        index, forest = index_name("articles"), index_name("forest")
        with Dedup(es, forest=forest, profile=profile, most_plausible_leaves=LIMIT) as dedup:
            dedup.setup(index)
            actions = [{"_index": index, "_id": str(at), "text": text} for at, text in enumerate(texts)]
            helpers.bulk(es, dedup.enrich(actions), refresh=True)
        return index, forest

    return feed


def template(count: int) -> list[str]:
    draw = Random(1)
    body = f"{words(draw, 30)}. {words(draw, 40)}. {words(draw, 25)}"
    return [f"{body}. {words(draw, 6)}." for _ in range(count)]


def test_an_implausibly_large_cluster_is_reported(
    es: Elasticsearch, feed_texts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    texts = template(2 * LIMIT + 3)
    with caplog.at_level(logging.WARNING, logger="esdedup"):
        index, forest = feed_texts(VERIFIED, texts)
    found = Maintenance(es, forest=forest).stats()
    live = 2 * LIMIT + 2
    assert found.implausible_trees == 1
    (cluster,) = found.implausible
    assert (cluster.root, cluster.leaves) == (found.largest[0].root, live)
    assert cluster.shared is not None
    assert (cluster.shared.nodes, cluster.shared.examined, cluster.shared.trees) == (live, live, 1)
    assert cluster.shared.sentence is None
    for record, passed in zip(caplog.records, (LIMIT, 2 * LIMIT), strict=True):
        assert cluster.root in record.getMessage()
        assert f"more than {passed} distinct texts" in record.getMessage()
        assert not any(word in record.getMessage() for word in texts[0].split())
    shared = Maintenance(es, forest=forest).stats([index]).implausible[0].shared
    assert shared is not None
    assert shared.kind == "sentence"
    assert shared.sentence is not None
    assert shared.sentence in texts[0]
    # The shared sentence cannot be shown from an index without the forest's articles.
    empty, _ = feed_texts(VERIFIED, [])
    assert Maintenance(es, forest=forest).stats([empty]).implausible[0].shared == cluster.shared
    with pytest.raises(IndexNotReady):
        Maintenance(es, forest=forest).stats([forest])


def test_a_plausible_cluster_is_not_reported(
    es: Elasticsearch, feed_texts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _, forest = feed_texts(VERIFIED, template(LIMIT + 1))
    found = Maintenance(es, forest=forest).stats()
    assert (found.largest[0].leaves, found.implausible, found.implausible_trees) == (LIMIT, (), 0)
    assert (found.shared_by_trees, caplog.records) == ((), [])


def test_a_footer_shared_by_unrelated_articles_is_reported(es: Elasticsearch, feed_texts: Any) -> None:
    draw = Random(2)
    # Each text has its own sentence and the footer.
    texts = [f"{words(draw, 40)}. {FOOTER}." for _ in range(12)]
    index, forest = feed_texts(VERIFIED, texts)
    shared, *others = Maintenance(es, forest=forest).stats([index]).shared_by_trees
    # The footer is long enough to have its own minhashes.
    assert {each.kind for each in others} <= {"minhash"}
    assert (shared.kind, shared.sentence) == ("sentence", FOOTER)
    assert (shared.nodes, shared.examined, shared.trees) == (12, 12, 12)
    unsaid, *_ = Maintenance(es, forest=forest).stats().shared_by_trees
    assert unsaid == shared.model_copy(update={"kind": None, "sentence": None})
    own, other = feed_texts(VERIFIED, texts[:9])
    assert Maintenance(es, forest=other).stats([own]).shared_by_trees == ()


def test_a_rebuild_keeps_nodes_of_deleted_articles(es: Elasticsearch, index_name: Names) -> None:
    index, small, forest = index_name("news"), index_name("small"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        for name, articles in ((index, ARTICLES[:40]), (small, ARTICLES[40:42])):
            dedup.setup(name)
            feed(es, dedup, name, articles)
    before, remembered = nodes(es, forest), hashes(es, forest)
    deletions = [{"_op_type": "delete", "_index": index, "_id": each["_id"]} for each in ARTICLES[:40]]
    helpers.bulk(es, deletions, refresh=True)
    maintenance = Maintenance(es)
    assert maintenance.rebuild([small], lookup="search") == len(before)
    assert (nodes(es, forest), hashes(es, forest)) == (before, remembered)
    assert list(maintenance.verify([small])) == []
    assert maintenance.rebuild([small], articles_only=True) < len(before)
    assert list(maintenance.verify([small])) == []


def test_stats_and_expire_agree_on_expired_nodes(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    for days, articles in ((60, ARTICLES), (2, ARTICLES[-1:])):
        retention = timedelta(days=days)
        with Dedup(
            es, forest=forest, retention=retention, change_retention=True, expire_every_s=None
        ) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, articles, backfill=True)
    maintenance = Maintenance(es, forest=forest)
    expired = maintenance.expire(dry_run=True)
    # Nothing can be deleted, because all expired nodes share a document with live nodes.
    assert (maintenance.stats().expired, expired.leaves + expired.roots) == (0, 0)


def test_retention_is_shortened_only_on_request(
    es: Elasticsearch, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    days, shorter = timedelta(days=60), timedelta(days=2)
    with Dedup(es, forest=forest, retention=days) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES, backfill=True)
    maintenance = Maintenance(es, forest=forest)
    before = nodes(es, forest)
    uses: list[Callable[[], int]] = [
        lambda: Dedup(es, forest=forest, retention=shorter).learn(["A page."]),
        lambda: maintenance.rebuild([index], retention=shorter),
    ]
    for use in uses:
        with pytest.raises(RetentionShorter, match=r"live 60 days; with 2, [1-9]\d* would expire now"):
            use()
    assert (maintenance.stats().retention_days, nodes(es, forest)) == (60, before)
    # A lost forest's retention is stored in the index; a longer retention is logged and revives no nodes.
    for given in (None, timedelta(days=90)):
        assert "another retention" not in caplog.text
        es.indices.delete(index=forest)
        maintenance.rebuild([index], retention=given)
        assert maintenance.stats().retention_days == (given or days).days
        assert list(maintenance.verify([index])) == []
    assert f"the retention of {forest!r} changes: nodes lived 60 days" in caplog.text
    with Dedup(es, forest=forest, retention=shorter, change_retention=True) as dedup:
        feed(es, dedup, index, ARTICLES[-1:], backfill=True)
    assert maintenance.stats().retention_days == 2

"""Wrong clocks do not move a forest's time, and expired nodes are deleted and never revived."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.owner import Owner, OwnerSettings

from esdedup import ClockMismatch, Dedup, ForestAhead, Maintenance
from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import expire
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.status import STATE_ID
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import Aging
from esdedup.forest.model import State
from esdedup.maintenance import ViolationKind
from esdedup.times import DAY_MS, iso
from tests.support.between import Answer, Send, Sent, answer, client_with, recording
from tests.support.forests import ARTICLES, classic_node, feed, nodes, roots, stories, write
from tests.support.names import Names, new_names

YEARS_MS = 3 * 365 * DAY_MS
FIRST, SECOND, LAST = ARTICLES[:120], ARTICLES[120:125], ARTICLES[125:240]
SetClock = Callable[[int], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Moves the clock of this process forward, or back."""

    def set_clock(forward_ms: int) -> None:
        clock = SimpleNamespace(time=lambda: time.time() + forward_ms / 1000, monotonic=time.monotonic)
        monkeypatch.setattr("esdedup.elastic.forest.clock.time", clock)

    return set_clock


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Makes esdedup accept any clock, as if the server's clock were also wrong."""

    def trusting(is_trusting: bool) -> None:
        monkeypatch.undo()
        if is_trusting:
            monkeypatch.setattr(Clock, "check", lambda *_: int(time.time() * 1000) + YEARS_MS)

    return trusting


def state(es: Elasticsearch, forest: str) -> State:
    es.indices.refresh(index=forest)
    return ForestIndex.find(es, forest).status().state


@pytest.mark.parametrize("wrong_ms", [YEARS_MS, -YEARS_MS])
def test_a_clock_that_disagrees_with_the_server_is_refused(
    es: Elasticsearch, index_name: Names, set_clock: SetClock, wrong_ms: int
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)

        def assert_refused(articles: list[dict[str, Any]]) -> None:
            set_clock(wrong_ms)
            for backfill in (False, True):
                with pytest.raises(ClockMismatch, match="Set the clock that is wrong") as refused:
                    feed(es, dedup, index, articles, backfill=backfill)
                assert abs(refused.value.here_ms - refused.value.server_ms - wrong_ms) < DAY_MS / 24
            set_clock(0)

        assert_refused(FIRST)
        for backfill in (False, True):
            feed(es, dedup, index, FIRST[:10], backfill=backfill)
        before = state(es, forest)
        assert_refused(FIRST[10:])
        assert state(es, forest) == before
        for backfill in (False, True):
            feed(es, dedup, index, FIRST[10:], backfill=backfill)


def test_an_idle_owner_notices_a_wrong_clock(
    es: Elasticsearch, index_name: Names, set_clock: SetClock
) -> None:
    with Owner(es, OwnerSettings(), forest=index_name("forest"), profile=CLASSIC) as owner:
        owner.open()
        set_clock(YEARS_MS)
        with pytest.raises(ClockMismatch):
            owner.open()
        set_clock(0)
        owner.open()


def test_clocks_are_compared_only_after_a_jump(
    elasticsearch_url: str, index_name: Names, set_clock: SetClock
) -> None:
    with (
        recording(elasticsearch_url) as (client, sent),
        Dedup(client, forest=index_name("forest")) as dedup,
    ):
        for forward_ms, comparisons in ((0, 1), (30_000, 1), (DAY_MS // 2, 2), (DAY_MS // 2, 2), (0, 3)):
            set_clock(forward_ms)
            list(dedup.enrich(ARTICLES[:1]))
            assert sum(b"date_range" in each.body for each in sent) == comparisons


@pytest.mark.parametrize("ahead_ms", [0, DAY_MS // 2])
def test_a_slightly_future_date_does_not_block_other_processes(
    es: Elasticsearch, index_name: Names, set_clock: SetClock, ahead_ms: int
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    set_clock(ahead_ms)
    dated = {**ARTICLES[0], "published_at": iso(int(time.time() * 1000) + ahead_ms + DAY_MS - 5_000)}
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [dated], backfill=True)
    time_ms = state(es, forest).time_ms
    set_clock(-60_000)
    assert time_ms > time.time() * 1000 + DAY_MS - 60_000
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, LAST)
        dedup.expire()
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_feeding_and_expiry_refuse_a_forest_in_the_future(
    es: Elasticsearch,
    fed: tuple[str, str],
    trusting: Callable[[bool], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    index, forest = fed
    trusting(True)
    with Dedup(es, forest=forest, batch_size=3) as dedup:
        feed(es, dedup, index, SECOND, backfill=True)
        assert not caplog.messages
        feed(es, dedup, index, SECOND)
    (warning,) = caplog.messages
    assert warning.startswith(f"{SECOND[0]['_id']}: moved the forest's time from ")
    assert "all earlier clusters have expired. If its date is wrong" in warning
    trusting(False)
    ahead = state(es, forest)
    kept = nodes(es, forest).keys()
    # Opening the forest with a longer retention would delete expired nodes.
    with Dedup(es, forest=forest, retention=timedelta(days=40)) as dedup:
        for use in (
            lambda: feed(es, dedup, index, LAST),
            dedup.expire,
            Maintenance(es, forest=forest).expire,
        ):
            with pytest.raises(
                ForestAhead, match="A repair with all of the forest's articles corrects this time"
            ) as raised:
                use()
            assert raised.value.time_ms == ahead.time_ms
    assert nodes(es, forest).keys() == kept


# Reprints of earlier articles.
AGAIN = [{**each, "_id": f"again-{each['_id']}"} for each in FIRST[:20]]


@pytest.fixture(scope="module")
def undisturbed(es: Elasticsearch) -> Iterator[dict[str, str]]:
    """The roots that the articles get if the clock is right."""
    with new_names(es) as name:
        index = name("articles")
        with Dedup(es, forest=name("forest")) as dedup:
            dedup.setup(index)
            for articles in (FIRST, AGAIN, SECOND, LAST):
                feed(es, dedup, index, articles)
        yield roots(es, index)


@pytest.mark.parametrize("is_expired", [False, True])
def test_a_repair_sets_the_forests_time_back(
    es: Elasticsearch,
    index_name: Names,
    trusting: Callable[[bool], None],
    undisturbed: dict[str, str],
    is_expired: bool,
) -> None:
    """Articles, including reprints, arrived while the clock was three years ahead."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, FIRST)
    before = state(es, forest)
    trusting(True)
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [*AGAIN, *SECOND])
    if is_expired:
        with Dedup(es, forest=forest) as dedup:
            assert dedup.expire().roots
    trusting(False)
    maintenance, again = Maintenance(es, forest=forest), roots(es, index)
    ahead = [each for each in maintenance.verify([index]) if each.kind is ViolationKind.TIME_AHEAD]
    assert {each.subject for each in ahead} >= {forest, *(each["_id"] for each in [*AGAIN, *SECOND])}
    assert maintenance.repair([index])[ViolationKind.TIME_AHEAD] == len(ahead)
    assert list(maintenance.verify([index])) == []
    # The state is the same as if the articles fed with a wrong clock had no time.
    assert state(es, forest) == before._replace(seq=before.seq + len(AGAIN) + len(SECOND))
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, LAST)
    # The stories are the same as with a right clock, but roots made with the wrong clock have other ids.
    named = {(root, undisturbed[article]) for article, root in roots(es, index).items()}
    assert len(named) == len(dict(named)) == len(set(undisturbed.values()))
    assert {root for root, other in named if root != other} <= {again[each["_id"]] for each in SECOND}


def test_a_rebuild_does_not_keep_wrong_times(
    es: Elasticsearch, index_name: Names, trusting: Callable[[bool], None]
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, FIRST)
    trusting(True)
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [{**each, "published_at": None} for each in SECOND])
    trusting(False)
    now_ms = int(time.time() * 1000)
    before, first = roots(es, index), {each["_id"] for each in FIRST}
    maintenance = Maintenance(es, forest=forest)
    maintenance.rebuild([index])
    assert state(es, forest).time_ms <= now_ms, iso(state(es, forest).time_ms)
    # A text that arrived again while the clock was wrong got a second root, and joins the first one again.
    changed = {article for article, root in roots(es, index).items() if root != before[article]}
    assert changed
    assert not changed & first
    assert list(maintenance.verify([index])) == []
    found: list[Any] = es.search(index=index, size=500, source_includes=["dedup.*"])["hits"]["hits"]
    for hit in found:
        assert hit["_source"]["dedup"]["published"] <= now_ms


@pytest.fixture
def ageing(es: Elasticsearch, index_name: Names) -> tuple[ForestIndex, Aging]:
    """A forest of two expired trees and a live one, each with a root and a leaf."""
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


@pytest.mark.parametrize("expire_every_s", [None, 1e-6])
def test_a_feeding_process_deletes_expired_nodes(
    es: Elasticsearch, ageing: tuple[ForestIndex, Aging], expire_every_s: float | None
) -> None:
    index, _ = ageing
    before = nodes(es, index.name).keys()
    with Dedup(es, forest=index.name, profile=CLASSIC, batch_size=1, expire_every_s=expire_every_s) as dedup:
        # Some expired nodes are deleted after each batch, leaves before roots.
        assert len(list(dedup.enrich(ARTICLES[:6]))) == 6
    after = nodes(es, index.name).keys()
    assert before & after == (set() if expire_every_s else before)
    assert len(after - before) > 0


def test_a_failed_deletion_does_not_fail_a_batch(
    elasticsearch_url: str, ageing: tuple[ForestIndex, Aging], caplog: pytest.LogCaptureFixture
) -> None:
    def between(request: Sent, send: Send) -> Answer:
        if request.body.startswith(b'{"delete"'):
            return answer(400, {"error": {"type": "x", "reason": "the disk is full"}})
        return send()

    with (
        client_with(elasticsearch_url, between) as client,
        Dedup(client, forest=ageing[0].name, profile=CLASSIC, batch_size=2, expire_every_s=1e-6) as dedup,
    ):
        assert len(list(dedup.enrich(ARTICLES[:4]))) == 4
    name = ageing[0].name
    text = f"expired nodes could not be deleted: cannot remove nodes of the forest {name!r}: the disk is full"
    assert [each for each in caplog.messages if "expired nodes" in each] == [f"{text} (status 400)"] * 2


def test_a_node_needed_again_during_expiry_stays(
    es: Elasticsearch, elasticsearch_url: str, ageing: tuple[ForestIndex, Aging]
) -> None:
    index, aging = ageing
    reborn = classic_node(f"a{1:015x}", f"a{1:015x}", seq=7, ms=1_000 * DAY_MS)

    def between(request: Sent, send: Send) -> Answer:
        if b'{"delete"' in request.body and reborn.id.encode() in request.body:
            write(es, index.name, reborn)
        return send()

    with (
        client_with(elasticsearch_url, between) as client,
        ForestWriter(ForestIndex.find(client, index.name)) as owned,
    ):
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=2, kept=1)
    assert nodes(es, index.name)[reborn.id] == reborn


def test_no_root_is_deleted_before_its_leaves(
    es: Elasticsearch, elasticsearch_url: str, ageing: tuple[ForestIndex, Aging]
) -> None:
    index, aging = ageing
    stays = f"b{1:015x}"

    def between(request: Sent, send: Send) -> Answer:
        """Write the leaf `stays` after expiry has selected it for deletion."""
        if b'{"delete"' in request.body and stays.encode() in request.body:
            write(es, index.name, nodes(es, index.name)[stays])
        return send()

    with (
        client_with(elasticsearch_url, between) as client,
        ForestWriter(ForestIndex.find(client, index.name)) as owned,
    ):
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=1, kept=2)
    assert Counter(node[0] for node in nodes(es, index.name)) == {"b": 2, "c": 2}
    with ForestWriter(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=1)


def test_a_longer_retention_does_not_revive_expired_nodes(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    one, near, other = stories(1)[0]

    def article(number: int, text: str, day: int) -> dict[str, Any]:
        return {"_id": str(number), "text": text, "published_at": f"2026-01-{day:02}"}

    with Dedup(es, forest=forest, profile=CLASSIC, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        # The first text and its leaf expire; when the text arrives again, it becomes a leaf of another root.
        old = [article(0, one, 1), article(1, near, 1), article(2, other, 5), article(3, one, 5)]
        feed(es, dedup, index, old, backfill=True)
    with Dedup(es, forest=forest, profile=CLASSIC, retention=timedelta(days=30)) as dedup:
        feed(es, dedup, index, [article(4, near, 5)], backfill=True)
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.stats().retention_days == 30
    assert list(maintenance.verify([index])) == []
    found = roots(es, index)
    assert found["4"] == found["3"] == found["2"] != found["1"]
    # If no retention is given, the forest keeps its stored retention.
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        feed(es, dedup, index, [article(5, near, 6)], backfill=True)
    assert maintenance.stats().retention_days == 30
    assert maintenance.rebuild([index])
    assert maintenance.stats().retention_days == 30

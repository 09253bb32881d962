"""A standby follows the writes of the forest's owner, and takes over without reloading the forest."""

import logging
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from esdedup import CLASSIC, Dedup
from esdedup.elastic.forest import following as module
from esdedup.elastic.forest import log as log_module
from esdedup.elastic.forest.following import Follower
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.loading import load_log
from esdedup.elastic.forest.store import ElasticStore
from esdedup.maintenance import Maintenance
from tests.support.arrivals import (
    AGING,
    NOW_MS,
    Arrival,
    arrivals,
    as_batch,
    assert_follows_model,
    batch_sizes,
    batches,
    ordered_arrivals,
)
from tests.support.assign import assign
from tests.support.exploring import examples
from tests.support.forests import feed
from tests.support.learned import Pace, contents, learned
from tests.support.model import Model
from tests.support.names import Names
from tests.support.pages import pages

PLENTY = 2**30
TOOK_OVER = re.compile(r"took over the ([\d,]+) nodes .* read ([\d,]+) documents .*; ([\d,]+) had been")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each call of `follow` check the forest and read few documents."""
    monkeypatch.setattr(module, "_POLL_EVERY_S", 0.0)
    monkeypatch.setattr(log_module, "_READ_AT_ONCE", 3)


@pytest.fixture
def taken(caplog: pytest.LogCaptureFixture) -> Callable[[], tuple[int, ...] | None]:
    """Return a function that parses the log.

    The function returns the numbers of nodes taken over, of documents read at the takeover, and of documents
    read before; or None if the forest was reloaded.
    """
    caplog.set_level(logging.INFO, "esdedup")

    def last() -> tuple[int, ...] | None:
        found = TOOK_OVER.findall(caplog.text)
        caplog.clear()
        return tuple(int(each.replace(",", "")) for each in found[-1]) if found else None

    return last


def follow(following: Follower) -> None:
    while following.follow():
        pass


def following(es: Elasticsearch, forest: str, *, memory_bytes: int = PLENTY) -> Follower:
    return Follower(es, forest=forest, memory_bytes=memory_bytes)


def opened(es: Elasticsearch, forest: str, followed: Follower | None = None, **how: Any) -> ElasticStore:
    return ElasticStore(
        es, **{"forest": forest, "profile": CLASSIC, "aging": AGING, "followed": followed, **how}
    )


def scattered(numbers: range, time: int = 0) -> list[Arrival]:
    return [Arrival(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}", time) for number in numbers]


def arrive(store: ElasticStore, numbers: range, *, time: int = 0) -> list[str]:
    found = assign(store, as_batch(scattered(numbers, time)), now_ms=NOW_MS)
    return [each.kind.value for each in found]


@examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(arrivals, ordered_arrivals, ordered_arrivals),
    batch_sizes,
    *[st.sets(st.integers(0, 20))] * 3,
)
def test_a_standby_that_takes_over_follows_the_model(
    es: Elasticsearch,
    index_name: Names,
    all_arrivals: list[Arrival],
    sizes: list[int],
    looks: set[int],
    restarts: set[int],
    expiries: set[int],
) -> None:
    forest, model = index_name("forest"), Model(AGING)
    store, standby = opened(es, forest), following(es, forest)
    for number, batch in enumerate(batches(all_arrivals, sizes)):
        assert_follows_model(store, model, batch)
        if number in expiries:
            list(store.expiring())
        if number in looks:
            follow(standby)
        if number in restarts:
            store.close()
            store, standby = opened(es, forest, standby), following(es, forest)
    store.close()
    assert list(Maintenance(es, forest=forest).verify()) == []


def test_a_takeover_reads_only_unread_documents(
    es: Elasticsearch, index_name: Names, taken: Callable[[], tuple[int, ...] | None]
) -> None:
    forest, day = index_name("forest"), AGING.retention_ms
    standby = following(es, forest)
    with opened(es, forest) as store:
        for start in range(0, 10_000, 1_000):
            arrive(store, range(start, start + 1_000))
        follow(standby)
        arrive(store, range(10), time=day // 2)
        arrive(store, range(10_000, 11_000), time=day + day // 4)
        # Follow again before expiry deletes the document that the standby read last.
        follow(standby)
        *_, expired = store.expiring()
        assert expired.kept == 10
        follow(standby)
        arrive(store, range(11_000, 11_010), time=day + day // 4)
    with opened(es, forest, standby) as store:
        nodes, read, followed = taken() or ()
        assert (nodes, read) == (1_020, 1)
        assert followed > 10
        assert set(arrive(store, range(10), time=day + day // 4)) == {"known"}
        assert set(arrive(store, range(10, 100), time=day + day // 4)) == {"new_root"}
    # The copy of a standby is used only once.
    with opened(es, forest, standby) as store:
        assert taken() is None
        assert set(arrive(store, range(10_000, 11_010), time=day + day // 4)) == {"known"}


def deleted(es: Elasticsearch, forest: str) -> None:
    es.delete(index=forest, id="log-2", refresh=True)


def recreated(es: Elasticsearch, forest: str) -> None:
    es.indices.delete(index=forest)
    with opened(es, forest) as store:
        for start in range(0, 5_000, 1_000):
            # Write as many documents as before.
            arrive(store, range(start, start + 500))


def reopened_with_another_retention(es: Elasticsearch, forest: str) -> None:
    with opened(es, forest, aging=type(AGING)(retention_ms=50, granularity_ms=10)):
        pass


def as_loaded(es: Elasticsearch, forest: str) -> int:
    index = ForestIndex.find(es, forest)
    status = index.status()
    nodes = load_log(
        index,
        aging=status.aging,
        live_since_ms=status.live_since_ms(status.aging),
        memory_bytes=PLENTY,
        on_read=lambda: None,
    )
    return len(nodes)


CHANGES = {
    "deleted": deleted,
    "recreated": recreated,
    "another retention": reopened_with_another_retention,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_log_is_reloaded_unless_it_only_grew(
    es: Elasticsearch,
    index_name: Names,
    taken: Callable[[], tuple[int, ...] | None],
    change: Callable[[Elasticsearch, str], None],
) -> None:
    forest = index_name("forest")
    standby = following(es, forest)
    with opened(es, forest) as store:
        for start in range(0, 5_000, 1_000):
            arrive(store, range(start, start + 500))
        follow(standby)
    change(es, forest)
    with opened(es, forest, standby, aging=None) as store:
        assert taken() is None
        assert store.contents().nodes == as_loaded(es, forest)


def test_a_standby_survives_every_failure(
    es: Elasticsearch,
    index_name: Names,
    taken: Callable[[], tuple[int, ...] | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forest = index_name("forest")
    standby = following(es, forest)
    # There is no forest yet.
    assert standby.follow() is False
    with opened(es, forest) as store:
        for start in range(0, 3_000, 1_000):
            arrive(store, range(start, start + 1_000))
        # The standby pauses, because it has found no forest.
        follow(standby)
        assert standby._copy is None
        assert standby._next_poll_s - time.monotonic() > module._PAUSE_S / 2
        small = following(es, forest, memory_bytes=10_000)
        for times in (1, 2):
            small._next_poll_s = 0.0
            follow(small)
            assert small._copy is None
            assert small._next_poll_s - time.monotonic() > (times - 0.5) * module._PAUSE_S
        standby = following(es, forest)
        follow(standby)

    def fail(*_: object) -> None:
        raise OSError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_read", fail)
        store = opened(es, forest, standby)
    with store:
        assert taken() is None
        assert set(arrive(store, range(3_000))) == {"known"}


def test_a_forest_that_is_searched_is_not_followed(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    standby = following(es, forest)
    with opened(es, forest, lookup="search") as store:
        arrive(store, range(100))
        follow(standby)
        assert standby._copy is None
    with opened(es, forest, standby) as store:
        assert set(arrive(store, range(100))) == {"known"}


def test_learned_boilerplate_is_followed(es: Elasticsearch, index_name: Names) -> None:
    """The next owner continues as if it had read all pages."""
    index, forest = index_name("articles"), index_name("forest")
    articles = [{"_id": page["id"], **page} for page in pages(90)]
    with Pace().kept():
        for at in range(0, 90, 30):
            standby = following(es, forest)
            with Dedup(es, forest=forest, batch_size=7) as dedup:
                if at == 0:
                    dedup.setup(index)
                feed(es, dedup, index, articles[at : at + 10])
                follow(standby)
                feed(es, dedup, index, articles[at + 10 : at + 20])
                follow(standby)
                feed(es, dedup, index, articles[at + 20 : at + 23])
            found, read = standby.learned(ForestIndex.find(es, forest)), learned(es, forest)
            assert contents(found.boilerplate) == read
            with Dedup(es, forest=forest, batch_size=7) as dedup:
                owner = dedup._owner
                owner._following = standby = following(es, forest)  # type: ignore[union-attr]
                follow(standby)
                feed(es, dedup, index, articles[at + 23 : at + 30])
    assert list(Maintenance(es, forest=forest).verify([index])) == []

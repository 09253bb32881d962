"""The lease on a forest, and the fence, an alias that blocks writes by previous owners."""

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import ForestBusy, ForestMissing, ServerUnavailable
from esdedup.elastic.forest.fence import GRACE_S, Fence
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lease import LEASE_ID, KnownClaims, Lease, LeaseTerms
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.fingerprint.profile import CLASSIC
from tests.support.arrivals import AGING
from tests.support.between import Answer, Between, Send, Sent, answer, client_with, no_answer
from tests.support.forests import expire_lease
from tests.support.names import Names

TTL_S = 1.5


@pytest.fixture
def forest(es: Elasticsearch, index_name: Names) -> str:
    """A forest without an owner."""
    name = index_name("forest")
    ElasticStore(es, forest=name, profile=CLASSIC, aging=AGING).close()
    return name


def test_writes_admitted_by_the_old_alias_finish_before_takeover(es: Elasticsearch, forest: str) -> None:
    """A write that waits for a copy of its shard delays the takeover, even for longer than `GRACE_S`."""
    stale = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, terms=LeaseTerms(ttl_s=600))
    # From now on, a write that requires all copies of the shard waits for the missing copy.
    es.indices.put_settings(index=forest, settings={"auto_expand_replicas": False, "number_of_replicas": 1})
    node = {"root": "f" * 16, "leaf": False, "seq": 1, "keys": [], "seen": 0}
    written: list[Any] = []
    taken = threading.Event()

    def write() -> None:
        operations: list[dict[str, Any]] = [{"index": {"_id": "f" * 16}}, node]
        bulk = es.options(request_timeout=60).bulk
        written.append(
            bulk(
                index=stale.writer.lease.alias,
                operations=operations,
                require_alias=True,
                wait_for_active_shards="all",
                timeout="60s",
            )
        )

    def take() -> None:
        Lease(es, forest=forest).acquire()
        taken.set()

    writer = threading.Thread(target=write)
    writer.start()
    fence = Fence(es, forest=forest)
    await_until(lambda: tasks_of(es, forest))
    stale.writer.lease._ended.set()
    expire_lease(es, forest)
    taker = threading.Thread(target=take)
    taker.start()
    await_until(lambda: fence.epochs() == {3})
    assert not taken.wait(3)
    assert not written
    es.indices.put_settings(index=forest, settings={"number_of_replicas": 0})
    writer.join(60)
    assert not written[0]["errors"]
    assert taken.wait(60)
    taker.join(60)
    # Writes through the old alias are refused from now on.
    refused = es.bulk(index=stale.writer.lease.alias, operations=[{"index": {}}, node], require_alias=True)
    assert refused["items"][0]["index"]["status"] == 404


@pytest.mark.parametrize("is_released", [True, False])
def test_an_incomplete_claim_is_released_or_expires(
    es: Elasticsearch,
    elasticsearch_url: str,
    forest: str,
    is_released: bool,
) -> None:
    """The claim fails after writing the lease and before moving the alias. An unreleased claim expires."""
    with (
        client_with(elasticsearch_url, half_a_claim(may_release=is_released)) as client,
        pytest.raises(ServerUnavailable),
    ):
        Lease(client, forest=forest, terms=LeaseTerms(ttl_s=TTL_S)).acquire()
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    assert lease["epoch"] == 2
    assert lease["released"] == is_released
    if not is_released:
        # Another process has to wait until the lease expires.
        others = KnownClaims()
        with pytest.raises(ForestBusy):
            Lease(es, forest=forest, terms=LeaseTerms(known=others)).acquire()
        other = Lease(es, forest=forest, terms=LeaseTerms(wait_s=TTL_S + 10, known=others))
        other.acquire()
        other.release()
        return
    again = Lease(es, forest=forest)
    again.acquire()
    again.release()


def test_a_dead_owner_with_a_fast_clock_is_noticed(
    es: Elasticsearch, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is on another machine, and another process retries until the lease has expired."""
    with monkeypatch.context() as patch:
        patch.setattr("esdedup.elastic.forest.lease._machine", lambda: "another")
        patch.setattr("esdedup.elastic.forest.lease.time.time", lambda: 4e9)
        dead = Lease(es, forest=forest, terms=LeaseTerms(ttl_s=TTL_S))
        dead.acquire()
        dead._ended.set()
    began_s = time.monotonic()
    with pytest.raises(ForestBusy):
        Lease(es, forest=forest).acquire()

    def is_taken() -> bool:
        try:
            taker = Lease(es, forest=forest)
            taker.acquire()
        except ForestBusy:
            return False
        taker.release()
        return True

    await_until(is_taken)
    assert time.monotonic() - began_s > TTL_S


def test_a_process_may_retry_its_failed_claim_immediately(
    es: Elasticsearch, elasticsearch_url: str, forest: str
) -> None:
    with (
        client_with(elasticsearch_url, half_a_claim(may_release=False)) as client,
        pytest.raises(ServerUnavailable),
    ):
        Lease(client, forest=forest, terms=LeaseTerms(ttl_s=600)).acquire()
    again = Lease(es, forest=forest)
    again.acquire()
    again.release()


def test_takeover_is_refused_while_the_old_owner_may_write(
    es: Elasticsearch, elasticsearch_url: str, forest: str
) -> None:
    """An Elasticsearch node lags behind and still has the previous owner's alias."""

    def between(request: Sent, send: Send) -> Answer:
        return answer(200, {"acknowledged": False}) if request.path == "/_aliases" else send()

    with (
        client_with(elasticsearch_url, between) as client,
        pytest.raises(ServerUnavailable, match="may still admit the previous owner"),
    ):
        Lease(client, forest=forest).acquire()
    lease = Lease(es, forest=forest)
    lease.acquire()
    lease.release()


def test_an_unrenewed_lease_dated_in_the_future_expires(es: Elasticsearch, forest: str) -> None:
    ahead = {"host": "elsewhere", "renewed_s": time.time() + 3600, "ttl_s": TTL_S, "released": False}
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | ahead})
    with pytest.raises(ForestBusy, match="on elsewhere"):
        Lease(es, forest=forest).acquire()
    taker = Lease(es, forest=forest, terms=LeaseTerms(wait_s=TTL_S + 10))
    taker.acquire()
    taker.release()


def test_waiting_for_a_deleted_forest_is_an_error(es: Elasticsearch, forest: str) -> None:
    held = Lease(es, forest=forest)
    held.acquire()
    deletion = threading.Timer(0.2, lambda: es.indices.delete(index=forest))
    deletion.start()
    with pytest.raises(ForestMissing, match="rebuild it"):
        Lease(es, forest=forest, terms=LeaseTerms(wait_s=30)).acquire()
    deletion.join()
    held.abandon()
    assert not es.indices.exists(index=forest)


def test_releasing_tries_an_unreachable_server_only_once(
    es: Elasticsearch, elasticsearch_url: str, forest: str
) -> None:
    has_gone, sent = threading.Event(), list[str]()

    def between(request: Sent, send: Send) -> Answer:
        if not has_gone.is_set():
            return send()
        sent.append(request.operation)
        raise no_answer()

    with client_with(elasticsearch_url, between) as client:
        writer = ForestWriter(ForestIndex.find(client, forest))
        has_gone.set()
        with pytest.raises(ServerUnavailable):
            writer.close()
    assert sent == ["_refresh"]
    again = Lease(es, forest=forest)
    again.acquire()
    again.release()


def test_a_container_with_this_machines_name_is_another_machine(es: Elasticsearch, forest: str) -> None:
    """The container's process ids mean nothing on this machine."""
    held = Lease(es, forest=forest)
    held.acquire()
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    nobody = 2**22 + 1
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"pid": nobody, "machine": "another"}})
    with pytest.raises(ForestBusy):
        Lease(es, forest=forest).acquire()
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"pid": nobody}})
    retaken = Lease(es, forest=forest)
    retaken.acquire()
    retaken.release()


@pytest.mark.parametrize(
    ("address", "changes", "url"),
    [
        ("http://127.0.0.1:9500", {}, "http://127.0.0.1:9500"),
        ("http://127.0.0.1:9500", {"machine": "another"}, None),
        ("http://localhost:9500", {"machine": "another"}, None),
        ("https://b:9500", {"machine": "another"}, "https://b:9500"),
        (None, {}, None),
        ("https://[b", {}, None),
    ],
)
def test_a_busy_error_has_the_owners_address(
    es: Elasticsearch, forest: str, address: str | None, changes: dict[str, str], url: str | None
) -> None:
    """A loopback address is not reported to other machines."""
    held = Lease(es, forest=forest, terms=LeaseTerms(address=address))
    held.acquire()
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | changes})
    with pytest.raises(ForestBusy) as busy:
        Lease(es, forest=forest).acquire()
    assert busy.value.owner.url == url


def test_a_lease_renewed_too_slowly_permits_no_write(
    es: Elasticsearch, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Lease(es, forest=forest, terms=LeaseTerms(ttl_s=600))
    held.acquire()
    write = Lease._write

    def slowly(lease: Lease, *arguments: Any, **named: Any) -> bool:
        is_ours = write(lease, *arguments, **named)
        lease._renewed_at -= 500
        return is_ours

    held._renewed_at -= 300
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "_write", slowly)
        with pytest.raises(ServerUnavailable, match="cannot renew the lease"):
            held.renew()
    held.renew()
    held.release()


def test_without_the_task_api_a_claim_waits_longer(elasticsearch_url: str, forest: str) -> None:
    def between(request: Sent, send: Send) -> Answer:
        return answer(403, {}) if request.path.startswith("/_tasks") else send()

    with client_with(elasticsearch_url, between) as client:
        lease, began_s = Lease(client, forest=forest), time.monotonic()
        lease.acquire()
        assert time.monotonic() - began_s > GRACE_S
        lease.release()


def test_a_repeated_lease_request_recognises_its_own_write(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_lease_is_renewed_while_the_feeder_sleeps(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()

    def renewed_s() -> float:
        return float(es.get(index=forest, id=LEASE_ID)["_source"]["lease"]["renewed_s"])

    held = Lease(es, forest=forest, terms=LeaseTerms(ttl_s=1.5))
    held.acquire()
    first = renewed_s()
    await_until(lambda: renewed_s() > first)
    with pytest.raises(ForestBusy):
        Lease(es, forest=forest).acquire()
    # A lease expires once its holder is garbage-collected.
    del held
    gc.collect()
    taken = Lease(es, forest=forest, terms=LeaseTerms(wait_s=TTL_S + 10))
    taken.acquire()
    assert Fence(es, forest=forest).epochs() == {3}
    taken.release()
    after = renewed_s()
    time.sleep(0.5)
    assert renewed_s() == after


def await_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tasks_of(es: Elasticsearch, forest: str) -> bool:
    tasks = "/_tasks?actions=indices:data/write/bulk*&detailed=true"
    answer = es.perform_request("GET", tasks, headers={"accept": "application/json"})
    return f"[{forest}]" in str(answer.body)


def half_a_claim(*, may_release: bool) -> Between:
    """Return a handler that fails a claim's alias request and, unless `may_release`, its release."""

    def between(request: Sent, send: Send) -> Answer:
        is_release = request.path.endswith(f"/{LEASE_ID}") and b'"released":true' in request.body
        if request.path == "/_aliases" or (is_release and not may_release):
            raise no_answer()
        return send()

    return between

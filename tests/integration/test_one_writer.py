"""One process at a time writes to a forest, whatever happens to it and whenever."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import elastic_transport
import pytest
from elasticsearch import AuthorizationException, Elasticsearch

from esdedup import Dedup, ForestBusy, ForestLost, ServerUnavailable
from esdedup.elastic.fence import Fence
from esdedup.elastic.lease import LEASE_ID, Lease
from esdedup.elastic.store import ElasticStore
from esdedup.profile import CLASSIC
from tests import stream
from tests.arrivals import AGING
from tests.feeder import Feeder, Job, Point

Names = Callable[[str], str]
TTL_S = 1.5
TEXT = {"text": "Somebody else's article about a ferry that left the harbour"}

STOPS = {
    "between batches": Point(signal=signal.SIGSTOP, matching="/_search", number=3),
    "before state and roots": Point(signal=signal.SIGSTOP, matching="/_bulk.*~state", number=2),
    "before leaves": Point(signal=signal.SIGSTOP, matching=r"-w-1/_bulk(?!.*~state)", number=2),
    "before articles": Point(signal=signal.SIGSTOP, matching="PUT /_bulk", number=2),
    "before the lease is renewed": Point(signal=signal.SIGSTOP, matching="~lease.if_"),
    "before the lease is given back": Point(signal=signal.SIGSTOP, matching='~lease.if_.*"released":true'),
    "before the alias is looked at": Point(signal=signal.SIGSTOP, matching="GET .*/_alias", number=2),
    "before the alias is moved": Point(signal=signal.SIGSTOP, matching="POST /_aliases"),
}


@pytest.fixture
def job(es: Elasticsearch, elasticsearch_url: str, index_name: Names) -> Job:
    index = index_name("news")
    Dedup(es).setup(index)
    return Job(url=elasticsearch_url, index=index, forest=index_name("forest"), lease_ttl_s=TTL_S)


@pytest.fixture
def forest(es: Elasticsearch, index_name: Names) -> str:
    """A forest that nobody owns."""
    name = index_name("forest")
    ElasticStore(es, forest=name, profile=CLASSIC, aging=AGING).close()
    return name


@pytest.mark.parametrize("stop", STOPS)
def test_whoever_stops_too_long_writes_nothing_any_more(es: Elasticsearch, job: Job, stop: str) -> None:
    job = dataclasses.replace(
        job, point=STOPS[stop], wait_before=10 if stop == "before the lease is renewed" else None
    )
    with Feeder(job) as stopped, Dedup(es, forest=job.forest, profile=CLASSIC, wait_s=20) as rival:
        stopped.wait_for_stop()
        list(rival.enrich([{"_id": "1", **TEXT}]))
        before = stream.versions(es, job.forest)
        aliases = es.indices.get_alias(index=job.forest)

        stopped.go_on()
        stopped.wait()

        assert stopped.exit_code == 0
        if stop == "before the lease is given back":
            assert stopped.error is None
        else:
            assert stopped.error is not None
            name, message = stopped.error
            assert name == "ForestLost"
            assert f"process {os.getpid()} on" in message
            assert "owns it since" in message
        assert stream.versions(es, job.forest) == before
        assert es.indices.get_alias(index=job.forest) == aliases
        # And it has not thrown out the owner.
        (action,) = rival.enrich([{"_id": "2", **TEXT}])
        assert action["_source"]["dedup"]["root"] in stream.nodes(es, job.forest)


def test_a_second_process_is_told_who_owns_the_forest_and_can_wait_for_it(
    job: Job, tmp_path: Path, es: Elasticsearch
) -> None:
    command = [Path(sys.executable).parent / "esdedup", "index", "-", "--index", job.index]
    command += ["--forest", job.forest, "--profile", "classic", "--url", job.url]
    line = '{"id": "waited", "text": "Somebody else\'s article about a ferry that left the harbour"}\n'
    job = dataclasses.replace(job, lease_ttl_s=60, point=STOPS["between batches"])
    with Feeder(job) as owner:
        owner.wait_for_stop()
        refused = subprocess.run(command, check=False, input=line, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 3
        assert f"process {owner.pid} on" in refused.stderr
        assert "owns it since" in refused.stderr
        assert "--wait" in refused.stderr
        waiting = subprocess.Popen(
            [*command, "--wait", "60"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert waiting.stdin is not None
            waiting.stdin.write(line)
            waiting.stdin.close()
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(3)
            owner.go_on()
            owner.wait()
            assert owner.error is None
            assert waiting.wait(60) == 0
        finally:
            waiting.kill()
            waiting.wait()
            if waiting.stderr is not None:
                waiting.stderr.close()
    found = stream.indexed(es, job.index)
    roots, _ = stream.expected(stream.articles(job.count))
    assert found.pop("waited") is not None
    assert found == roots


def test_whoever_lost_the_forest_is_told_even_if_it_is_free_again(es: Elasticsearch, job: Job) -> None:
    """The heart notices first; that must not make the feeder take the forest anew, unawares."""
    others = hearts()
    with Dedup(es, forest=job.forest, profile=CLASSIC, lease_ttl_s=TTL_S) as feeder:
        list(feeder.enrich([{"_id": "1", **TEXT}]))
        (heart,) = hearts() - others
        expire(es, job.forest)
        with Dedup(es, forest=job.forest, profile=CLASSIC) as rival:
            list(rival.enrich([{"_id": "2", **TEXT}]))
        heart.join(30)
        assert not heart.is_alive()
        with pytest.raises(ForestLost, match="has given it back"):
            list(feeder.enrich([{"_id": "3", **TEXT}]))
        (action,) = feeder.enrich([{"_id": "3", **TEXT}])
        assert action["_source"]["dedup"]["seq"] == 3


def test_a_process_of_this_machine_that_was_killed_gives_way_at_once(es: Elasticsearch, job: Job) -> None:
    job = dataclasses.replace(job, lease_ttl_s=600, point=STOPS["between batches"])
    with Feeder(job) as owner:
        owner.wait_for_stop()
        with pytest.raises(ForestBusy, match=f"process {owner.pid} on"):
            Lease(es, forest=job.forest).acquire()
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        lease = Lease(es, forest=job.forest)
        lease.acquire()
        lease.release()


def test_a_write_that_was_let_in_before_has_ended_when_the_forest_is_taken(
    es: Elasticsearch, forest: str
) -> None:
    """It waits in the server, for a copy of its shard, longer than any margin."""
    stale = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, lease_ttl_s=600)
    # From here on the shard takes a write that asks for all its copies only when there is one.
    es.indices.put_settings(index=forest, settings={"auto_expand_replicas": False, "number_of_replicas": 1})
    node = {"root": "f" * 16, "leaf": False, "seq": 1, "keys": [], "seen": 0}
    written: list[Any] = []
    taken = threading.Event()

    def write() -> None:
        operations = [{"index": {"_id": "f" * 16}}, node]
        bulk = es.options(request_timeout=60).bulk
        written.append(
            bulk(
                index=stale.owned._lease.alias,
                operations=operations,
                require_alias=True,
                wait_for_active_shards="all",
                timeout="60s",
            )
        )

    def take() -> None:
        assert Lease(es, forest=forest).acquire()
        taken.set()

    writer = threading.Thread(target=write)
    writer.start()
    fence = Fence(es, forest=forest)
    await_until(lambda: tasks_of(es, forest))
    stale.owned._lease._stopped.set()
    expire(es, forest)
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
    # What comes after the alias has been moved is not let in.
    refused = es.bulk(index=stale.owned._lease.alias, operations=[{"index": {}}, node], require_alias=True)
    assert refused["items"][0]["index"]["status"] == 404


@pytest.mark.parametrize("server_is_told", [True, False])
def test_a_claim_that_fails_half_way_is_given_up(
    es: Elasticsearch, forest: str, server_is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the lease and the alias; the server may be gone altogether, so that nobody can tell it."""
    with monkeypatch.context() as patch:
        patch.setattr(type(es.indices), "update_aliases", refuse_connection)
        if not server_is_told:
            patch.setattr(Lease, "release", refuse_connection_translated)
        with pytest.raises(ServerUnavailable):
            Lease(es, forest=forest, ttl_s=TTL_S).acquire()
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    assert lease["epoch"] == 2
    assert lease["released"] == server_is_told
    if not server_is_told:
        # Any other process has to wait until its time is over: it cannot know.
        with monkeypatch.context() as patch:
            patch.setattr("esdedup.elastic.lease._abandoned", set())
            with pytest.raises(ForestBusy):
                Lease(es, forest=forest).acquire()
            other = Lease(es, forest=forest)
            other.acquire(wait_s=TTL_S + 10)
            other.release()
        return
    again = Lease(es, forest=forest)
    assert again.acquire()
    again.release()


def test_this_process_may_try_again_at_once_after_a_claim_of_its_own_failed(
    es: Elasticsearch, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(type(es.indices), "update_aliases", refuse_connection)
        patch.setattr(Lease, "release", refuse_connection_translated)
        with pytest.raises(ServerUnavailable):
            Lease(es, forest=forest, ttl_s=600).acquire()
    again = Lease(es, forest=forest)
    again.acquire()
    again.release()


def test_a_forest_is_not_taken_while_a_server_may_let_in_the_owner_before(
    es: Elasticsearch, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a cluster with a server that lags behind: it still knows the alias of the owner before."""
    with monkeypatch.context() as patch:
        patch.setattr(type(es.indices), "update_aliases", lambda *_, **__: {"acknowledged": False})
        with pytest.raises(ServerUnavailable, match="may still let the owner before write"):
            Lease(es, forest=forest).acquire()
    lease = Lease(es, forest=forest)
    lease.acquire()
    lease.release()


def test_a_lease_that_nobody_renews_ends_also_when_its_clock_is_ahead(es: Elasticsearch, forest: str) -> None:
    ahead = {"host": "elsewhere", "renewed_s": time.time() + 3600, "ttl_s": TTL_S, "released": False}
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | ahead})
    with pytest.raises(ForestBusy, match="on elsewhere"):
        Lease(es, forest=forest).acquire()
    taker = Lease(es, forest=forest)
    taker.acquire(wait_s=TTL_S + 10)
    taker.release()


def test_a_container_with_this_machines_name_is_another_machine(es: Elasticsearch, forest: str) -> None:
    """Process numbers there mean nothing here."""
    held = Lease(es, forest=forest)
    held.acquire()
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    nobody = 2**22 + 1
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"pid": nobody, "machine": "another"}})
    with pytest.raises(ForestBusy):
        Lease(es, forest=forest).acquire()
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"pid": nobody}})
    lease_of_the_dead = Lease(es, forest=forest)
    lease_of_the_dead.acquire()
    lease_of_the_dead.release()


def test_nobody_writes_on_a_lease_that_was_renewed_too_slowly(
    es: Elasticsearch, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Lease(es, forest=forest, ttl_s=600)
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


def test_a_server_that_hides_what_it_does_is_told_apart(
    es: Elasticsearch, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Elasticsearch.perform_request

    def forbid(client: Elasticsearch, method: str, path: str, **named: Any) -> Any:
        if path.startswith("/_tasks"):
            node = es.transport.node_pool.all()[0].config
            meta = elastic_transport.ApiResponseMeta(403, "1.1", elastic_transport.HttpHeaders(), 0.0, node)
            raise AuthorizationException("", meta, {})
        return plain(client, method, path, **named)

    lease = Lease(es, forest=forest)
    with monkeypatch.context() as patch:
        patch.setattr(Elasticsearch, "perform_request", forbid)
        assert not lease.acquire()
    lease.release()


def await_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tasks_of(es: Elasticsearch, forest: str) -> bool:
    tasks = "/_tasks?actions=indices:data/write/bulk*&detailed=true"
    answer = es.perform_request("GET", tasks, headers={"accept": "application/json"})
    return f"[{forest}]" in str(answer.body)


def hearts() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "esdedup-lease"}


def expire(es: Elasticsearch, forest: str) -> None:
    """Let the lease on the forest be over for everybody but its owner."""
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})


def refuse_connection(*_: Any, **__: Any) -> None:
    raise elastic_transport.ConnectionError("refused on purpose")


def refuse_connection_translated(*_: Any, **__: Any) -> None:
    raise ServerUnavailable("refused on purpose")

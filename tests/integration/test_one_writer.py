"""Only one process at a time writes to a forest; a previous owner can no longer write to it."""

import dataclasses
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, ForestBusy, ForestLost, IndexBlocked, Maintenance
from esdedup.cli import main
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lease import LEASE_ID, Lease
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from tests.support import exploring, stream
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign
from tests.support.feeder import Feeder, Job, Point
from tests.support.forests import (
    ARTICLES,
    a_leaf,
    expire_lease,
    feed,
    nodes,
    renewing_threads,
    write,
)
from tests.support.names import Names

TTL_S = 1.5
FERRY = {"text": "Somebody else's article about a ferry that left the harbour"}

STOPS = {
    "between batches": Point(signal=signal.SIGSTOP, matching="/_search", number=3),
    "before state and nodes": Point(signal=signal.SIGSTOP, matching="/_bulk.*log-", number=2),
    # Stop at the first write of articles, when one more batch has been assigned and another remains.
    "before articles": Point(signal=signal.SIGSTOP, matching="PUT /_bulk", number=1),
    "before the lease is renewed": Point(signal=signal.SIGSTOP, matching="~lease.if_"),
    "before the lease is released": Point(signal=signal.SIGSTOP, matching='~lease.if_.*"released":true'),
    "before the alias is read": Point(signal=signal.SIGSTOP, matching="GET .*/_alias", number=2),
    "before the alias is moved": Point(signal=signal.SIGSTOP, matching="POST /_aliases"),
}

STOPS_OF_MAKE_TEST = ("before state and nodes", "before the alias is moved")


@pytest.fixture
def profile() -> Profile:
    """The profile of `job`; tests may override it."""
    return VERIFIED


@pytest.fixture
def job(es: Elasticsearch, elasticsearch_url: str, index_name: Names, profile: Profile) -> Job:
    index = index_name("news")
    Dedup(es).setup(index)
    return Job(
        url=elasticsearch_url,
        index=index,
        forest=index_name("forest"),
        profile=profile,
        lease_ttl_s=TTL_S,
    )


@pytest.mark.parametrize("profile", exploring.PROFILES, ids=lambda profile: profile.name)
@pytest.mark.parametrize("stop", STOPS if exploring.EFFORT > 1 else STOPS_OF_MAKE_TEST)
def test_a_process_suspended_too_long_writes_nothing(es: Elasticsearch, job: Job, stop: str) -> None:
    job = dataclasses.replace(
        job, point=STOPS[stop], wait_before=10 if stop == "before the lease is renewed" else None
    )
    with Feeder(job) as stopped, Dedup(es, forest=job.forest, profile=job.profile, wait_s=20) as rival:
        stopped.wait_for_stop()
        list(rival.enrich([{"_id": "1", **FERRY}]))
        before = stream.versions(es, job.forest)
        aliases = es.indices.get_alias(index=job.forest)

        stopped.go_on()
        stopped.wait()

        assert stopped.exit_code == 0
        if stop == "before the lease is released":
            assert stopped.error is None
        else:
            assert stopped.error is not None
            name, message = stopped.error
            assert name == "ForestLost"
            assert f"process {os.getpid()} on" in message
            assert "has owned it since" in message
        assert stream.versions(es, job.forest) == before
        assert es.indices.get_alias(index=job.forest) == aliases
        # The rival still owns the forest.
        (action,) = rival.enrich([{"_id": "2", **FERRY}])
        assert action["_source"]["dedup"]["root"] in stream.nodes(es, job.forest)


def test_a_second_process_is_refused_or_waits(
    job: Job, es: Elasticsearch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(Path(sys.executable).parent / "esdedup"), "index", "-", "--index", job.index]
    command += ["--forest", job.forest, "--profile", job.profile.name, "--url", job.url]
    line = '{"id": "waited", "text": "Somebody else\'s article about a ferry that left the harbour"}\n'
    job = dataclasses.replace(job, lease_ttl_s=60, point=STOPS["between batches"])
    with Feeder(job) as owner:
        owner.wait_for_stop()
        monkeypatch.setattr(sys, "argv", command)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
        with pytest.raises(SystemExit, match="3"):
            main()
        output = capsys.readouterr().err
        assert f"process {owner.pid} on" in output
        assert "has owned it since" in output
        assert "--wait" in output
        waiting = subprocess.Popen(
            [*command, "--wait", "60"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert waiting.stdin is not None
            waiting.stdin.write(line)
            waiting.stdin.close()
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(2)
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
    roots, _ = stream.expected(stream.articles(job.count, job.profile), job.profile)
    assert found.pop("waited") is not None
    assert found == roots


def test_a_lost_lease_is_reported_even_after_its_release(es: Elasticsearch, job: Job) -> None:
    """The renewing thread notices the loss; the feeder must not reacquire the forest without an error."""
    others = renewing_threads()
    with Dedup(es, forest=job.forest, profile=job.profile, lease_ttl_s=TTL_S) as feeder:
        list(feeder.enrich([{"_id": "1", **FERRY}]))
        (renewing,) = renewing_threads() - others
        expire_lease(es, job.forest)
        with Dedup(es, forest=job.forest, profile=job.profile) as rival:
            list(rival.enrich([{"_id": "2", **FERRY}]))
        renewing.join(30)
        assert not renewing.is_alive()
        with pytest.raises(ForestLost, match="has released it"):
            list(feeder.enrich([{"_id": "3", **FERRY}]))
        (action,) = feeder.enrich([{"_id": "3", **FERRY}])
        assert action["_source"]["dedup"]["seq"] == 3


def test_a_killed_local_process_is_replaced_immediately(es: Elasticsearch, job: Job) -> None:
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


FULL_DISK, READ_ONLY = "read_only_allow_delete", "write"


@pytest.fixture
def block(es: Elasticsearch) -> Iterator[Callable[[str, str], None]]:
    """Blocks an index, as a full disk or an administrator would; all blocks are removed at the end."""
    blocked: list[tuple[str, str]] = []

    def block(index: str, kind: str) -> None:
        blocked.append((index, kind))
        es.indices.put_settings(index=index, settings={f"index.blocks.{kind}": True})

    yield block
    for index, kind in blocked:
        es.indices.put_settings(index=index, settings={f"index.blocks.{kind}": None})


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    return pauses


@pytest.mark.parametrize(
    ("kind", "advice"), [(FULL_DISK, "free disk space"), (READ_ONLY, "remove the block")]
)
def test_feeding_a_blocked_forest_fails_immediately(
    es: Elasticsearch,
    index_name: Names,
    block: Callable[[str, str], None],
    pauses: list[float],
    kind: str,
    advice: str,
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, batch_size=10) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:10])
        block(forest, kind)
        with pytest.raises(IndexBlocked, match=f"{forest}.* blocked by: .*{advice}") as refused:
            feed(es, dedup, index, ARTICLES[10:])
        assert refused.value.index == forest
        with pytest.raises(IndexBlocked):
            dedup.close()
        # The server refused the release, but this process knows that its claim has ended.
        with pytest.raises(IndexBlocked, match="take the lease"):
            feed(es, dedup, index, ARTICLES[10:])
        assert pauses == []
        es.indices.put_settings(index=forest, settings={f"index.blocks.{kind}": None})
        feed(es, dedup, index, ARTICLES[10:20])
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_deleting_nodes_of_a_blocked_forest_fails_immediately(
    es: Elasticsearch, fed: tuple[str, str], block: Callable[[str, str], None], pauses: list[float]
) -> None:
    _, forest = fed
    hits = [{"_id": each, "_seq_no": 0, "_primary_term": 1} for each in nodes(es, forest)]
    writer = ForestWriter(ForestIndex.find(es, forest))
    block(forest, READ_ONLY)
    with pytest.raises(IndexBlocked, match="cannot remove nodes"):
        writer.delete(hits)
    assert pauses == []


def test_a_repair_of_blocked_articles_fails_immediately(
    es: Elasticsearch, fed: tuple[str, str], block: Callable[[str, str], None], pauses: list[float]
) -> None:
    index, forest = fed
    leaf = a_leaf(nodes(es, forest))
    root = next(node for node in nodes(es, forest).values() if node.is_root and node.id != leaf.root)
    block(index, FULL_DISK)
    write(es, forest, leaf._replace(root=root.id))
    with pytest.raises(IndexBlocked, match="cannot assign roots to articles") as refused:
        Maintenance(es, forest=forest).repair([index])
    assert refused.value.index == index
    assert pauses == []


def test_a_process_that_lost_the_forest_cannot_write(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    stale = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING, lookup="search")
    assign(stale, as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    # Make the lease look expired, so that another process may acquire the forest.
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})
    owner = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING)
    with pytest.raises(ForestLost, match="lost the forest"):
        assign(stale, as_batch([Arrival("f" * 16, 0)]), now_ms=NOW_MS)
    with pytest.raises(ForestLost):
        stale.begin()
    (known,) = assign(owner, as_batch([Arrival("0" * 16, 0)]), now_ms=NOW_MS)
    assert known.kind.value == "known"
    es.indices.refresh(index=forest)
    assert es.count(index=forest, query={"exists": {"field": "seq"}})["count"] == 1
    owner.close()
    stale.close()

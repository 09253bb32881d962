"""The guides about sidecars behind HAProxy and about data nodes, followed literally, on three data nodes."""

import contextlib
import functools
import itertools
import json
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Maintenance, node
from tests.soak.feeders import articles
from tests.soak.run import Plan, run
from tests.soak.stage import Server, Stage, free_port
from tests.support import haproxy
from tests.support.code_blocks import ROOT, blocks_of, following, prints
from tests.support.forests import ARTICLES, roots
from tests.support.names import Names
from tests.support.ready_command import ready
from tests.support.sidecar_process import SidecarProcess, running, until

pytestmark = [pytest.mark.night, pytest.mark.slow, pytest.mark.timeout(1_800)]
PATIENCE_S = 240.0
# Errors that feeders see must not last: a takeover takes seconds, and the machine may be busy.
MOST_REFUSED_S = 30.0
PAUSE_S = 0.1


@haproxy.needs_haproxy
def test_feeders_behind_haproxy_survive_killed_owners_and_nodes(data_directory: Path, tmp_path: Path) -> None:
    @contextlib.contextmanager
    def proxy(sidecars: list[str]) -> Iterator[str]:
        one, other = (urlsplit(each).netloc for each in sidecars)
        at = f"127.0.0.1:{free_port()}"
        addresses = {":9600": at, "sidecar-1:9500": one, "sidecar-2:9501": other}
        with haproxy.running("two-sidecars.md", "haproxy.cfg", addresses, folder=tmp_path):
            yield f"http://{at}"

    server = Server(data_directory / "three", free_port(), node_count=3, heap="256m")
    plan = Plan(
        articles=3_000,
        seconds=60.0,
        feeders=("python", "enrich", "dedup", "small"),
        events=((0.1, Stage.kill_owner), (0.3, Stage.kill_primary), (0.7, Stage.kill_owner)),
        lease_ttl_s=5.0,
        shards=3,
        away_s=3.0,
        settled=200,
        options=("--lookup", "search", "--forest-shards", "3"),
        proxy=proxy,
    )
    with server.running():
        outcome = run(plan, tmp_path, server.url, server=server)
    assert outcome.faults == []
    assert outcome.figures["articles indexed"] == plan.articles
    assert outcome.figures["seconds in which a feeder was refused, at most"] < MOST_REFUSED_S


@haproxy.needs_haproxy
def test_haproxy_sends_articles_to_the_owner_of_their_forest(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, tmp_path: Path
) -> None:
    index, rest, zh = "news-zh", index_name("forest"), index_name("forest-zh")
    other = index_name("articles")
    at = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as held:
        es.options(ignore_status=404).indices.delete(index=index)
        held.callback(es.indices.delete, index=index)
        for name, forest in ((index, zh), (other, rest)):
            with Dedup(es, forest=forest) as dedup:
                dedup.setup(name, forest=forest)
        pairs = {
            name: [SidecarProcess(elasticsearch_url, "--forest", forest) for _ in range(2)]
            for name, forest in (("zh", zh), ("rest", rest))
        }
        for each in itertools.chain(*pairs.values()):
            held.callback(each.end)
        for pair in pairs.values():
            until(functools.partial(_has_owner, pair), PATIENCE_S, *pair)
        addresses = {
            f"{name}-{number}:9500": urlsplit(each.url).netloc
            for name, pair in pairs.items()
            for number, each in enumerate(pair, 1)
        }
        held.enter_context(
            haproxy.running("capacity.md", "haproxy.cfg", {":9600": at, **addresses}, folder=tmp_path)
        )

        def feed(name: str, some: list[dict[str, Any]]) -> None:
            _feed(f"http://{at}", name, some)
            es.indices.refresh(index=name)

        feed(index, ARTICLES[:100])
        feed(other, ARTICLES[:100])
        owner = next(each for each in pairs["zh"] if each.owns())
        owner.process.kill()
        feed(index, ARTICLES[100:])
        for name, forest, count in ((index, zh, len(ARTICLES)), (other, rest, 100)):
            assert len(roots(es, name)) == count
            assert Maintenance(es, forest=forest).stats().seq == count
            assert list(Maintenance(es, forest=forest).verify([name])) == []
        for path in ("/_bulk", "/v1/enrich"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(f"http://{at}{path}", b"{}")


def _has_owner(pair: list[SidecarProcess]) -> bool:
    return any(each.owns() for each in pair)


def _feed(url: str, index: str, some: list[dict[str, Any]]) -> None:
    """Feed articles with the client and the retries of the guide."""
    with Elasticsearch(
        url,
        request_timeout=PATIENCE_S,
        retry_on_status=[],
        retry_on_timeout=True,
        max_retries=100,
        retry_backoff_base=0.2,
        retry_backoff_cap=2.0,
    ) as client:
        helpers.bulk(
            client,
            some,
            index=index,
            chunk_size=20,
            retry_on_status=[429, 502, 503],
            max_retries=100,
            initial_backoff=0.2,
            max_backoff=2.0,
        )


@haproxy.needs_haproxy
def test_haproxy_encrypts_the_connection_to_the_data_nodes(data_directory: Path, tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.crt", tmp_path / "key.pem"
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    files = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", "req", "-x509", "-nodes", *files, *names], check=True, capture_output=True)
    (tmp_path / "elasticsearch.pem").write_text(certificate.read_text() + key.read_text())
    server = Server(data_directory / "encrypted", free_port(), node_count=3, heap="256m")
    at, ports = f"127.0.0.1:{free_port()}", range(server.port, server.port + 3)
    addresses = {f"localhost:{9200 + number}": f"127.0.0.1:{port}" for number, port in enumerate(ports)}
    url, index, forest = f"https://{at}", "encrypted", "encrypted-forest"
    with (
        server.running(),
        haproxy.running(
            "two-sidecars.md", "haproxy-elasticsearch.cfg", {":9243": at, **addresses}, folder=tmp_path
        ),
        Elasticsearch(url, ca_certs=str(certificate), request_timeout=PATIENCE_S) as es,
    ):
        # Other machines use a name, which the embedded node would refuse.
        named = requests.get(url, headers={"Host": "elasticsearch"}, verify=str(certificate), timeout=60)
        assert named.status_code == 200
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index, shards=3)
        with running(url, "--ca-certs", str(certificate), forest=forest) as sidecar:
            _feed(sidecar.url, index, ARTICLES[:100])
            # HAProxy sends requests to the other nodes.
            server.kill(1)
            _feed(sidecar.url, index, ARTICLES[100:])
        es.indices.refresh(index=index)
        assert len(roots(es, index)) == len(ARTICLES)
        assert list(Maintenance(es, forest=forest).verify([index])) == []
        untrusting = SidecarProcess(url, "--forest", forest)
        until(lambda: "certificate" in untrusting.log, PATIENCE_S)
        untrusting.process.kill()
        untrusting.end()


def test_the_guide_about_data_nodes_works_while_feeding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.code_blocks.RUN_S", PATIENCE_S)
    blocks = blocks_of(ROOT / "docs/guides/data-nodes.md")
    is_over, fed, failed = threading.Event(), [], []

    def feed(url: str) -> None:
        try:
            for each in articles(10**6, seed=1):
                _feed(url, "news", [each])
                fed.append(each["_id"])
                if is_over.wait(PAUSE_S):
                    return
        except BaseException as error:
            failed.append(error)

    (tmp_path / "ready").mkdir()
    with (
        contextlib.ExitStack() as held,
        ready(tmp_path / "ready") as command,
        following(tmp_path, f"http://localhost:{free_port()}", command) as follower,
    ):
        held.callback(node.stop, tmp_path / "cluster")
        printed, thread = "", threading.Thread()
        for block in blocks:
            if block.is_output:
                assert prints(block.text, printed), f"line {block.line}: {printed}"
                if not thread.ident:
                    url = f"http://localhost:{follower.environment['ESDEDUP_FOLLOWED_PORTS'].split()[0]}"
                    thread = threading.Thread(target=feed, args=(url,))
                    thread.start()
            elif block.is_run:
                if block is blocks[-2]:
                    # The last commands verify the forest, and stop the cluster.
                    is_over.set()
                    thread.join()
                    counted = follower.follow(block._replace(text=_COUNT), may_fail=True)
                    assert (failed, json.loads(counted)["count"]) == ([], len(fed))
                printed = follower.follow(block, may_fail=True)


_COUNT = "curl -s 'localhost:9200/news/_refresh' -X POST > /dev/null; curl -s localhost:9200/news/_count"

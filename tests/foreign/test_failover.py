"""Feeding continues while servers of an embedded cluster are killed."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.files import FileArticle
from esdedup.ingest.load import Load

from esdedup import Dedup, Profile, node
from esdedup.elastic.client import connect
from esdedup.node import control, distribution
from tests.support import exploring, stream

ARTICLES = 300
HEAP = "256m"
# The servers stop after this time, so that a test cannot hang.
LIFETIME_S = 900


class Servers:
    """Three servers of one cluster, which can be killed and restarted."""

    def __init__(self, data: Path) -> None:
        self.cluster = node.start(
            data, port=0, node_count=3, heap=HEAP, lifetime_s=LIFETIME_S, with_parent=True, timeout_s=200
        )
        self.urls = [each.url for each in self.cluster.nodes]
        self._pids = [each.pid for each in self.cluster.nodes]
        self._revived: list[subprocess.Popen[bytes]] = []
        self._killers: list[threading.Timer] = []

    def kill(self, number: int, *, after_s: float = 0.0) -> None:
        self._killers.append(threading.Timer(after_s, os.kill, (self._pids[number], signal.SIGKILL)))
        self._killers[-1].start()

    def revive(self, number: int) -> None:
        home = self.cluster.data / self.cluster.nodes[number].name
        installed = distribution.install(self.cluster.version)
        process = control._spawn(home, installed, number, HEAP, LIFETIME_S, with_parent=True)
        self._revived.append(process)
        self._pids[number] = process.pid

    def revive_all(self) -> None:
        for killer in self._killers:
            killer.join()
        for number, pid in enumerate(self._pids):
            if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                self.revive(number)

    def stop(self) -> None:
        for killer in self._killers:
            killer.join()
        for process in self._revived:
            process.kill()
            process.wait()
        node.stop(self.cluster.data)
        assert not self.cluster.is_running


@pytest.fixture(scope="module")
def servers(data_directory: Path) -> Iterator[Servers]:
    servers = Servers(data_directory)
    yield servers
    servers.stop()


@pytest.mark.parametrize("profile", exploring.PROFILES, ids=lambda profile: profile.name)
def test_feeding_continues_after_a_primary_is_killed(servers: Servers, profile: Profile) -> None:
    """The forest's primary is killed and its server restarted, then the articles' primary is killed."""
    servers.revive_all()
    index, forest = f"news-{profile.name}", f"forest-{profile.name}"
    kills, revival = {60: forest, 200: index}, 140
    rejections: list[str] = []

    def articles(client: Elasticsearch) -> Iterator[FileArticle]:
        victim = 0
        for number, article in enumerate(stream.articles(ARTICLES, profile)):
            if number in kills:
                await_replication(client)
                victim = number_of_primary(client, kills[number])
                # Kill the server slightly later, when a request may be in progress.
                servers.kill(victim, after_s=0.05)
            elif number == revival:
                check_address_of_cluster(servers.cluster, victim)
                servers.revive(victim)
            yield FileArticle(place=f"line {number}", id=article.pop("id"), article=article, size_bytes=1_000)

    with connect(", ".join(servers.urls)) as client:
        Dedup(client).setup(index)
        client.options(request_timeout=90).indices.put_settings(
            index=index, settings={"number_of_replicas": 1}
        )
        first = servers.urls[number_of_primary(client, index)]
    # The client knows all three servers. The first server in the client's list will be killed.
    urls = sorted(servers.urls, key=lambda url: url != first)
    with connect(", ".join(urls)) as client:
        load = Load(on_rejected=lambda rejected: rejections.append(str(rejected)))
        with Dedup(client, forest=forest, profile=profile) as dedup:
            load.run(client, dedup, articles(client), index=index, batch_size=20)
        assert rejections == []
        assert (load.summary.read, load.summary.written) == (ARTICLES, ARTICLES)
        assert client.cluster.health(wait_for_nodes="2", timeout="60s")["number_of_nodes"] == 2
        found = stream.indexed(client, index), stream.nodes(client, forest)
    assert found == stream.expected(stream.articles(ARTICLES, profile), profile)


def check_address_of_cluster(cluster: node.Cluster, victim: int) -> None:
    """Check that a cluster has the address of a living server, even if its first server has died."""
    died = cluster.nodes[victim]
    others = [each for each in cluster.nodes if each is not died]
    assert cluster.model_copy(update={"nodes": (died, *others)}).url == others[0].url


def await_replication(client: Elasticsearch) -> None:
    # A restarted server must copy its shards, which takes seconds, or longer if the machine is busy.
    health = client.options(request_timeout=240).cluster.health(
        wait_for_nodes="3", wait_for_status="green", wait_for_no_relocating_shards=True, timeout="180s"
    )
    assert not health["timed_out"]


def number_of_primary(client: Elasticsearch, index: str) -> int:
    """Return the number of the server that holds the primary of an index."""
    copies: Any = client.cat.shards(index=index, format="json").body
    (name,) = {copy["node"] for copy in copies if copy["prirep"] == "p"}
    # The name is `node-2 -> …` while the shard moves to another server.
    return int(name.split()[0].removeprefix("node-"))

"""Feeding continues while servers of an embedded cluster are killed."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.files import FileArticle
from esdedup.ingest.load import Load

from esdedup import Dedup, Profile, node
from esdedup.elastic.client import connect
from tests.soak.stage import Server, free_port
from tests.support import exploring, stream

ARTICLES = 300
HEAP = "256m"


class Servers:
    """Three servers of one cluster, which can be killed and restarted."""

    def __init__(self, data: Path) -> None:
        self._server = Server(data, free_port(), node_count=3, heap=HEAP)
        self._server.start()
        self.urls = self._server.url.split(",")
        self._jobs: list[threading.Thread] = []

    @property
    def cluster(self) -> node.Cluster:
        found = node.find(self._server.data)
        assert found is not None
        return found

    def kill(self, number: int, *, after_s: float = 0.0) -> None:
        self._begin(threading.Timer(after_s, self._server.kill, (number,)))

    def revive(self) -> None:
        """Begin to start the servers that were killed."""
        self._begin(threading.Thread(target=self._server.start))

    def revive_all(self) -> None:
        self.wait()
        self._server.start()

    def wait(self) -> None:
        """Wait until servers have been killed or started as requested."""
        for job in self._jobs:
            job.join()

    def stop(self) -> None:
        self.wait()
        self._server.stop()

    def _begin(self, job: threading.Thread) -> None:
        self._jobs.append(job)
        job.start()


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
                servers.revive()
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

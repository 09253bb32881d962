"""A server of the cluster is killed while articles stream in: the stream goes on."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch
from esdedup.ingest.files import Line
from esdedup.ingest.load import Load

from esdedup import Dedup, node
from esdedup.elastic.client import connect
from esdedup.fingerprint.profile import CLASSIC
from esdedup.node import Cluster, control, distribution
from tests.support import stream

ARTICLES = 600
HEAP = "256m"
# A stream that hangs ends with its servers.
LIFETIME_S = 150


def test_the_stream_goes_on_whichever_primary_is_killed(tmp_path: Path) -> None:
    """First that of the forest, whose server comes back meanwhile, then that of the articles."""
    index, forest = "news", "forest"
    kills, revival = {100: forest, 350: index}, 250
    cluster = node.start(tmp_path, port=0, node_count=3, heap=HEAP, lifetime_s=LIFETIME_S, with_parent=True)
    pids = {number: each.pid for number, each in enumerate(cluster.nodes)}
    revived: list[subprocess.Popen[bytes]] = []
    killers: list[threading.Timer] = []
    rejections: list[str] = []

    def lines(client: Elasticsearch) -> Iterator[Line]:
        victim = 0
        for number, article in enumerate(stream.articles(ARTICLES)):
            if number in kills:
                everything_is_replicated(client)
                victim = number_of_primary(client, kills[number])
                # Not here, between two requests, but when one may be under way.
                killers.append(threading.Timer(0.05, os.kill, (pids[victim], signal.SIGKILL)))
                killers[-1].start()
            elif number == revival:
                revived.append(revive(cluster, victim))
                pids[victim] = revived[0].pid
            yield Line(place=f"line {number}", id=article.pop("id"), article=article)

    try:
        with connect(cluster.url) as client:
            Dedup(client).setup(index)
            client.indices.put_settings(index=index, settings={"number_of_replicas": 1})
            first = cluster.nodes[number_of_primary(client, index)]
        # It knows of all three, and nobody tells it that one is gone; the first one goes for certain.
        urls = sorted((each.url for each in cluster.nodes), key=lambda url: url != first.url)
        with connect(", ".join(urls)) as client:
            load = Load(on_rejected=lambda rejected: rejections.append(str(rejected)))
            with Dedup(client, forest=forest, profile=CLASSIC, batch_size=20) as dedup:
                load.run(client, dedup, lines(client), index=index)
            assert rejections == []
            assert (load.summary.read, load.summary.indexed) == (ARTICLES, ARTICLES)
            assert client.cluster.health(wait_for_nodes="2", timeout="60s")["number_of_nodes"] == 2
            found = stream.indexed(client, index), stream.nodes(client, forest)
    finally:
        for killer in killers:
            killer.join()
        for process in revived:
            process.kill()
            process.wait()
        node.stop(tmp_path)
    assert found == stream.expected(stream.articles(ARTICLES))


def everything_is_replicated(client: Elasticsearch) -> None:
    health = client.options(request_timeout=90).cluster.health(
        wait_for_nodes="3", wait_for_status="green", timeout="60s"
    )
    assert not health["timed_out"]


def number_of_primary(client: Elasticsearch, index: str) -> int:
    """Return which of the cluster's servers holds the index's primary."""
    copies: Any = client.cat.shards(index=index, format="json").body
    (name,) = {copy["node"] for copy in copies if copy["prirep"] == "p"}
    return int(name.removeprefix("node-"))


def revive(cluster: Cluster, number: int) -> subprocess.Popen[bytes]:
    """Start a server again that has died; return its process."""
    home = cluster.data / cluster.nodes[number].name
    installed = distribution.install(cluster.version)
    return control._spawn(home, installed, number, HEAP, LIFETIME_S, with_parent=True)

"""Starting, finding and stopping the embedded Elasticsearch."""

import functools
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import requests

from esdedup import NodeError, SettingError, node
from esdedup.elastic.client import connect
from esdedup.node import Cluster
from esdedup.node.additions import LANGUAGES
from esdedup.node.distribution import full_version


@pytest.fixture(scope="module")
def started(data_directory: Path) -> Iterator[tuple[Path, Cluster]]:
    """A running node, and its directory."""
    data = data_directory / "node"
    yield data, node.start(data, port=0, lifetime_s=600, with_parent=True)
    node.stop(data)


@pytest.fixture
def data(started: tuple[Path, Cluster]) -> Path:
    """The directory of the node, which an earlier test may have restarted."""
    return started[0]


def running(data: Path) -> Cluster:
    found = node.find(data)
    assert found is not None
    assert found.is_running
    return found


def await_end(is_running: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while is_running() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_running()


def test_a_node_listens_on_the_loopback_interface_only(started: tuple[Path, Cluster]) -> None:
    data, cluster = started
    with pytest.raises(NodeError, match=r"runs on .* already"):
        node.start(data, port=0)
    assert running(data) == cluster
    assert all(psutil.Process(each.pid).is_running() for each in cluster.nodes)
    listening = {each.laddr.ip for each in psutil.Process(cluster.nodes[0].pid).net_connections("tcp")}
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_nodes_join_a_running_cluster(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="so no node can join"):
        node.start(tmp_path, port=0, join=True)
    start = functools.partial(node.start, tmp_path, port=0, heap="256m", lifetime_s=600, with_parent=True)
    try:
        first = start()
        with connect(first.url) as client:
            client.index(index="kept", id="1", document={"a": 1})
            both = start(node_count=2, join=True)
            assert client.cluster.health(wait_for_status="green", timeout="60s")["number_of_nodes"] == 2
        psutil.Process(both.nodes[0].pid).kill()
        again = start(join=True)
        assert [each.url for each in again.nodes] == [each.url for each in both.nodes]
        assert again.nodes[1] == both.nodes[1]
        with connect(again.nodes[1].url) as client:
            assert client.cluster.health()["number_of_nodes"] == 2
            assert client.get(index="kept", id="1")["_source"] == {"a": 1}
        for each in again.nodes:
            listening = {one.laddr.ip for one in psutil.Process(each.pid).net_connections("tcp")}
            assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
    finally:
        node.stop(tmp_path)


def test_a_stopped_cluster_restarts_with_more_nodes_not_fewer(tmp_path: Path) -> None:
    """New nodes join the first one. They must not form a cluster of their own while it starts."""
    start = functools.partial(node.start, tmp_path, port=0, heap="256m", lifetime_s=600, with_parent=True)
    try:
        with connect(start().url) as client:
            client.options(request_timeout=60).index(index="kept", id="1", document={"a": 1})
        node.stop(tmp_path)
        with connect(start(node_count=3).url) as client:
            assert client.get(index="kept", id="1")["_source"] == {"a": 1}
        node.stop(tmp_path)
        with pytest.raises(NodeError, match=r"has the data of 3 nodes.*--nodes 3"):
            start(node_count=2)
    finally:
        node.stop(tmp_path)


def test_a_node_identifies_as_elasticsearch(started: tuple[Path, Cluster]) -> None:
    _, cluster = started
    with connect(cluster.url) as client:
        info = client.info()
        assert info["version"]["number"] == cluster.version
        assert info["version"]["build_flavor"] == "default"
        assert info["tagline"] == "You Know, for Search"
        assert info["cluster_uuid"] == client.cluster.state(metric="metadata")["metadata"]["cluster_uuid"]
        assert client.ping()


def test_a_node_has_the_language_analyzers(started: tuple[Path, Cluster]) -> None:
    _, cluster = started
    with connect(cluster.url) as client:

        def terms(analyzer: str, text: str) -> list[str]:
            found = client.indices.analyze(analyzer=analyzer, text=text)["tokens"]
            return [each["token"] for each in found]

        assert terms("english", "The elections were voted on") == ["elect", "were", "vote"]
        assert terms("cjk", "\u4e2d\u6587\u65b0\u95fb") == ["\u4e2d\u6587", "\u6587\u65b0", "\u65b0\u95fb"]
        assert all(terms(name, "word") for name in LANGUAGES)
        properties = {name: {"type": "text", "analyzer": name} for name in LANGUAGES}
        client.indices.create(index="of-languages", mappings={"properties": properties})
        client.index(index="of-languages", document=dict.fromkeys(LANGUAGES, "elections"), refresh=True)
        found = client.search(index="of-languages", query={"match": {"english": "election"}})
        assert found["hits"]["total"]["value"] == 1


def test_other_users_and_sites_cannot_use_a_node(data: Path) -> None:
    url = running(data).url

    def status(method: str, path: str, **headers: str) -> int:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return requests.request(method, f"{url}/{path}", headers=given, timeout=60).status_code

    assert status("PUT", "news") == 200
    assert status("POST", "news/_close", origin="http://evil.example") == 403
    assert status("POST", "news/_close", sec_fetch_site="cross-site") == 403
    assert status("GET", "news/_search", host="evil.example:9200") == 403
    assert status("GET", "news/_search", host="localhost:9200") == 200
    assert status("POST", "news/_close") == 200
    assert (data / "node-0" / "data" / "nodes").parent.is_dir()
    for path in (data, *data.rglob("*")):
        # Permissions inside a private directory do not matter.
        if path.parent in (data.parent, data) and path.name != "control.lock":
            assert path.stat().st_mode & 0o077 == 0, path


def test_a_node_stops_after_its_lifetime_and_keeps_data(data: Path) -> None:
    cluster = running(data)
    with connect(cluster.url) as client:
        client.index(index="kept", id="1", document={"a": 1})
    assert node.stop(data)
    assert not cluster.is_running
    assert not node.stop(data)
    again = node.start(data, port=0, lifetime_s=8, with_parent=True)
    with connect(again.url) as client:
        assert client.get(index="kept", id="1")["_source"] == {"a": 1}
    await_end(lambda: again.is_running)
    # The node has already stopped by itself.
    assert not node.stop(data)


def test_a_node_stops_with_its_parent_process(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from esdedup import node\n"
        "cluster = node.start(Path(sys.argv[1]), port=0, lifetime_s=600, with_parent=True)\n"
        "print(cluster.nodes[0].pid, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    await_end(functools.partial(psutil.pid_exists, int(ended.stdout)))


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(NodeError, match="is in use"):
            node.start(tmp_path, port=taken.getsockname()[1])


def test_a_node_that_cannot_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="exited during start-up"):
        node.start(tmp_path, port=0, heap="1k")
    assert node.find(tmp_path) is None or not node.find(tmp_path).is_running  # type: ignore[union-attr]


@pytest.mark.parametrize("version", ["7.17", "nonsense", "9.0.1"])
def test_unsupported_versions_are_refused(version: str) -> None:
    with pytest.raises(SettingError, match="cannot embed"):
        full_version(version)

"""Starts, finds and stops an embedded Elasticsearch that runs in the background."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import filelock
import platformdirs
import psutil
import pydantic

from esdedup.errors import NodeError, SettingError
from esdedup.node import private, processes
from esdedup.node.distribution import DEFAULT_VERSION, Progress, full_version, install

DEFAULT_PORT = 9200
_HOST = "127.0.0.1"
_STATE_FILE = "cluster.json"
# Keeps the `Popen` objects alive, because the children outlive the calls that started them.
_started: list[subprocess.Popen[bytes]] = []


class RunningNode(processes.Background, frozen=True):
    """A process of a running cluster; it runs one Elasticsearch node."""

    name: str
    home: Path
    url: str
    # The port for the other nodes.
    transport_port: int = 0

    @property
    def process(self) -> psutil.Process | None:
        """The process, or None if it has exited."""
        return self.find(_arguments(self.home))

    @property
    def is_alive(self) -> bool:
        """Whether the process is still running."""
        return self.process is not None


class Cluster(pydantic.BaseModel, frozen=True):
    """An embedded Elasticsearch that was started."""

    version: str
    data: Path
    nodes: tuple[RunningNode, ...]
    # When the cluster stops by itself, in seconds since 1970.
    stops_at: float

    @property
    def url(self) -> str:
        """The address of the first running node, or of the first node if none is running."""
        return next((node.url for node in self.nodes if node.is_alive), self.nodes[0].url)

    @property
    def is_running(self) -> bool:
        """Whether any node is running."""
        return any(node.is_alive for node in self.nodes)


def default_data() -> Path:
    """Return the default directory for nodes' data."""
    return platformdirs.user_data_path("esdedup") / "node"


def find(data: Path) -> Cluster | None:
    """Return the cluster last started on `data`, which may have stopped; None if there is none."""
    data = data.resolve()
    try:
        found = Cluster.model_validate_json(private.read(data / _STATE_FILE))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise NodeError(f"cannot read {data / _STATE_FILE}: delete it if no node runs on {data}") from error
    # Do not trust the paths in the file, which might lead to another directory.
    nodes = tuple(
        node.model_copy(update={"home": data / _name_of(number)}) for number, node in enumerate(found.nodes)
    )
    return found.model_copy(update={"data": data, "nodes": nodes})


def start(
    data: Path,
    *,
    port: int = DEFAULT_PORT,
    node_count: int = 1,
    join: bool = False,
    version: str = DEFAULT_VERSION,
    heap: str = "512m",
    lifetime_s: float = 12 * 3600,
    with_parent: bool = False,
    timeout_s: float = 120,
    progress: Progress | None = None,
) -> Cluster:
    """Start Elasticsearch on the loopback interface and wait until it responds.

    Existing data is reused. The first node listens on `port`, further nodes on the following ports; 0 picks
    free ports. The cluster stops after `lifetime_s`, and with `with_parent` also when this process exits.
    With `join`, a running cluster is completed: nodes that have exited are started again, and nodes are added
    until there are `node_count`; `port` 0 gives these free ports.
    """
    version = full_version(version)
    if not re.fullmatch(r"[1-9]\d*[kmgKMG]", heap):
        raise SettingError(f"{heap!r} is not an amount of memory: use the form 512m or 2g")
    distribution = install(version, progress=progress)
    data = data.resolve()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NodeError(f"cannot create the directory {data}: {error.strerror}") from error
    with filelock.FileLock(data / "control.lock"):
        running = find(data)
        if running is not None and not running.is_running:
            running = None
        if running is not None and not join:
            raise NodeError(f"Elasticsearch {running.version} runs on {data} already, at {running.url}")
        if join and (running is None or running.version != version):
            raise NodeError(f"no node with version {version} runs on {data}, so no node can join it")
        before = running.nodes if running is not None else ()
        kept = sorted(int(each.parent.name.removeprefix("node-")) for each in data.glob("node-[0-9]/data"))
        if not before and kept and kept[-1] >= node_count:
            raise NodeError(
                f"{data} has the data of {kept[-1] + 1} nodes: start as many (--nodes {kept[-1] + 1})"
            )
        # Only these form a cluster, so that nodes added to a stopped cluster cannot form another one.
        founders = () if before else kept or range(node_count)
        ports = [urlsplit(node.url).port or 0 for node in before]
        ports += usable_ports(ports[-1] + 1 if before and port else port, node_count - len(before))
        # A node that has lost the master looks for others only at the ports that it knows.
        transport_ports = [node.transport_port for node in before]
        transport_ports += _free_ports(len(ports) - len(before))
        nodes = {number: node for number, node in enumerate(before) if node.is_alive}
        started: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for number in sorted(set(range(len(ports))) - set(nodes)):
                home = data / _name_of(number)
                _write_home(home, distribution, number, ports[number], transport_ports, founders)
                process = _spawn(home, distribution, number, heap, lifetime_s, with_parent)
                started[home.name] = process
                nodes[number] = RunningNode(
                    name=home.name,
                    home=home,
                    pid=process.pid,
                    started_at=processes.start_of(process.pid),
                    url=f"http://{_HOST}:{ports[number]}",
                    transport_port=transport_ports[number],
                )
            stops_at = max(time.time() + lifetime_s, running.stops_at if running is not None else 0)
            ordered = tuple(nodes[number] for number in sorted(nodes))
            cluster = Cluster(version=version, data=data, nodes=ordered, stops_at=stops_at)
            with private.open_anew(data / _STATE_FILE) as file:
                file.write(cluster.model_dump_json(indent=1).encode())
            _wait_until_ready(cluster, started, timeout_s)
        except BaseException:
            for process in started.values():
                process.kill()
                process.wait()
            raise
    return cluster


def stop(data: Path, *, timeout_s: float = 30) -> bool:
    """Stop the cluster on `data`, killing it after the timeout; return whether it was running."""
    cluster = find(data)
    if cluster is None:
        return False
    alive = [process for node in cluster.nodes if (process := node.process) is not None]
    if not processes.end(alive, timeout_s=timeout_s):
        raise NodeError(f"an Elasticsearch process on {data} did not stop")
    _started[:] = [process for process in _started if process.poll() is None]
    (cluster.data / _STATE_FILE).unlink(missing_ok=True)
    return bool(alive)


def _arguments(home: Path) -> list[str]:
    return ["-m", "esdedup.node.server", "--home", str(home)]


def _spawn(
    home: Path, distribution: Path, number: int, heap: str, lifetime_s: float, with_parent: bool
) -> subprocess.Popen[bytes]:
    command = [sys.executable, *_arguments(home), "--distribution", str(distribution)]
    command += ["--name", _name_of(number), "--heap", heap, "--lifetime-s", str(lifetime_s)]
    if with_parent:
        command += ["--parent", str(os.getpid())]
    with private.open_anew(home / "logs" / "node.log") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=not with_parent
        )
    _started.append(process)
    return process


def _wait_until_ready(
    cluster: Cluster, started: Mapping[str, subprocess.Popen[bytes]], timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    node_count = len(cluster.nodes)
    for node in cluster.nodes:
        address = f"{node.url}/_cluster/health?wait_for_nodes={node_count}&wait_for_status=yellow&timeout=5s"
        while True:
            log = cluster.data / node.name / "logs" / "node.log"
            if node.name in started and started[node.name].poll() is not None:
                raise NodeError(
                    f"Elasticsearch exited during start-up; the last lines of {log}:\n{_tail(log)}"
                )
            if time.monotonic() > deadline:
                raise NodeError(f"Elasticsearch did not respond within {timeout_s:.0f} s; see {log}")
            try:
                with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own http URL
                    if not json.load(answer)["timed_out"]:
                        break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)


def _tail(log: Path, count: int = 8) -> str:
    lines = log.read_text(errors="replace").splitlines()
    # Stack frames do not help users.
    useful = [line for line in lines if not line.lstrip().startswith(("at ", "File ", "...", "^"))]
    return "\n".join(useful[-count:])


def _name_of(number: int) -> str:
    return f"node-{number}"


def usable_ports(port: int, count: int) -> list[int]:
    """Return `port` and the following ports, which must be free, or any free ports for 0."""
    if port == 0 or count <= 0:
        return _free_ports(count)
    ports = list(range(port, port + count))
    if not 1 <= ports[0] <= ports[-1] <= 65535:
        raise SettingError(f"the ports of {count} nodes, starting at {port}, must be from 1 to 65535")
    for one in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, one))
            except OSError:
                raise NodeError(f"port {one} is in use by another program; choose another port") from None
    return ports


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((_HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def _write_home(
    home: Path,
    distribution: Path,
    number: int,
    http_port: int,
    transport_ports: Sequence[int],
    founders: Sequence[int],
) -> None:
    config = home / "config"
    for directory in (home, config, home / "plugins", home / "logs", home / "data"):
        private.make_directory(directory)
    shutil.rmtree(home / "modules", ignore_errors=True)
    shutil.copytree(distribution / "modules", home / "modules")
    settings: dict[str, Any] = {
        "cluster.name": "esdedup",
        "node.name": _name_of(number),
        "network.host": _HOST,
        "http.port": http_port,
        "transport.port": transport_ports[number],
        "discovery.seed_hosts": [f"{_HOST}:{port}" for port in transport_ports],
        "path.data": str(home / "data"),
        "path.logs": str(home / "logs"),
        # The directory that may contain snapshot repositories.
        "path.repo": str(home.parent / "snapshots"),
        # A demo must not become read-only because the user's disk is nearly full.
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }
    if number in founders:
        settings["cluster.initial_master_nodes"] = [_name_of(each) for each in founders]
    # JSON values are valid YAML.
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in settings.items()]
    (config / "elasticsearch.yml").write_text("".join(lines))
    (config / "log4j2.properties").write_text(
        "appender.console.type = Console\n"
        "appender.console.name = console\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n\n"
        "rootLogger.level = warn\n"
        "rootLogger.appenderRef.console.ref = console\n"
    )

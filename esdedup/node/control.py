"""Starts, finds and stops an embedded Elasticsearch that runs in the background."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import filelock
import platformdirs
import psutil
import pydantic

from esdedup.errors import NodeError, SettingError
from esdedup.node.distribution import DEFAULT_VERSION, Progress, full_version, install, no_progress
from esdedup.node.homes import HOST, http_ports, name_of, write_homes

DEFAULT_PORT = 9200
_STATE_FILE = "cluster.json"
# Two readings of the start time of one process differ by less than this.
_SAME_START_S = 0.1
# Kept until this process ends: the children outlive the calls that started them.
_started: list[subprocess.Popen[bytes]] = []


class RunningNode(pydantic.BaseModel, frozen=True):
    """One process of a running cluster."""

    name: str
    pid: int = pydantic.Field(gt=0)
    # When the process began, seconds since 1970: distinguishes it from a later one with the same pid.
    started_at: float
    url: str

    @property
    def is_alive(self) -> bool:
        """Whether this process, not a later one with the same pid, still runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started_at) < _SAME_START_S
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


class Cluster(pydantic.BaseModel, frozen=True):
    """An embedded Elasticsearch as it was started."""

    version: str
    data: Path
    nodes: tuple[RunningNode, ...]
    # When it stops by itself, seconds since 1970.
    stops_at: float

    @property
    def url(self) -> str:
        """The address of the first running node, else of the first one."""
        return next((node.url for node in self.nodes if node.is_alive), self.nodes[0].url)

    @property
    def is_running(self) -> bool:
        """Whether any of its processes is running."""
        return any(node.is_alive for node in self.nodes)


def default_data() -> Path:
    """Return the directory that nodes use by default."""
    return platformdirs.user_data_path("esdedup") / "node"


def find(data: Path) -> Cluster | None:
    """Return the cluster that was started on `data`, running or not; None if there was none."""
    try:
        return Cluster.model_validate_json((data / _STATE_FILE).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise NodeError(f"cannot read {data / _STATE_FILE}: delete it if no node runs on {data}") from error


def start(
    data: Path,
    *,
    port: int = DEFAULT_PORT,
    node_count: int = 1,
    version: str = DEFAULT_VERSION,
    heap: str = "512m",
    lifetime_s: float = 12 * 3600,
    with_parent: bool = False,
    timeout_s: float = 120,
    progress: Progress = no_progress,
) -> Cluster:
    """Start an Elasticsearch on the loopback interface and wait until it answers.

    Args:
        data: Its directory; created if missing. Data from an earlier start are used again.
        port: The port of the first node; the others take the next ones. 0 takes free ports.
        node_count: How many processes form the cluster.
        version: ``8.19``, ``9``, or a full version.
        heap: Memory of each node, as Java writes it.
        lifetime_s: How long after its start it stops by itself.
        with_parent: Stop when this process ends.
        timeout_s: How long to wait for an answer.
        progress: Called for each download.

    Raises:
        SettingError: A version, port or amount of memory is invalid.
        NodeError: It is already running, its port is taken, or it does not start.
    """
    version = full_version(version)
    if not re.fullmatch(r"[1-9]\d*[kmgKMG]", heap):
        raise SettingError(f"{heap!r} is not an amount of memory: write 512m or 2g")
    distribution = install(version, progress=progress)
    data = _made(data)
    with filelock.FileLock(data / "control.lock"):
        running = find(data)
        if running is not None and running.is_running:
            raise NodeError(f"Elasticsearch {running.version} runs on {data} already, at {running.url}")
        ports = http_ports(port, node_count)
        write_homes(data, distribution, ports)
        processes: list[subprocess.Popen[bytes]] = []
        nodes: list[RunningNode] = []
        try:
            for number, node_port in enumerate(ports):
                home = data / name_of(number)
                processes.append(_spawn(home, distribution, number, heap, lifetime_s, with_parent))
                nodes.append(_running(number, processes[-1], node_port))
            cluster = Cluster(
                version=version, data=data, nodes=tuple(nodes), stops_at=time.time() + lifetime_s
            )
            (data / _STATE_FILE).write_text(cluster.model_dump_json(indent=1))
            _wait_until_ready(cluster, processes, timeout_s)
        except BaseException:
            for process in processes:
                process.kill()
                process.wait()
            raise
    return cluster


def stop(data: Path, *, timeout_s: float = 30) -> bool:
    """Stop the cluster on `data`; return whether one ran.

    Each process is terminated, and killed if it has not ended in time.
    """
    cluster = find(data)
    if cluster is None:
        return False
    alive = [node for node in cluster.nodes if node.is_alive]
    processes = []
    for node in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(node.pid)
            process.terminate()
            processes.append(process)
    _, late = psutil.wait_procs(processes, timeout=timeout_s)
    for process in late:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(late, timeout=timeout_s)
    _started[:] = [process for process in _started if process.poll() is None]
    (cluster.data / _STATE_FILE).unlink(missing_ok=True)
    return bool(alive)


def _made(data: Path) -> Path:
    """Make a directory if it is missing; return its absolute path."""
    data = data.resolve()
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NodeError(f"cannot make the directory {data}: {error.strerror}") from error
    return data


def _running(number: int, process: subprocess.Popen[bytes], port: int) -> RunningNode:
    return RunningNode(
        name=name_of(number),
        pid=process.pid,
        started_at=psutil.Process(process.pid).create_time(),
        url=f"http://{HOST}:{port}",
    )


def _spawn(
    home: Path, distribution: Path, number: int, heap: str, lifetime_s: float, with_parent: bool
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "esdedup.node.server", "--distribution", str(distribution)]
    command += [
        "--home",
        str(home),
        "--name",
        name_of(number),
        "--heap",
        heap,
        "--lifetime-s",
        str(lifetime_s),
    ]
    if with_parent:
        command += ["--parent", str(os.getpid())]
    with (home / "logs" / "node.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=not with_parent
        )
    _started.append(process)
    return process


def _wait_until_ready(
    cluster: Cluster, processes: Sequence[subprocess.Popen[bytes]], timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    node_count = len(cluster.nodes)
    for number, node in enumerate(cluster.nodes):
        address = f"{node.url}/_cluster/health?wait_for_nodes={node_count}&wait_for_status=yellow&timeout=5s"
        while True:
            log = cluster.data / node.name / "logs" / "node.log"
            if processes[number].poll() is not None:
                raise NodeError(
                    f"Elasticsearch ended while it started; the last lines of {log}:\n{_tail(log)}"
                )
            if time.monotonic() > deadline:
                raise NodeError(f"Elasticsearch did not answer within {timeout_s:.0f} s; see {log}")
            try:
                with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own http URL
                    if not json.load(answer)["timed_out"]:
                        break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)


def _tail(log: Path, count: int = 8) -> str:
    lines = log.read_text(errors="replace").splitlines()
    # Stack frames do not help the person who started the node.
    useful = [line for line in lines if not line.lstrip().startswith(("at ", "File ", "...", "^"))]
    return "\n".join(useful[-count:])

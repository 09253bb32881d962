"""`Stage`: Elasticsearch and two sidecars, which tests can kill and pause."""

import contextlib
import dataclasses
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from elasticsearch import Elasticsearch

from esdedup import node
from esdedup.node.distribution import DEFAULT_VERSION
from tests.support.sidecar_process import SidecarProcess, until

# A disruption may affect responses until this many seconds after its end.
_AFTER_S = 15.0
# The longest wait, on a busy machine, for operations that normally take a few seconds.
_PATIENCE_S = 240.0
# These ports are below those of outgoing connections, which could otherwise take the port of a server that is
# down.
_PORTS = range(15_000, 32_000)
# An owner that is paused for this many times the lease's duration loses the forest.
_LEASES = 2.0


def free_port() -> int:
    """Return a free port on which a server can be started and restarted."""
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", random.choice(_PORTS))) as found,
        ):
            port: int = found.getsockname()[1]
            return port


@dataclasses.dataclass(frozen=True)
class Disruption:
    """A disruption, and the time from its start until both sidecars responded again."""

    what: str
    from_s: float
    until_s: float

    def explains(self, at_s: float) -> bool:
        """Return whether articles may have been refused at `at_s` because of the disruption."""
        return self.from_s <= at_s <= self.until_s + _AFTER_S

    def concerns(self, from_s: float, until_s: float) -> bool:
        """Return whether the disruption may have delayed requests between two times."""
        return from_s <= self.until_s + _AFTER_S and self.from_s <= until_s


@dataclasses.dataclass(frozen=True)
class Server:
    """An Elasticsearch of one or more nodes, which can be killed."""

    data: Path
    # The port of the first node; further nodes have the following ports.
    port: int
    version: str = DEFAULT_VERSION
    node_count: int = 1
    heap: str = "512m"

    @property
    def url(self) -> str:
        return ",".join(f"http://127.0.0.1:{self.port + number}" for number in range(self.node_count))

    def start(self) -> None:
        """Start the server, or only its nodes that have exited."""
        found = node.find(self.data)
        node.start(
            self.data,
            port=self.port,
            node_count=self.node_count,
            join=found is not None and found.is_running,
            version=self.version,
            heap=self.heap,
            lifetime_s=4 * 3600,
            with_parent=True,
            timeout_s=_PATIENCE_S,
        )

    def kill(self, number: int = 0) -> None:
        """Kill a node."""
        found = node.find(self.data)
        assert found is not None
        process = psutil.Process(found.nodes[number].pid)
        process.kill()
        process.wait(_PATIENCE_S)

    def stop(self) -> None:
        node.stop(self.data)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the server, and stop it at the end."""
        self.start()
        try:
            yield
        finally:
            self.stop()


class Stage:
    """Two sidecars of one forest, each at a fixed address."""

    def __init__(
        self,
        url: str,
        *,
        index: str,
        forest: str,
        lease_ttl_s: float,
        server: Server | None,
        away_s: float = 10.0,
        options: Sequence[str] = (),
    ) -> None:
        """Start the sidecars.

        Args:
            url: The address of Elasticsearch.
            index: The index of the articles.
            forest: The name of the forest.
            lease_ttl_s: The duration of the forest's lease.
            server: The server at `url`, needed only to restart it.
            away_s: How long a node of a cluster stays away after it was killed.
            options: Further options of the sidecars.
        """
        self._url, self._server, self._ttl_s = url, server, lease_ttl_s
        self._forest, self._away_s = forest, away_s
        names = ("--forest", forest, "--index", index)
        self._options = (*names, "--lease-ttl-s", str(lease_ttl_s), "--shutdown-timeout-s", "10", *options)
        self.disruptions: list[Disruption] = []
        # All sidecars started so far.
        self.sidecars: list[SidecarProcess] = []
        self.addresses = [f"http://127.0.0.1:{port}" for port in (free_port(), free_port())]
        self._living = {address: self._start(address) for address in self.addresses}
        self._await_both()

    @property
    def living(self) -> list[SidecarProcess]:
        return list(self._living.values())

    def kill_owner(self) -> None:
        """Kill the owner; once the standby owns the forest, start a new standby."""
        with self._disrupting("the owner was killed"):
            address, owner = next(each for each in self._living.items() if each[1].owns())
            owner.process.kill()
            owner.end()
            (other,) = (each for each in self.living if each is not owner)
            until(other.owns, _PATIENCE_S, other)
            self._living[address] = self._start(address)
            self._await_both()

    def pause_standby(self) -> None:
        """Pause the standby for a while, which does not affect the owner."""
        with self._disrupting("the standby was paused and resumed"):
            self._pause(next(each for each in self.living if not each.owns()))

    def pause_owner(self) -> None:
        """Pause the owner for longer than its lease, so that it loses the forest."""
        with self._disrupting("the owner was paused and resumed"):
            self._pause(next(each for each in self.living if each.owns()))

    def restart_elasticsearch(self) -> None:
        with self._disrupting("Elasticsearch was killed and restarted"):
            assert self._server is not None
            self._server.kill()
            time.sleep(2.0)
            self._server.start()
            self._await_both()

    def kill_primary(self) -> None:
        """Kill the node with the primary of the forest's first shard; see `_kill_node`."""
        with self._cluster() as es:
            copies: Any = es.cat.shards(index=self._forest, format="json").body
        self._kill_node(
            next(each["node"] for each in copies if each["prirep"] == "p"), "the forest's primary"
        )

    def kill_master(self) -> None:
        """Kill the cluster's master; see `_kill_node`."""
        with self._cluster() as es:
            masters: Any = es.cat.master(format="json").body
        self._kill_node(masters[0]["node"], "the master")

    def _kill_node(self, name: str, what: str) -> None:
        """Kill a node, let the others carry on, then start it and wait until all shards have replicas."""
        assert self._server is not None
        with self._disrupting(f"{name}, {what}, was killed"):
            self._server.kill(int(name.removeprefix("node-")))
            self._await_both()
        time.sleep(self._away_s)
        self._server.start()
        with self._cluster() as es:
            health = es.options(request_timeout=2 * _PATIENCE_S).cluster.health(
                wait_for_status="green", wait_for_no_relocating_shards=True, timeout=f"{_PATIENCE_S:.0f}s"
            )
        assert not health["timed_out"]

    def _cluster(self) -> Elasticsearch:
        return Elasticsearch(self._url.split(","), request_timeout=_PATIENCE_S, retry_on_timeout=True)

    def close(self) -> list[str]:
        """Stop the sidecars; return any faults."""
        faults = []
        for each in self.living:
            try:
                each.end()
            except subprocess.TimeoutExpired:
                faults.append("a sidecar did not exit after SIGTERM, and was killed")
            if each.process.returncode != 0:
                faults.append(f"a sidecar exited with {each.process.returncode}: {each.log[-500:]}")
        return faults

    def _pause(self, sidecar: SidecarProcess) -> None:
        sidecar.process.send_signal(signal.SIGSTOP)
        time.sleep(_LEASES * self._ttl_s)
        sidecar.process.send_signal(signal.SIGCONT)
        self._await_both()

    def _start(self, address: str) -> SidecarProcess:
        self.sidecars.append(SidecarProcess(self._url, *self._options, "--port", address.rpartition(":")[2]))
        return self.sidecars[-1]

    def _await_both(self) -> None:
        """Wait until one sidecar owns the forest and both respond."""
        until(lambda: any(each.owns() for each in self.living), _PATIENCE_S, *self.living)
        for each in self.living:
            until(each.is_alive, _PATIENCE_S, each)

    @contextlib.contextmanager
    def _disrupting(self, what: str) -> Iterator[None]:
        from_s = time.monotonic()
        yield
        self.disruptions.append(Disruption(what, from_s, time.monotonic()))

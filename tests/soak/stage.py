"""`Stage`: Elasticsearch and two sidecars, which tests can kill and pause."""

import contextlib
import dataclasses
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

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
    """An Elasticsearch that can be killed."""

    data: Path
    port: int
    version: str = DEFAULT_VERSION

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        found = node.find(self.data)
        assert found is not None
        return found.nodes[0].pid

    def start(self) -> None:
        node.start(
            self.data,
            port=self.port,
            version=self.version,
            lifetime_s=4 * 3600,
            with_parent=True,
            timeout_s=_PATIENCE_S,
        )

    def kill(self) -> None:
        process = psutil.Process(self.pid)
        process.kill()
        process.wait(_PATIENCE_S)

    def stop(self) -> None:
        node.stop(self.data)


class Stage:
    """Two sidecars of one forest, each at a fixed address."""

    def __init__(
        self, url: str, *, index: str, forest: str, lease_ttl_s: float, server: Server | None
    ) -> None:
        """Start the sidecars.

        Args:
            url: The address of Elasticsearch.
            index: The index of the articles.
            forest: The name of the forest.
            lease_ttl_s: The duration of the forest's lease.
            server: The server at `url`, needed only to restart it.
        """
        self._url, self._server, self._ttl_s = url, server, lease_ttl_s
        names = ("--forest", forest, "--index", index)
        self._options = (*names, "--lease-ttl-s", str(lease_ttl_s), "--shutdown-timeout-s", "10")
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

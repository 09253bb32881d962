"""The lease document of a forest: which process has claimed it, and whether that claim is over."""

import contextlib
import dataclasses
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from esdedup.errors import ForestOwner
from esdedup.origins import is_loopback

# Tokens of this process's claims that failed half-way: an unreachable server may still show them as held.
_abandoned: set[str] = set()
# By the token of each claim that this process has met: its version, and since when it has had that one, by
# `time.monotonic`. A process that tries again and again for a moment thus waits as one that waits for long.
_met: dict[str, tuple[dict[str, int], float]] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A process's claim to a forest; its fields are those of the lease document."""

    token: str
    host: str
    pid: int
    # `since_s` and `renewed_s` are seconds since 1970 by the owner's clock.
    since_s: float
    renewed_s: float
    ttl_s: float
    epoch: int
    released: bool

    # Distinguishes machines, and containers of one machine, that share a host name; empty if unknown.
    machine: str = ""
    # Where the process takes articles for others; empty if it takes none.
    address: str = ""

    @classmethod
    def of_this_process(
        cls, *, token: str, since_s: float, ttl_s: float, epoch: int, released: bool, address: str = ""
    ) -> "Claim":
        """Return a claim of this process, renewed now."""
        return cls(
            token=token,
            host=socket.gethostname(),
            pid=os.getpid(),
            since_s=since_s,
            renewed_s=time.time(),
            ttl_s=ttl_s,
            epoch=epoch,
            released=released,
            machine=_machine(),
            address=address,
        )

    @property
    def is_over(self) -> bool:
        """Whether it was released, has run out, or was made by a process of this machine that has ended."""
        if self.released or self.token in _abandoned or time.time() > self.renewed_s + self.ttl_s:
            return True
        return self._is_of_this_machine and not _process_exists(self.pid)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process made it, with another object."""
        return self._is_of_this_machine and self.pid == os.getpid()

    @property
    def _is_of_this_machine(self) -> bool:
        return (self.host, self.machine) == (socket.gethostname(), _machine())

    @property
    def owner(self) -> ForestOwner:
        """The process that made it."""
        since = datetime.fromtimestamp(self.since_s, UTC)
        return ForestOwner(host=self.host, pid=self.pid, since=since, released=self.released, url=self._url)

    @property
    def _url(self) -> str | None:
        """The address, if this machine reaches that process there."""
        try:
            host = urlsplit(self.address).hostname
        except ValueError:
            return None
        if not host or (is_loopback(host) and not self._is_of_this_machine):
            return None
        return self.address


def abandon(token: str) -> None:
    """Treat this process's claim with this token as over, whatever the lease document says."""
    _abandoned.add(token)


def silent_s(token: str, version: dict[str, int]) -> float:
    """Return for how many seconds this process has seen that a claim was not renewed.

    Args:
        token: The claim's.
        version: Of the document now; each renewal changes it.
    """
    now_s = time.monotonic()
    met = _met.get(token)
    if met is None or met[0] != version:
        met = _met[token] = version, now_s
    return now_s - met[1]


def _machine() -> str:
    """Identify this machine's current run, and the container in which process ids are counted."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return ""


def _process_exists(pid: int) -> bool:
    if os.name != "posix":  # os.kill would end the process there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # A zombie still answers kill(0).
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    return True

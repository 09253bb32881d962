"""One writer at a time: the lease on a forest.

The lease is a document in the forest's index, changed by compare-and-set only. Its epoch grows with
every owner. Clocks decide who has to wait for whom; what keeps a stale owner's writes out is the fence
(`fence.py`), which knows no clock.
"""

import contextlib
import dataclasses
import os
import secrets
import socket
import threading
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import elastic_transport
from elasticsearch import ApiError, ConflictError, Elasticsearch, NotFoundError

from esdedup.elastic.errors import translated
from esdedup.elastic.forest.fence import Fence
from esdedup.errors import EsdedupError, ForestBusy, ForestLost, ForestOwner, ServerUnavailable

LEASE_ID = "~lease"
_POLL_S = 0.5
# A renewal that took long may have to be followed by another at once.
_RENEWALS = 3
# Claims of this process that went wrong, and that the server may not know to be over.
_abandoned: set[str] = set()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """What the lease document says: which process took the forest, and until when its claim holds."""

    token: str
    host: str
    pid: int
    since_s: float
    renewed_s: float
    ttl_s: float
    epoch: int
    released: bool

    # Distinguishes machines, and containers of one machine, that share a host name; empty if unknown.
    machine: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it was released or has run out, or its process was on this machine and has ended."""
        if self.released or self.token in _abandoned or time.time() > self.renewed_s + self.ttl_s:
            return True
        is_here = (self.host, self.machine) == (socket.gethostname(), _machine())
        return is_here and not _process_exists(self.pid)

    @property
    def owner(self) -> ForestOwner:
        """The process that made it."""
        since = datetime.fromtimestamp(self.since_s, UTC)
        return ForestOwner(host=self.host, pid=self.pid, since=since, released=self.released)


class Lease:
    """This process's claim to a forest."""

    def __init__(self, client: Elasticsearch, *, forest: str, ttl_s: float = 30.0) -> None:
        """Prepare a claim; `acquire` makes it.

        Args:
            client: Stays the caller's.
            forest: Name of the forest's index, which must exist.
            ttl_s: How long the claim holds without a renewal.
        """
        self._client = client
        # A renewal that a hanging server holds up must reach another one in time.
        self._hasty = client.options(request_timeout=max(1.0, ttl_s / 3))
        self._fence = Fence(client, forest=forest)
        self._forest = forest
        self._ttl_s = ttl_s
        self._token = secrets.token_hex(8)
        self._version: dict[str, int] = {}
        self._since_s = 0.0
        self._renewed_at = 0.0
        self.epoch = 0
        # Whether the alias lets in this owner.
        self._is_fenced = False
        # Whether whoever writes has been told that the forest is another's.
        self.is_lost = False
        # The heart beats in a thread of its own, while whoever feeds the forest may sleep.
        self._writing = threading.Lock()
        self._stopped = threading.Event()

    @property
    def alias(self) -> str:
        """The alias to write nodes through, with ``require_alias``."""
        return self._fence.alias(self.epoch)

    def acquire(self, *, wait_s: float = 0.0) -> bool:
        """Take the lease, and wait until no write of an owner before can succeed any more.

        Args:
            wait_s: How long to wait for another owner to end.

        Returns:
            Whether that is certain; false if the server does not tell what is under way.

        Raises:
            ForestBusy: Another process owns the forest, and still did after the wait.
            ForestLost: Another process took it while this one was taking it.
            ServerError: Elasticsearch does not answer, or refuses; the claim is given up.
        """
        deadline = time.monotonic() + wait_s
        watched: dict[str, int] | None = None
        watched_since = 0.0
        with translated(f"take the lease on the forest {self._forest!r}"):
            while True:
                before, version = self._read()
                if version != watched:
                    watched, watched_since = version, time.monotonic()
                # Its clock may be far ahead of ours; a lease that nobody renews is over all the same.
                is_silent = before is not None and time.monotonic() > watched_since + before.ttl_s
                if before is None or before.is_over or is_silent:
                    if (is_drained := self._take(before, version)) is not None:
                        return is_drained
                elif time.monotonic() >= deadline:
                    raise ForestBusy(
                        f"the forest {self._forest!r} is in use: {before.owner}. "
                        "Wait until it is released, or name another forest.",
                        forest=self._forest,
                        owner=before.owner,
                    )
                else:
                    time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))

    def renew(self) -> None:
        """Renew the lease when a third of its time is over; at least a third of it is left afterwards.

        Raises:
            ForestLost: Another process has taken it.
            ServerUnavailable: The server is too slow to renew it in time.
        """
        if not self._renew():
            raise self.lost()

    def release(self) -> None:
        """Give the lease back; nothing happens if another process has taken it."""
        self._stopped.set()
        with self._writing, translated(f"release the forest {self._forest!r}"):
            if not self.is_lost:
                self._write(self._client, self._version, released=True)

    def abandon(self) -> None:
        """Let go of the lease without a word: its index is about to be deleted."""
        with self._writing:
            self._stopped.set()

    def lost(self) -> ForestLost:
        """Take note that the forest is another's; return the error that says whose."""
        self.is_lost = True
        owner: ForestOwner | None = None
        with contextlib.suppress(ApiError, elastic_transport.TransportError):
            found, _ = self._read()
            owner = None if found is None else found.owner
        now = owner or "its present owner is not known"
        return ForestLost(
            f"this process has lost the forest {self._forest!r} to another: {now}",
            forest=self._forest,
            owner=owner,
        )

    def _renew(self) -> bool:
        """Renew the lease if that is due; return whether it is still ours."""
        with self._writing, translated(f"renew the lease on the forest {self._forest!r}"):
            if self._stopped.is_set():
                # Given back while the heart was about to beat: it must not take it again.
                return True
            if self.is_lost:
                return False
            for _ in range(_RENEWALS):
                if self._age_s() < self._ttl_s / 3:
                    return True
                if not self._write(self._hasty, self._version, released=False):
                    return False
            if self._age_s() > self._ttl_s * 2 / 3:
                raise ServerUnavailable(
                    f"cannot renew the lease on the forest {self._forest!r}: the server took "
                    f"{self._age_s():.1f} s, and the lease holds for {self._ttl_s:g} s"
                )
            return True

    def _age_s(self) -> float:
        return time.monotonic() - self._renewed_at

    def _take(self, before: Claim | None, version: dict[str, int]) -> bool | None:
        """Write the lease, and keep out whoever was the owner; None if somebody else was faster."""
        self._is_fenced = False
        self.epoch = 1 + max([before.epoch if before else 0, *self._fence.epochs()])
        self._since_s = time.time()
        try:
            if not self._write(self._client, version, released=False):
                return None
            self._start_heart()
            self._move_alias()
            return self._fence.drain()
        except BaseException:
            # Whoever comes next may have it at once: if the server cannot be told, then this process.
            _abandoned.add(self._token)
            with contextlib.suppress(EsdedupError):
                self.release()
            raise

    def _move_alias(self) -> None:
        if not self._fence.move(self.epoch):
            raise self.lost()
        self._is_fenced = True

    def _start_heart(self) -> None:
        # The thread must not keep a lease alive that nobody holds any more. It looks more often than
        # it renews, since others renew too.
        arguments = (weakref.ref(self), self._stopped, self._ttl_s / 9)
        threading.Thread(target=_beat, args=arguments, name="esdedup-lease", daemon=True).start()

    def _read(self) -> tuple[Claim | None, dict[str, int]]:
        try:
            answer = self._client.get(index=self._forest, id=LEASE_ID)
        except NotFoundError:
            return None, {}
        version = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
        return Claim(**answer["_source"]["lease"]), version

    def _write(self, client: Elasticsearch, version: dict[str, int], *, released: bool) -> bool:
        """Write the lease if it still has that version; return whether it is ours now."""
        started_at = time.monotonic()
        claim = Claim(
            token=self._token,
            host=socket.gethostname(),
            pid=os.getpid(),
            since_s=self._since_s,
            renewed_s=time.time(),
            ttl_s=self._ttl_s,
            epoch=self.epoch,
            released=released,
            machine=_machine(),
        )
        document = {"lease": dataclasses.asdict(claim)}
        condition: dict[str, Any] = dict(version) if version else {"op_type": "create"}
        # Through the alias as soon as there is one: an index that has been deleted must not come back so.
        where = {"index": self.alias, "require_alias": True} if self._is_fenced else {"index": self._forest}
        try:
            answer = client.index(**where, id=LEASE_ID, document=document, **condition)
            self._version = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
        except ConflictError:
            # A request whose answer was lost is sent again, and then meets what it wrote itself.
            found, found_version = self._read()
            if found is None or (found.token, found.epoch) != (self._token, self.epoch):
                return False
            if found.released != released:
                return self._write(client, found_version, released=released)
            self._version = found_version
        except NotFoundError:
            return False
        # Counted from before the request: the lease must never seem longer here than it is there.
        self._renewed_at = started_at
        return True


def _beat(held: "weakref.ref[Lease]", stopped: threading.Event, interval_s: float) -> None:
    """Renew a lease again and again, until it is given back, lost, or forgotten."""
    while not stopped.wait(interval_s):
        lease = held()
        if lease is None:
            return
        # Whoever writes next meets the error, and is told of the loss: nobody goes on unawares. A
        # server that does not answer now may do so in time.
        with contextlib.suppress(EsdedupError):
            if not lease._renew():
                return
        del lease


def _machine() -> str:
    """Return what tells this machine's processes from those of every other one and of its containers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return ""


def _process_exists(pid: int) -> bool:
    if os.name != "posix":  # there, asking would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # One that has ended counts as a process until whoever started it takes note.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    return True

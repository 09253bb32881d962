"""One writer at a time: the lease on a forest.

The lease is a document in the forest's index, changed by compare-and-set only. Its epoch grows with
every owner. The owner writes nodes through an alias that carries the epoch; whoever takes over moves
the alias on, so that a stale owner's writes are refused.
"""

import contextlib
import dataclasses
import os
import secrets
import socket
import threading
import time
import weakref
from typing import Any

from elasticsearch import ConflictError, Elasticsearch, NotFoundError

from esdedup.elastic.errors import translated
from esdedup.errors import EsdedupError, ForestBusy, ForestLost

LEASE_ID = "~lease"
_POLL_S = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Owner:
    """Who holds a lease, as the lease document says."""

    token: str
    host: str
    pid: int
    since_s: float
    renewed_s: float
    ttl_s: float
    epoch: int
    released: bool

    @property
    def is_gone(self) -> bool:
        """Whether the owner gave it back, let it run out, or was a process of this machine that ended."""
        if self.released or time.time() > self.renewed_s + self.ttl_s:
            return True
        return self.host == socket.gethostname() and not _process_exists(self.pid)

    def describe(self) -> str:
        """Say who it is, and since when."""
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since_s))
        return f"process {self.pid} on {self.host} owns it since {since}"


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
        self._forest = forest
        self._ttl_s = ttl_s
        self._token = secrets.token_hex(8)
        self._version: dict[str, int] = {}
        self._since_s = 0.0
        self._renewed_at = 0.0
        self.epoch = 0
        self.is_lost = False
        # The heart beats in a thread of its own, while whoever feeds the forest may sleep.
        self._writing = threading.Lock()
        self._stopped = threading.Event()

    @property
    def alias(self) -> str:
        """The alias to write nodes through, with ``require_alias``."""
        return f"{self._forest}-w-{self.epoch}"

    def acquire(self, *, wait_s: float = 0.0) -> bool:
        """Take the lease, and move the alias.

        Args:
            wait_s: How long to wait for another owner to end.

        Returns:
            Whether the owner before gave it back, so that no write of its can still be under way.

        Raises:
            ForestBusy: Another process owns the forest, and still did after the wait.
        """
        deadline = time.monotonic() + wait_s
        with translated(f"take the lease on the forest {self._forest!r}"):
            before, version = self._read()
            while True:
                if before is None or before.is_gone:
                    self.epoch = 1 if before is None else before.epoch + 1
                    self._since_s = time.time()
                    if self._write(version, released=False):
                        self._move_alias()
                        self._start_heart()
                        return before is None or before.released
                elif time.monotonic() >= deadline:
                    raise ForestBusy(
                        f"the forest {self._forest!r} is in use: {before.describe()}. "
                        "Wait for it (--wait), or name another forest (--forest)."
                    )
                time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))
                before, version = self._read()

    def renew(self) -> None:
        """Renew the lease when a third of its time is over.

        Raises:
            ForestLost: Another process has taken it.
        """
        with self._writing, translated(f"renew the lease on the forest {self._forest!r}"):
            if self._stopped.is_set():
                # Given back while the heart was about to beat: it must not take it again.
                return
            if self.is_lost:
                raise self.lost()
            is_due = time.monotonic() - self._renewed_at >= self._ttl_s / 3
            if is_due and not self._write(self._version, released=False):
                raise self.lost()

    def release(self) -> None:
        """Give the lease back; nothing happens if another process has taken it."""
        self._stopped.set()
        with self._writing, translated(f"release the forest {self._forest!r}"):
            self._write(self._version, released=True)

    def abandon(self) -> None:
        """Let go of the lease without a word: its index is about to be deleted."""
        with self._writing:
            self._stopped.set()

    def lost(self) -> ForestLost:
        """Take note that the forest is another's; return the error that says whose."""
        self.is_lost = True
        owner, _ = self._read()
        now = owner.describe() if owner else "nobody owns it now"
        return ForestLost(f"this process has lost the forest {self._forest!r} to another: {now}")

    def _start_heart(self) -> None:
        # The thread must not keep a lease alive that nobody holds any more.
        arguments = (weakref.ref(self), self._stopped, self._ttl_s / 3)
        threading.Thread(target=_beat, args=arguments, name="esdedup-lease", daemon=True).start()

    def _read(self) -> tuple[Owner | None, dict[str, int]]:
        try:
            answer = self._client.get(index=self._forest, id=LEASE_ID)
        except NotFoundError:
            return None, {}
        version = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
        return Owner(**answer["_source"]["lease"]), version

    def _write(self, version: dict[str, int], *, released: bool) -> bool:
        """Write the lease if it still has that version; return whether it is ours now."""
        started_at = time.monotonic()
        owner = Owner(
            token=self._token,
            host=socket.gethostname(),
            pid=os.getpid(),
            since_s=self._since_s,
            renewed_s=time.time(),
            ttl_s=self._ttl_s,
            epoch=self.epoch,
            released=released,
        )
        document = {"lease": dataclasses.asdict(owner)}
        condition: dict[str, Any] = dict(version) if version else {"op_type": "create"}
        try:
            answer = self._client.index(index=self._forest, id=LEASE_ID, document=document, **condition)
            self._version = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
        except ConflictError:
            # A request whose answer was lost is sent again, and then meets what it wrote itself.
            found, self._version = self._read()
            if found is None or (found.token, found.epoch) != (self._token, self.epoch):
                return False
        # Counted from before the request: the lease must never seem longer here than it is there.
        self._renewed_at = started_at
        return True

    def _move_alias(self) -> None:
        stale = self._client.indices.get_alias(index=self._forest)[self._forest]["aliases"]
        actions: list[dict[str, Any]] = [
            {"remove": {"index": self._forest, "alias": alias}}
            for alias in stale
            if alias.startswith(f"{self._forest}-w-")
        ]
        actions.append({"add": {"index": self._forest, "alias": self.alias, "is_write_index": True}})
        self._client.indices.update_aliases(actions=actions)


def _beat(held: "weakref.ref[Lease]", stopped: threading.Event, interval_s: float) -> None:
    """Renew a lease again and again, until it is given back, lost, or forgotten."""
    while not stopped.wait(interval_s):
        lease = held()
        if lease is None or lease.is_lost:
            return
        # A server that does not answer now may do so in time; whoever writes next meets the error.
        with contextlib.suppress(EsdedupError):
            lease.renew()
        del lease


def _process_exists(pid: int) -> bool:
    if os.name != "posix":  # there, asking would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True

"""The lease on a forest, so that one process at a time writes to it.

The lease is a document in the forest's index, changed only by compare-and-set. Its epoch grows with
every owner. Clocks decide only how long a process waits for another; the fence (`fence.py`), which uses no
clock, keeps out the writes of a stale owner.
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
from urllib.parse import urlsplit

import elastic_transport
from elasticsearch import ApiError, ConflictError, Elasticsearch, NotFoundError

from esdedup.elastic.client import is_inherited, refuse_inherited
from esdedup.elastic.errors import translated
from esdedup.elastic.forest.documents import unchanged
from esdedup.elastic.forest.fence import Fence
from esdedup.elastic.forest.meta import noticing_deletion
from esdedup.errors import EsdedupError, ForestBusy, ForestLost, ForestMissing, ForestOwner, ServerUnavailable
from esdedup.origins import is_loopback

# Tokens of this process's claims that failed half-way: an unreachable server may still show them as held.
_abandoned: set[str] = set()
# By the token of each claim that this process has met: its version, and since when it has had that one, by
# `time.monotonic`. A process that tries again and again for a moment thus waits as one that waits for long.
# So many are kept; after that, each is waited for anew.
_MOST_MET = 1_000
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

    @property
    def is_over(self) -> bool:
        """Whether it was released, has run out, or was made by a process of this machine that has ended."""
        if self.released or self.token in _abandoned or time.time() > self.renewed_s + self.ttl_s:
            return True
        return self.is_of_this_machine and not _process_exists(self.pid)

    @property
    def is_of_this_machine(self) -> bool:
        """Whether a process of this machine, and of this container, made it."""
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
        if not host or (is_loopback(host) and not self.is_of_this_machine):
            return None
        return self.address


def _silent_s(token: str, version: dict[str, int]) -> float:
    """Return for how many seconds this process has seen a claim's document in one version: not renewed."""
    now_s = time.monotonic()
    met = _met.get(token)
    if met is None or met[0] != version:
        if len(_met) >= _MOST_MET:
            _met.clear()
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


LEASE_ID = "~lease"
DEFAULT_TTL_S = 30.0
_POLL_S = 0.5
# A renewal that took long may have to be followed by another at once.
_RENEWALS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeaseTerms:
    """How a process takes and holds a forest."""

    # How long to wait for another owner to end.
    wait_s: float = 0.0
    # How long the lease holds without a renewal.
    ttl_s: float = DEFAULT_TTL_S
    # Where this process takes articles for others; None if it takes none.
    address: str | None = None


DEFAULT_TERMS = LeaseTerms()


class Lease:
    """This process's claim to a forest."""

    def __init__(self, client: Elasticsearch, *, forest: str, terms: LeaseTerms = DEFAULT_TERMS) -> None:
        """Describe a claim to a forest that exists; `acquire` makes it."""
        self._client = client
        # If one server hangs, a renewal must time out early enough to reach another.
        self._hasty = client.options(request_timeout=max(1.0, terms.ttl_s / 3))
        self._fence = Fence(client, forest=forest)
        self._forest = forest
        self._terms = terms
        self._token = secrets.token_hex(8)
        self._version: dict[str, int] = {}
        self._since_s = 0.0
        self._renewed_at = 0.0
        self.epoch = 0
        # Whether the fence's alias admits this owner.
        self._is_fenced = False
        # Whether `lost` has been called: the forest is another process's, or deleted, and a caller was told.
        self.is_lost = False
        # Held during renewals: a thread renews the lease while the caller is busy elsewhere.
        self._writing = threading.Lock()
        self._stopped = threading.Event()
        # An exception from a signal handler may lose the holder before anybody can release the lease.
        self._dropped = weakref.finalize(self, _abandon_dropped, self._token, os.getpid())
        self._dropped.atexit = False

    @property
    def alias(self) -> str:
        """The alias to write nodes through, with ``require_alias``."""
        return self._fence.alias(self.epoch)

    def acquire(self) -> bool:
        """Take the lease, and wait until no write of a previous owner can succeed any more.

        Returns whether that is certain; False if the client may not list running writes.

        Raises:
            ForestBusy: Another process owns the forest, and still did after waiting.
            ForestLost: Another process took the forest during this call.
            ServerError: Elasticsearch does not answer, or refuses. The claim has been given up.
        """
        deadline = time.monotonic() + self._terms.wait_s
        name = self._forest
        with noticing_deletion(name), translated(f"take the lease on the forest {name!r}", index=name):
            while True:
                before, version = self._read()
                # The owner's clock may be far ahead of ours. So a lease that is not renewed for its
                # whole time by our clock has run out too.
                if before is None or before.is_over or _silent_s(before.token, version) > before.ttl_s:
                    if (is_drained := self._take(before, version)) is not None:
                        return is_drained
                elif time.monotonic() >= deadline:
                    raise self._busy(before)
                else:
                    time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))

    def renew(self, *, at_once: bool = False) -> None:
        """Renew the lease if a third of its time is over. Afterwards at least a third of it is left.

        With `at_once`, renew it in any case, which shows whether the forest can be written.

        Raises:
            ForestLost: Another process has taken the forest. If it was deleted, `ForestMissing`.
            ServerUnavailable: The server is too slow to renew it in time.
        """
        if not self._renew(at_once=at_once):
            raise self.lost()

    def release(self) -> None:
        """Release the lease, unless another process has taken it, or it is that of the parent of a fork.

        Does not wait for a renewal that is under way, which may be the one that a signal handler interrupts.
        That cannot take the lease again: its write conflicts with this one.
        """
        if is_inherited(self._client):
            return
        self._stopped.set()
        with translated(f"release the forest {self._forest!r}", index=self._forest):
            if self.is_lost or self._token in _abandoned:
                return
            try:
                self._write(self._client, self._version, released=True)
                self._dropped.detach()
            except BaseException:
                self.give_up()
                raise

    def give_up(self) -> None:
        """Let the lease run out; until then at least this process may take the forest again."""
        self._stopped.set()
        _abandoned.add(self._token)

    def abandon(self) -> None:
        """Stop renewing the lease, without releasing it: its index is about to be deleted."""
        refuse_inherited(self._client)
        with self._writing:
            self._stopped.set()

    def lost(self) -> ForestLost | ForestMissing:
        """Record that the forest is another process's, or deleted; return the error that says which."""
        self.is_lost = True
        owner: ForestOwner | None = None
        with contextlib.suppress(ApiError, elastic_transport.TransportError):
            if (missing := self.missing()) is not None:
                return missing
            found, _ = self._read()
            owner = None if found is None else found.owner
        now = owner or "its present owner is unknown"
        return ForestLost(
            f"this process has lost the forest {self._forest!r} to another: {now}",
            forest=self._forest,
            owner=owner,
        )

    def missing(self) -> ForestMissing | None:
        """If the forest has been deleted, record that, and return the error that says so."""
        if self._client.indices.exists(index=self._forest):
            return None
        self.is_lost = True
        return ForestMissing(
            f"the forest {self._forest!r} was deleted while this process used it: rebuild it from its "
            "articles, or else the next article makes an empty one",
            forest=self._forest,
        )

    def _busy(self, claim: Claim) -> ForestBusy:
        action = "Wait until it is released, feed through it if it is a sidecar, or name another forest."
        if claim.is_of_this_machine and claim.pid == os.getpid():
            action = "That is this process: share its Dedup between threads, or close it first."
        return ForestBusy(
            f"the forest {self._forest!r} is in use: {claim.owner}. {action}",
            forest=self._forest,
            owner=claim.owner,
        )

    def _renew(self, *, at_once: bool = False) -> bool:
        """Renew the lease if that is due; return whether it is still held."""
        # Before the lock: the parent's thread may have held it when this process was forked.
        refuse_inherited(self._client)
        with self._writing, translated(f"renew the lease on the forest {self._forest!r}", index=self._forest):
            if self.is_lost:
                return False
            for _ in range(_RENEWALS):
                # Released while it was about to be renewed: it must not be taken again.
                if self._stopped.is_set() or (self._age_s() < self._terms.ttl_s / 3 and not at_once):
                    return True
                if not self._write(self._hasty, self._version, released=False):
                    return self._stopped.is_set()
                at_once = False
            if self._age_s() > self._terms.ttl_s * 2 / 3:
                raise ServerUnavailable(
                    f"cannot renew the lease on the forest {self._forest!r}: the server took "
                    f"{self._age_s():.1f} s, and the lease holds for {self._terms.ttl_s:g} s"
                )
            return True

    def _age_s(self) -> float:
        return time.monotonic() - self._renewed_at

    def _take(self, before: Claim | None, version: dict[str, int]) -> bool | None:
        """Write the lease, and shut out the previous owner; None if another process was faster."""
        self._is_fenced = False
        self.epoch = 1 + max([before.epoch if before else 0, *self._fence.epochs()])
        self._since_s = time.time()
        try:
            if not self._write(self._client, version, released=False):
                return None
            # A weak reference: the thread must not keep alive a lease that its holder has dropped. It wakes
            # more often than a renewal is due, since callers renew too.
            arguments = (weakref.ref(self), self._stopped, self._terms.ttl_s / 9)
            threading.Thread(target=_keep_renewing, args=arguments, name="esdedup-lease", daemon=True).start()
            self._move_alias()
            return self._fence.drain()
        except BaseException:
            with contextlib.suppress(EsdedupError):
                self.release()
            raise

    def _move_alias(self) -> None:
        if not self._fence.move(self.epoch):
            raise self.lost()
        self._is_fenced = True

    def _read(self) -> tuple[Claim | None, dict[str, int]]:
        try:
            answer = self._client.get(index=self._forest, id=LEASE_ID)
        except NotFoundError:
            return None, {}
        return Claim(**answer["_source"]["lease"]), unchanged(answer.body)

    def _write(self, client: Elasticsearch, version: dict[str, int], *, released: bool) -> bool:
        """Write the lease if it still has that version; return whether it is held now."""
        started_at = time.monotonic()
        claim = Claim(
            token=self._token,
            host=socket.gethostname(),
            pid=os.getpid(),
            since_s=self._since_s,
            renewed_s=time.time(),
            ttl_s=self._terms.ttl_s,
            epoch=self.epoch,
            released=released,
            machine=_machine(),
            address=self._terms.address or "",
        )
        document = {"lease": dataclasses.asdict(claim)}
        condition: dict[str, Any] = dict(version) if version else {"op_type": "create"}
        # Through the alias once there is one, or else this would recreate an index that was deleted.
        where = {"index": self.alias, "require_alias": True} if self._is_fenced else {"index": self._forest}
        try:
            answer = client.index(**where, id=LEASE_ID, document=document, **condition)
            version = unchanged(answer.body)
        except ConflictError:
            # A request whose answer was lost is sent again, and conflicts with what it wrote itself.
            found, version = self._read()
            if found is None or (found.token, found.epoch) != (self._token, self.epoch):
                return False
            if found.released and not released:
                # Released in the middle of this renewal.
                return False
            if found.released != released:
                return self._write(client, version, released=released)
        except NotFoundError:
            return False
        if not released:
            # No renewal may learn the version of the release.
            self._version = version
        # Measured from before the request, so that the lease never seems to last longer than it does.
        self._renewed_at = started_at
        return True


def _abandon_dropped(token: str, process: int) -> None:
    """Let this process take the forest again, after it has dropped a lease without releasing it."""
    if os.getpid() == process:  # a forked process has dropped a copy
        _abandoned.add(token)


def _keep_renewing(held: "weakref.ref[Lease]", stopped: threading.Event, interval_s: float) -> None:
    while not stopped.wait(interval_s):
        lease = held()
        if lease is None:
            return
        # Errors are left to the next caller, who meets them too. A server that does not answer now may still
        # answer in time.
        with contextlib.suppress(EsdedupError):
            if not lease._renew():
                return
        del lease

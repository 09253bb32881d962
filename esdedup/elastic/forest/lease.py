"""The lease on a forest, which lets only one process at a time write to it.

The lease is a document in the forest's index, changed only by compare-and-set. Each new owner gets a higher
epoch. Clocks only decide how long a process waits for the previous owner. The fence (`fence.py`) uses no
clock, and blocks the writes of a stale owner.
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
from esdedup.elastic.forest.fence import Fence
from esdedup.elastic.forest.meta import noticing_deletion
from esdedup.elastic.forest.stored import unchanged
from esdedup.errors import EsdedupError, ForestBusy, ForestLost, ForestMissing, ForestOwner, ServerUnavailable
from esdedup.origins import is_loopback

LEASE_ID = "~lease"
DEFAULT_TTL_S = 30.0
# How often a waiting process reads the lease.
_POLL_S = 0.5
# Maximum number of renewals in one call: after a slow renewal, the next one may be due immediately.
_RENEWALS = 3
# Maximum number of claims to remember. After that, all claims are forgotten, and waits start over.
_MAX_SEEN = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A process's claim to a forest, with the fields of the lease document."""

    token: str
    host: str
    pid: int
    ttl_s: float
    # When the owner took the forest and last renewed the lease: seconds since 1970, by the owner's clock.
    since_s: float = 0.0
    renewed_s: float = 0.0
    epoch: int = 0
    released: bool = False
    # Distinguishes machines, and containers on one machine, that share a host name; empty if unknown.
    machine: str = ""
    # The URL at which the process accepts articles from other processes; empty if it accepts none.
    address: str = ""

    @property
    def is_of_this_machine(self) -> bool:
        """Whether the claim was made on this machine and in this container."""
        return (self.host, self.machine) == (socket.gethostname(), _machine())

    @property
    def owner(self) -> ForestOwner:
        """The process that made the claim."""
        since = datetime.fromtimestamp(self.since_s, UTC)
        return ForestOwner(host=self.host, pid=self.pid, since=since, released=self.released, url=self._url)

    @property
    def _url(self) -> str | None:
        """The address, if it can be reached from this machine."""
        try:
            host = urlsplit(self.address).hostname
        except ValueError:
            return None
        if not host or (is_loopback(host) and not self.is_of_this_machine):
            return None
        return self.address


class KnownClaims:
    """Remembers which claims this process has given up, and when it last saw each claim change."""

    def __init__(self) -> None:
        # Tokens of leases that were dropped or given up; their documents may still show them as held.
        self.given_up: set[str] = set()
        # By token: the latest version of the claim's document, and when that version was first seen
        # (`time.monotonic`). Repeated short attempts to acquire a lease thus add up to one long wait.
        self._seen: dict[str, tuple[dict[str, int], float]] = {}

    def is_over(self, claim: Claim, version: dict[str, int]) -> bool:
        """Return whether a claim has expired or was released, or its owner has exited."""
        # The owner's clock may be far ahead, so a claim also expires if we see no renewal for `ttl_s`.
        has_run_out = self._unchanged_s(claim.token, version) > claim.ttl_s
        if has_run_out or claim.released or time.time() > claim.renewed_s + claim.ttl_s:
            return True
        if not claim.is_of_this_machine:
            return False
        # A forked process has the tokens of its parent, but must not take the parent's lease.
        is_given_up = claim.pid == os.getpid() and claim.token in self.given_up
        return is_given_up or not _process_exists(claim.pid)

    def _unchanged_s(self, token: str, version: dict[str, int]) -> float:
        now_s = time.monotonic()
        seen = self._seen.get(token)
        if seen is None or seen[0] != version:
            if len(self._seen) >= _MAX_SEEN:
                self._seen.clear()
            seen = self._seen[token] = version, now_s
        return now_s - seen[1]


THIS_PROCESS = KnownClaims()


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeaseTerms:
    """How a process acquires and holds a lease."""

    # How long to wait for another owner to release the forest.
    wait_s: float = 0.0
    # How long the lease lasts without a renewal.
    ttl_s: float = DEFAULT_TTL_S
    # The URL at which this process accepts articles from other processes; None if it accepts none.
    address: str | None = None
    # Observations of earlier claims.
    known: KnownClaims = THIS_PROCESS


DEFAULT_TERMS = LeaseTerms()


class Lease:
    """This process's right to write to an existing forest.

    The holder must acquire the lease, then renew it. A thread also renews it, since the holder may be busy.
    """

    def __init__(self, client: Elasticsearch, *, forest: str, terms: LeaseTerms = DEFAULT_TERMS) -> None:
        self._client = client
        # If one server hangs, a renewal must time out early enough to try another server.
        self._hasty = client.options(request_timeout=max(1.0, terms.ttl_s / 3))
        self._fence = Fence(client, forest=forest)
        self._forest = forest
        self._terms = terms
        self._claim = Claim(
            token=secrets.token_hex(8),
            host=socket.gethostname(),
            pid=os.getpid(),
            ttl_s=terms.ttl_s,
            machine=_machine(),
            address=terms.address or "",
        )
        # The lease document's version after the last `_write`, and when that write began (`time.monotonic`).
        self._version: dict[str, int] = {}
        self._renewed_at = 0.0
        # Where the lease document is written: through the alias once it exists, since a write to the
        # forest's own name would recreate a deleted index.
        self._target: dict[str, Any] = {"index": forest}
        # Held during renewals.
        self._writing = threading.Lock()
        self.is_lost = False
        """Whether another process owns the forest, or the forest was deleted."""
        # Set once the lease is no longer renewed.
        self._ended = threading.Event()
        # An exception from a signal handler may discard this object before its holder can release the lease.
        weakref.finalize(self, terms.known.given_up.add, self._claim.token).atexit = False

    @property
    def epoch(self) -> int:
        """The number of this ownership, higher than those of all earlier owners."""
        return self._claim.epoch

    @property
    def alias(self) -> str:
        """The alias to write nodes through, with ``require_alias``."""
        return self._fence.alias(self.epoch)

    def acquire(self) -> None:
        """Take the lease, and wait until no write by a previous owner can succeed.

        Raises:
            ForestBusy: Another process still owns the forest after the wait.
            ForestLost: Another process took the forest during this call.
            ForestMissing: The forest does not exist, or was deleted during this call.
            ServerError: Elasticsearch does not answer, or refuses a request. The claim is then given up.
        """
        deadline = time.monotonic() + self._terms.wait_s
        name = self._forest
        with noticing_deletion(name), translated(f"take the lease on the forest {name!r}", index=name):
            while True:
                before, version = self._read()
                if before is None or self._terms.known.is_over(before, version):
                    if self._take(before, version):
                        return
                elif time.monotonic() >= deadline:
                    raise self._busy(before)
                else:
                    time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))

    def renew(self, *, at_once: bool = False) -> None:
        """Renew the lease if a third of its time has passed. On return, at least a third of the time remains.

        With `at_once`, always renew it, which shows whether the forest can be written to. A lease that was
        released, given up or abandoned is not renewed.

        Raises:
            ForestLost: Another process has taken the forest; `ForestMissing` if it was deleted.
            ServerUnavailable: The server is too slow to renew the lease in time.
        """
        if not self._renew(at_once=at_once):
            raise self.lost()

    def release(self) -> None:
        """Release the lease, unless another process has taken it, or this process was forked from its holder.

        Does not wait for a renewal in progress, since a signal handler may call this in the middle of one.
        Such a renewal cannot take the lease back: its write conflicts with the release.
        """
        if is_inherited(self._client) or self._ended.is_set():
            return
        self._ended.set()
        with translated(f"release the forest {self._forest!r}", index=self._forest):
            try:
                self._write(self._client, self._version, released=True)
            except BaseException:
                self.give_up()
                raise

    def give_up(self) -> None:
        """Leave the lease to expire. This process can acquire the forest again before that."""
        self._ended.set()
        self._terms.known.given_up.add(self._claim.token)

    def abandon(self) -> None:
        """Wait for a renewal in progress, then end the lease unreleased: its index is about to be deleted."""
        with self._writing:
            self._ended.set()

    def lost(self) -> ForestLost | ForestMissing:
        """Record that another process owns the forest, or that it was deleted; return the error to raise."""
        self._end_lost()
        owner: ForestOwner | None = None
        with contextlib.suppress(ApiError, elastic_transport.TransportError):
            if (missing := self.missing()) is not None:
                return missing
            found, _ = self._read()
            owner = None if found is None else found.owner
        now = owner or "its current owner is unknown"
        return ForestLost(
            f"this process has lost the forest {self._forest!r} to another process: {now}",
            forest=self._forest,
            owner=owner,
        )

    def missing(self) -> ForestMissing | None:
        """If the forest has been deleted, record that and return the error to raise."""
        if self._client.indices.exists(index=self._forest):
            return None
        self._end_lost()
        return ForestMissing(
            f"the forest {self._forest!r} was deleted while this process used it: rebuild it from its "
            "articles; otherwise the next article creates an empty forest",
            forest=self._forest,
        )

    def _end_lost(self) -> None:
        self.is_lost = True
        self._ended.set()

    def _busy(self, claim: Claim) -> ForestBusy:
        action = "Wait for its release, use the owner's sidecar if it runs one, or name another forest."
        if claim.is_of_this_machine and claim.pid == os.getpid():
            action = "That is this process: share its Dedup between threads, or close it first."
        return ForestBusy(
            f"the forest {self._forest!r} is in use: {claim.owner}. {action}",
            forest=self._forest,
            owner=claim.owner,
        )

    def _renew(self, *, at_once: bool = False) -> bool:
        """Renew the lease if a renewal is due; return False if another process owns the forest now."""
        # Check this before taking the lock, which a thread of the parent may have held at the fork.
        refuse_inherited(self._client)
        with self._writing, translated(f"renew the lease on the forest {self._forest!r}", index=self._forest):
            for _ in range(_RENEWALS):
                # A lease that has ended, perhaps during a renewal, must not be taken again.
                if self._ended.is_set() or (self._age_s() < self._terms.ttl_s / 3 and not at_once):
                    break
                if not self._write(self._hasty, self._version, released=False) and not self._ended.is_set():
                    return False
                at_once = False
            if not self._ended.is_set() and self._age_s() > self._terms.ttl_s * 2 / 3:
                raise ServerUnavailable(
                    f"cannot renew the lease on the forest {self._forest!r}: the server took "
                    f"{self._age_s():.1f} s, and the lease lasts {self._terms.ttl_s:g} s"
                )
            return not self.is_lost

    def _age_s(self) -> float:
        return time.monotonic() - self._renewed_at

    def _take(self, before: Claim | None, version: dict[str, int]) -> bool:
        """Write the lease, and shut out the previous owner; return False if another process was faster."""
        epoch = 1 + max([before.epoch if before else 0, *self._fence.epochs()])
        self._claim = dataclasses.replace(self._claim, epoch=epoch, since_s=time.time())
        try:
            if not self._write(self._client, version, released=False):
                return False
            # The weak reference lets a lease be collected once its holder has dropped it. The thread wakes
            # more often than renewals are due, since the holder renews the lease too.
            arguments = (weakref.ref(self), self._ended, self._terms.ttl_s / 9)
            threading.Thread(target=_keep_renewing, args=arguments, name="esdedup-lease", daemon=True).start()
            self._shut_out_others()
        except BaseException:
            with contextlib.suppress(EsdedupError):
                self.release()
            raise
        return True

    def _shut_out_others(self) -> None:
        if not self._fence.move(self._claim.epoch):
            raise self.lost()
        self._target = {"index": self.alias, "require_alias": True}
        self._fence.drain()

    def _read(self) -> tuple[Claim | None, dict[str, int]]:
        try:
            answer = self._client.get(index=self._forest, id=LEASE_ID)
        except NotFoundError:
            return None, {}
        return Claim(**answer["_source"]["lease"]), unchanged(answer.body)

    def _write(self, client: Elasticsearch, version: dict[str, int], *, released: bool) -> bool:
        """Write the lease document if it still has this version; return whether that succeeded."""
        started_at = time.monotonic()
        claim = dataclasses.replace(self._claim, renewed_s=time.time(), released=released)
        document = {"lease": dataclasses.asdict(claim)}
        condition: dict[str, Any] = dict(version) if version else {"op_type": "create"}
        try:
            answer = client.index(**self._target, id=LEASE_ID, document=document, **condition)
            version = unchanged(answer.body)
        except ConflictError:
            # The client repeats a request whose response was lost; the second write conflicts with the first.
            found, version = self._read()
            if found is None or (found.token, found.epoch) != (claim.token, claim.epoch):
                return False
            if found.released != released:
                # Either a release overtook this renewal, or a renewal overtook this release.
                return released and self._write(client, version, released=True)
        except NotFoundError:
            return False
        if not released:
            # Do not store the version of a release: with it, a renewal could overwrite the release.
            self._version = version
        # Count from before the request, so that the lease never seems to last longer than it does.
        self._renewed_at = started_at
        return True


def _keep_renewing(held: "weakref.ref[Lease]", ended: threading.Event, interval_s: float) -> None:
    while not ended.wait(interval_s):
        lease = held()
        if lease is None:
            return
        # The holder's next call raises the same error. A server that does not answer now may still answer
        # before the lease expires.
        with contextlib.suppress(EsdedupError):
            if not lease._renew():
                return
        del lease


def _machine() -> str:
    """Identify the current boot of this machine, and the container's process-id namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return ""


def _process_exists(pid: int) -> bool:
    if os.name != "posix":  # elsewhere, os.kill would terminate the process
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

"""`Owner`: holds the lease of a forest and assigns articles to its clusters."""

import contextlib
import dataclasses
import functools
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigner import Assigner
from esdedup.ingest.learn import learn

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.article_indices import Articles
from esdedup.elastic.client import refuse_inherited
from esdedup.elastic.closing import Closing
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.following import Follower
from esdedup.elastic.forest.lease import DEFAULT_TTL_S, LeaseTerms
from esdedup.elastic.forest.meta import LOOKUPS, Lookup
from esdedup.elastic.forest.store import ElasticStore, ForestSize
from esdedup.elastic.stories import Edits, read_edits
from esdedup.errors import EsdedupError, ServerError, SettingError
from esdedup.fields import EditorialFields
from esdedup.fingerprint import WORKERS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Assignment
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES

log = logging.getLogger("esdedup")

EXPIRE_EVERY_S = 3_600.0
"""The default interval between runs that delete expired nodes."""

_MOST_WORKERS = 256
_UNKNOWN_BYTES = 4 * 2**30
# The memory limit of a control group (version 2, as on all current systems); "max" if there is no limit.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnerSettings:
    """Settings of a forest's owner; see `Dedup`. Raises `SettingError` for a value out of range."""

    retention: timedelta | None = None
    change_retention: bool = False
    wait_s: float = 0.0
    lease_ttl_s: float = DEFAULT_TTL_S
    lookup: Lookup | None = None
    forest_shards: int | None = None
    memory_bytes: int | None = None
    most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES
    overrides: Overrides = NO_OVERRIDES
    workers: int = WORKERS
    expire_every_s: float | None = EXPIRE_EVERY_S

    def __post_init__(self) -> None:
        leaves, every_s = self.most_plausible_leaves, self.expire_every_s
        for name, is_right, allowed in (
            ("lease_ttl_s", 1 <= self.lease_ttl_s < float("inf"), "at least 1"),
            ("wait_s", self.wait_s >= 0, "at least 0"),
            ("most_plausible_leaves", leaves >= 1 and leaves.bit_count() == 1, "a power of two"),
            ("lookup", self.lookup in {None, *LOOKUPS}, " or ".join(map(repr, LOOKUPS))),
            ("memory_bytes", self.memory_bytes is None or self.memory_bytes >= 0, "at least 0"),
            ("workers", 1 <= self.workers <= _MOST_WORKERS, f"from 1 to {_MOST_WORKERS}"),
            ("expire_every_s", every_s is None or 0 < every_s < threading.TIMEOUT_MAX, "greater than 0"),
        ):
            if not is_right:
                raise SettingError(f"{name} is {getattr(self, name)!r}; it must be {allowed}")
        # Raises for an invalid retention.
        _ = self.aging

    @functools.cached_property
    def aging(self) -> Aging | None:
        """How long nodes live; None keeps the forest's own setting."""
        return None if self.retention is None else Aging.of(retention=self.retention)

    @property
    def max_bytes(self) -> int:
        """The memory that nodes may use: by default, half of the memory available to this process."""
        return _available_bytes() // 2 if self.memory_bytes is None else self.memory_bytes

    def refuse_for_sidecar(self) -> None:
        """Raise `SettingError` if any setting is given: a sidecar that owns a forest has its own settings."""
        useless = [each.name for each in dataclasses.fields(self) if getattr(self, each.name) != each.default]
        if useless:
            names = " and ".join(useless)
            raise SettingError(
                f"{names}: with a sidecar, these are settings of the sidecar; leave them out here"
            )


def _available_bytes() -> int:
    """Return the memory of this machine, or the container's limit if that is less; 4 GiB if unknown."""
    try:
        machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        machine_bytes = _UNKNOWN_BYTES
    with contextlib.suppress(OSError, ValueError):
        return min(machine_bytes, int(_CONTAINER.read_text()))
    return machine_bytes


class Owner(Closing):
    """The single writer of a forest, used by `Dedup` and by the sidecar.

    The first call acquires the forest's lease; so does the first call after the lease was released or lost.
    Threads may share an owner; batches are assigned one after another. This process accepts articles from
    other processes at `address`. With `expires_at_once`, the first deletion of nodes is due immediately.
    """

    def __init__(
        self,
        client: Elasticsearch,
        settings: OwnerSettings,
        *,
        forest: str,
        profile: Profile,
        address: str | None = None,
        expires_at_once: bool = False,
    ) -> None:
        self._client = client
        self._settings = settings
        self._name = forest
        self._profile = profile
        self._address = address
        self._store: ElasticStore | None = None
        # By default, a standby uses half of the owner's memory.
        standby_bytes = settings.max_bytes // 2 if settings.memory_bytes is None else settings.max_bytes
        self._following = Follower(client, forest=forest, memory_bytes=standby_bytes)
        self._assigner = Assigner(
            profile,
            overrides=settings.overrides,
            most_plausible_leaves=settings.most_plausible_leaves,
            threads=settings.workers,
        )
        # Learns boilerplate from pages without assigning them.
        self.learn = functools.partial(
            learn,
            fingerprinter=Fingerprinter(profile, threads=settings.workers),
            open_store=self._owned,
            overrides=settings.overrides,
        )
        self._edits = Edits()
        self._articles = Articles(client)
        # For each index whose articles were assigned, whether the index has been claimed (see `_claim`).
        self._claimed: dict[str, bool] = {}
        self._is_new = False
        every_s = settings.expire_every_s or math.inf
        first_after_s = 0.0 if expires_at_once else every_s
        self._expiry = ExpirySchedule(self._expiring, every_s=every_s, first_after_s=first_after_s)
        # Reentrant, because a signal handler may call `close`.
        self._lock = threading.RLock()

    @property
    def is_open(self) -> bool:
        """Whether this process owns the forest, as far as it knows."""
        return self._store is not None and not self._store.writer.lease.is_lost

    def open(self, *, at_once: bool = False) -> None:
        """Open the forest if it is closed; raise an error unless articles could be assigned and written now.

        Renewing the lease tests whether the forest is writable; `at_once` renews it even before it is due.
        """
        with self._owned() as store:
            store.now_ms()
            store.refuse_if_full()
            store.writer.lease.renew(at_once=at_once)

    def follow(self) -> bool:
        """Read some of another owner's writes; return whether more are left. Never raises `ServerError`."""
        with self._locked():
            return False if self.is_open else self._following.follow()

    def decide(self, articles: Sequence[ArticleAction]) -> Future[None]:
        """Assign articles; the future is done once they are written. Raises the same errors as `open`."""
        with self._owned() as store:
            if any(isinstance(article.fields, EditorialFields) for article in articles):
                # Read the edits first: if the server is down, this fails before anything is assigned.
                self._edits = execute(self._client, read_edits(self._name, known=self._edits))
            stories, now_ms = self._edits.stories, store.now_ms()
            written = self._assigner.assign(articles, store=store, now_ms=now_ms, stories=stories)
            self._claim({str(each.action["_index"]) for each in articles if each.action.get("_index")}, store)
            return written

    def assign(self, articles: Sequence[ArticleAction]) -> None:
        """Assign articles, and wait until the assignments are durable."""
        # Another thread may assign its batch during the wait.
        self.decide(articles).result()
        try:
            self.expire_some()
        except EsdedupError as error:
            # The batch is assigned. A serious error will recur with the next batch.
            log.warning("expired nodes could not be deleted: %s", error)

    def look_up(self, text: str, site: str | None) -> Assignment | None:
        """Return the assignment that a text would get now; None on errors or if this is not the owner."""
        with self._locked():
            store = self._store
            if store is None or not self.is_open:
                return None
            try:
                return self._assigner.look_up(text, site=site, store=store, now_ms=store.now_ms())
            except EsdedupError as error:
                # A serious error will recur with the next batch.
                log.info("a text could not be looked up by the owner of the forest: %s", error)
                return None

    def contents(self) -> ForestSize:
        """Count the forest's contents."""
        with self._owned() as store:
            noticed = self._assigner.placeholders.noticed
            return dataclasses.replace(store.contents(), placeholders=noticed)

    def expire(self) -> Expired:
        """Delete all expired nodes."""
        expired = Expired()
        with self._locked():
            for after in self._expiring():
                expired = after
        return expired

    def expire_some(self) -> Expired | None:
        """Delete some expired nodes if a deletion is due; return the numbers deleted so far."""
        with self._locked():
            # Another thread may have closed this owner.
            return self._expiry.step() if self.is_open else None

    def close(self) -> None:
        """Release the forest if it is open."""
        with self._lock:
            self._expiry.abandon()
            store, self._store = self._store, None
            if store is not None:
                self._claim(self._claimed, store)
                store.close()

    def _claim(self, names: Iterable[str], store: ElasticStore) -> None:
        """Record the forest and its retention in indices that lack them, if this client is allowed to."""
        for name in [each for each in names if not self._claimed.get(each)]:
            is_new, self._claimed[name] = name in self._claimed, True
            with contextlib.suppress(ServerError):
                self._claimed[name] = self._articles.claim(
                    *(name, self._name), store.aging.retention_ms, is_new=is_new, is_new_forest=self._is_new
                )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # Check before locking, because a thread of the parent may have held the lock during the fork.
        refuse_inherited(self._client)
        with self._lock:
            yield

    @contextlib.contextmanager
    def _owned(self) -> Iterator[ElasticStore]:
        with self._locked():
            yield self._opened()

    def _expiring(self) -> Iterator[Expired]:
        """Delete expired nodes in steps; yield the numbers deleted so far."""
        store = self._opened()
        steps = store.expiring()
        while True:
            with store.writer.noticing_deletion():
                expired = next(steps, None)
            if expired is None:
                return
            yield expired

    def _opened(self) -> ElasticStore:
        if self._store is None or self._store.writer.lease.is_lost:
            # Reset store and edits first: opening may fail, and a new forest may have other edits.
            self._store, self._edits = None, Edits()
            self._expiry.abandon()
            settings = self._settings
            self._store = ElasticStore(
                self._client,
                forest=self._name,
                profile=self._profile,
                aging=settings.aging,
                change_retention=settings.change_retention,
                terms=LeaseTerms(wait_s=settings.wait_s, ttl_s=settings.lease_ttl_s, address=self._address),
                lookup=settings.lookup,
                forest_shards=settings.forest_shards,
                memory_bytes=settings.max_bytes,
                followed=self._following,
            )
            self._claimed, self._is_new = {}, self._store.state.seq == 0
        return self._store


class ExpirySchedule:
    """Starts a deletion of expired nodes (`begin`) every `every_s` seconds, and runs it step by step."""

    def __init__(
        self, begin: Callable[[], Iterator[Expired]], *, every_s: float, first_after_s: float = 0.0
    ) -> None:
        self._begin = begin
        self._every_s = every_s
        self._due_s = time.monotonic() + first_after_s
        self._running: Iterator[Expired] | None = None

    def abandon(self) -> None:
        """Abandon the current deletion, for example because the forest was closed."""
        self._running = None

    def step(self) -> Expired | None:
        """Continue a deletion; return the numbers deleted so far, or None if there is nothing to do now."""
        running, self._running = self._running, None
        if running is None:
            if time.monotonic() < self._due_s:
                return None
            self._due_s = time.monotonic() + self._every_s
            running = self._begin()
        # If this raises, the deletion is abandoned.
        expired = next(running, None)
        if expired is not None:
            self._running = running
        return expired

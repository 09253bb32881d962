"""`OwnForest`: articles are assigned by a forest of this process."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from elasticsearch import Elasticsearch
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned
from esdedup.ingest.assigner import Assigner
from esdedup.ingest.dedup_settings import ForestSettings
from esdedup.ingest.expiry_schedule import ExpirySchedule
from esdedup.ingest.held_forest import HeldForest
from esdedup.ingest.learn import OnLearned, learn

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import EsdedupError
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Forest
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")


class OwnForest:
    """Assigns the articles of several threads, one batch after the other."""

    def __init__(
        self,
        held: HeldForest,
        settings: ForestSettings,
        *,
        profile: Profile,
        batch_size: int,
        check_process: Callable[[], None],
    ) -> None:
        """Open nothing yet.

        Args:
            held: The forest.
            settings: Its settings.
            profile: Its profile.
            batch_size: How many pages are learned from together.
            check_process: Called before the lock is taken; raises in a forked process that may not use the
                client.
        """
        self._held = held
        self._profile = profile
        self._threads = settings.workers
        self._pins = settings.pins
        self._batch_size = batch_size
        self._check_process = check_process
        self._assigner = Assigner(
            profile,
            pins=settings.pins,
            most_plausible_leaves=settings.most_plausible_leaves,
            threads=settings.workers,
        )
        every_s = settings.expire_every_s
        # A process that ends before that has a schedule of its own, or none.
        self._expiry = every_s and ExpirySchedule(held.expiring, every_s=every_s, first_after_s=every_s)
        # Held while a batch is assigned, since threads may share this object. Reentrant, for a signal handler
        # that closes it.
        self._lock = threading.RLock()

    @classmethod
    def of(
        cls,
        client: Elasticsearch,
        settings: ForestSettings,
        *,
        name: str,
        profile: Profile,
        batch_size: int,
        check_process: Callable[[], None],
        on_new: Callable[[], None],
    ) -> Self:
        """Return a forest that is opened when it is needed; parameters as for `HeldForest`, and as above."""
        held = HeldForest(
            client,
            name=name,
            profile=profile,
            aging=settings.aging,
            wait_s=settings.wait_s,
            lease_ttl_s=settings.lease_ttl_s,
            memory_bytes=settings.memory_bytes,
            on_new=on_new,
        )
        return cls(held, settings, profile=profile, batch_size=batch_size, check_process=check_process)

    def assign(self, articles: list[ArticleAction], *, backfill: bool) -> list[Assigned]:
        """Return the articles with what was decided for them."""
        with self._opened() as (forest, now_ms):
            assigned, _, written = self._assigner.assign(
                articles, forest=forest, now_ms=now_ms, backfill=backfill
            )
        # Meanwhile another thread may decide its batch.
        written.result()
        self._expire_some()
        return assigned

    def learn(self, texts: Iterable[RawPage], *, on_learned: OnLearned) -> int:
        """Learn from pages, and assign none; return how many had not been seen before."""

        @contextlib.contextmanager
        def open_forest() -> Iterator[Forest]:
            with self._opened() as (forest, _):
                yield forest

        return learn(
            texts,
            fingerprinter=Fingerprinter(self._profile, threads=self._threads),
            open_forest=open_forest,
            pins=self._pins,
            batch_size=self._batch_size,
            on_learned=on_learned,
        )

    def expire(self) -> Expired:
        """Delete all expired nodes."""
        self._check_process()
        with self._lock:
            return self._held.expire()

    def close(self) -> None:
        """Release the forest if it is open. The next article opens it again."""
        with self._lock:
            if self._expiry:
                self._expiry.abandon()
            self._held.close()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Forest, int]]:
        # Before the lock: a thread of the parent may have held it when this process was forked.
        self._check_process()
        with self._lock:
            yield self._held.open()

    def _expire_some(self) -> None:
        if not self._expiry:
            return
        with self._lock:
            # Another thread may have closed it.
            if not self._held.is_open:
                return
            try:
                self._expiry.step()
            except EsdedupError as error:
                # The batch is assigned. If it is serious, the next one meets it too.
                log.warning("expired nodes could not be deleted: %s", error)

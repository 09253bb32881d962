"""`Feeding`: what runs beside the requests, from the intake to the forest."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self, cast

from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.store import Contents
from esdedup.forest import Assignment
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned
from esdedup.ingest.assigner import Assigner
from esdedup.ingest.fingerprinted_pages import (
    Bools,
    FingerprintedArticle,
    FingerprintedPages,
    PassagesOfPages,
)
from esdedup.ingest.held_forest import HeldForest
from esdedup.sidecar.intake import BatchBounds, Intake
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Owner, Ownership

_Article = ArticleAction | FingerprintedArticle
_Decided = Assigned | Assignment | Bools

# Counting takes some milliseconds.
_COUNT_EVERY_S = 60.0
# Callers have been answered by then, or given up. Without Elasticsearch the thread could wait for minutes.
_DECIDE_S = 5.0
# For the release of the lease; without it, the lease runs out by itself.
_RELEASE_S = 5.0


class Feeding:
    """Runs the intake and the forest's owner; at the end, what was taken is decided if it can be."""

    def __init__(
        self,
        held: HeldForest,
        assigner: Assigner,
        *,
        name: str,
        bounds: BatchBounds,
        expire_every_s: float,
        metrics: Metrics,
    ) -> None:
        """Run nothing yet.

        Args:
            held: The forest.
            assigner: Of the forest's profile.
            name: The forest's.
            bounds: Of batches and of what waits.
            expire_every_s: How often expired nodes are deleted.
            metrics: Records what happens.
        """
        self._name = name
        self._held = held
        self._assigner = assigner
        self._metrics = metrics
        self._count_at_s = time.monotonic()
        self._expired = 0
        self._owner: Owner[_Article, _Decided] = Owner(
            held,
            self._assign,
            name=name,
            expire_every_s=expire_every_s,
            on_expired=self._note_expired,
            on_look=self._look,
            on_owned=self._note_owned,
        )
        self._intake = Intake(self._owner.decide, bounds=bounds, metrics=metrics)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ownership(self) -> Ownership:
        """Whether this process owns the forest."""
        return self._owner.ownership

    async def assign(self, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        """Return what is decided for the articles of a request; see `Intake.assign`."""
        return cast(list[Assigned], await self._intake.assign(articles))

    async def assign_fingerprinted(self, pages: FingerprintedPages) -> Sequence[Assignment | Bools]:
        """Do the same for pages that were fingerprinted elsewhere; see `Arrived.others`."""
        return cast(list[Assignment | Bools], await self._intake.assign(pages.articles()))

    async def forecast(self, pages: PassagesOfPages) -> Bools:
        """Return which passages would be left out of pages if they came now; errors as for `Owner.decide`."""
        return await self._owner.ask(lambda: self._assigner.forecast(pages, forest=self._held.open()[0]))

    async def hand_over(self) -> bool:
        """Release the forest, and leave it to others for a moment; see `Owner.hand_over`."""
        return await self._owner.hand_over()

    async def take(self) -> None:
        """Take the forest now, if it is free."""
        await self._owner.take()

    async def __aenter__(self) -> Self:
        """Begin."""
        self._tasks = [
            asyncio.create_task(self._intake.run(), name="intake"),
            asyncio.create_task(self._owner.look_after(), name="owner"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Decide what was taken, and release the forest; take some seconds at most."""
        intake, looking = self._tasks
        self._intake.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(intake, _DECIDE_S)
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        await self._owner.close(timeout_s=_RELEASE_S)

    def _assign(self, articles: list[_Article]) -> tuple[list[_Decided], Future[None]]:
        began_s = time.perf_counter()
        forest, now_ms = self._held.open()
        assigned, others, written = self._assigner.assign(
            [each for each in articles if isinstance(each, ArticleAction)],
            [each for each in articles if isinstance(each, FingerprintedArticle)],
            forest=forest,
            now_ms=now_ms,
        )
        decided_s = time.perf_counter()
        self._metrics.decided(decided_s - began_s)
        written.add_done_callback(lambda _: self._metrics.written(time.perf_counter() - decided_s))
        of_actions, of_others = iter(assigned), iter(others)
        decided = [next(of_actions if isinstance(each, ArticleAction) else of_others) for each in articles]
        return decided, written

    def _look(self) -> None:
        if time.monotonic() >= self._count_at_s:
            self._count_at_s = time.monotonic() + _COUNT_EVERY_S
            self._note_contents(self._held.contents())

    def _note_owned(self, is_owned: bool) -> None:
        self._metrics.lease(self._name, is_held=is_owned)
        self._count_at_s = time.monotonic()
        if not is_owned:
            # That is for the next owner to say.
            self._note_contents(Contents(nodes=0, pages=0, memory_bytes=0, learned_bytes=0, passages=0))

    def _note_contents(self, contents: Contents) -> None:
        self._metrics.forest(
            self._name, nodes=contents.nodes, pages=contents.pages, memory_bytes=contents.memory_bytes
        )
        self._metrics.boilerplate(self._name, contents.passages)

    def _note_expired(self, expired: Expired) -> None:
        number = expired.leaves + expired.roots
        # Another deletion begins at 0.
        self._metrics.expired(number - self._expired if number >= self._expired else number)
        self._expired = number

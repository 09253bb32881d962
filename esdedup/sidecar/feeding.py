"""`Feeding`: what runs beside the requests, from the intake to the forest."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from esdedup.elastic.forest.expiry import Expired
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigner import Assigned, Assigner
from esdedup.ingest.held_forest import HeldForest
from esdedup.sidecar.intake import Bounds, Intake
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Owner, Ownership

# Counting takes some milliseconds.
_COUNT_EVERY_S = 60.0
# For the release of the lease; without it, the lease runs out by itself.
_RELEASE_S = 5.0


class Feeding:
    """Runs the intake and the forest's owner; at the end of ``async with``, all that was taken is decided."""

    def __init__(
        self,
        held: HeldForest,
        assigner: Assigner,
        *,
        bounds: Bounds,
        expire_every_s: float,
        metrics: Metrics,
    ) -> None:
        """Run nothing yet.

        Args:
            held: The forest.
            assigner: Of the forest's profile.
            bounds: Of batches and of what waits.
            expire_every_s: How often expired nodes are deleted.
            metrics: Records what happens.
        """
        self._held = held
        self._assigner = assigner
        self._metrics = metrics
        self._count_at_s = time.monotonic()
        self._expired = 0
        self._owner: Owner[ArticleAction, Assigned] = Owner(
            held,
            self._assign,
            expire_every_s=expire_every_s,
            on_expired=self._note_expired,
            on_look=self._look,
        )
        self._intake = Intake(self._owner.decide, bounds=bounds, metrics=metrics)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ownership(self) -> Ownership:
        """Whether this process owns the forest."""
        return self._owner.ownership

    async def assign(self, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        """Return what is decided for the articles of a request; see `Intake.assign`."""
        return await self._intake.assign(articles)

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
        """Decide what was taken, and release the forest."""
        intake, looking = self._tasks
        self._intake.close()
        # What is decided now has nobody who waits for it, unless the server is waiting for its answers.
        await intake
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        await self._owner.close(timeout_s=_RELEASE_S)
        self._metrics.lease(is_held=False)

    def _assign(self, articles: list[ArticleAction]) -> list[Assigned]:
        began_s, written_s = time.perf_counter(), self._held.write_s
        forest, now_ms = self._held.open()
        assigned = self._assigner.assign(articles, forest=forest, now_ms=now_ms)
        self._metrics.decided(
            decide_s=time.perf_counter() - began_s, write_s=max(0.0, self._held.write_s - written_s)
        )
        return assigned

    def _look(self) -> None:
        self._metrics.lease(is_held=self._held.is_open)
        if time.monotonic() >= self._count_at_s:
            self._count_at_s = time.monotonic() + _COUNT_EVERY_S
            contents = self._held.contents()
            self._metrics.forest(
                nodes=contents.nodes, pages=contents.pages, memory_bytes=contents.memory_bytes
            )
            self._metrics.boilerplate(contents.passages)

    def _note_expired(self, expired: Expired) -> None:
        number = expired.leaves + expired.roots
        # Another deletion begins at 0.
        self._metrics.expired(number - self._expired if number >= self._expired else number)
        self._expired = number

"""`Owner`: the thread that holds a forest, decides batches with it, and looks after it."""

import asyncio
import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import EsdedupError, ForestBusy, ForestLost
from esdedup.ingest.expiry_schedule import ExpirySchedule
from esdedup.serial_thread import SerialThread

log = logging.getLogger("esdedup")

# How often the owner looks after the forest, and a standby whether the forest is free.
_LOOK_S = 1.0
# So long a forest that was handed over is left to whoever has asked for it, and takes it at once.
_LEFT_S = 2.0

_Article = TypeVar("_Article")
_Decided = TypeVar("_Decided")
_Result = TypeVar("_Result")


class Held(Protocol):
    """The forest, as `HeldForest` has it."""

    @property
    def is_open(self) -> bool:
        """Whether this process owns it."""

    def open(self) -> object:
        """Take it, if it is free."""

    def expiring(self) -> Iterator[Expired]:
        """Delete what has expired, some at a time."""

    def close(self) -> None:
        """Release it."""


class NotOwner(EsdedupError):
    """This process does not own the forest now; another may, or Elasticsearch is away.

    Attributes:
        reason: Why; None while the forest is being taken.
    """

    def __init__(self, reason: EsdedupError | None) -> None:
        super().__init__(str(reason or "the forest is being taken: send this again in a moment"))
        self.reason = reason


class OwnerFailed(EsdedupError):
    """The owner of a forest has decided nothing for articles that another sidecar has sent it.

    Attributes:
        status: The HTTP status for the caller.
        kind: The kind of problem.
    """

    def __init__(self, message: str, *, status: int = 503, kind: str = "owner_unreachable") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Ownership:
    """Whether this process owns the forest."""

    is_owner: bool = False
    # Why not; None before it was tried.
    reason: EsdedupError | None = None

    @property
    def is_changing_hands(self) -> bool:
        """Whether this process is about to take it, or has just released it."""
        return not self.is_owner and self.reason is None

    @property
    def url(self) -> str | None:
        """Where another process that owns it takes articles for others; None if that is not known."""
        owner = self.reason.owner if isinstance(self.reason, ForestBusy | ForestLost) else None
        return None if owner is None or owner.released else owner.url


class Owner(Generic[_Article, _Decided]):
    """Holds a forest as long as it can, and takes it again when it is free.

    Everything that touches the forest happens in one thread. It is a daemon: if Elasticsearch does not
    answer, nobody can end it.
    """

    def __init__(
        self,
        held: Held,
        assign: Callable[[list[_Article]], tuple[Sequence[_Decided], Future[None]]],
        *,
        name: str,
        expire_every_s: float,
        on_expired: Callable[[Expired], None] = lambda _: None,
        on_look: Callable[[], None] = lambda: None,
        on_owned: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """Take nothing yet; see `look_after`.

        Args:
            held: The forest.
            assign: Decides a batch, and returns what waits until that is durable; called in the thread, while
                the forest is owned.
            name: The forest's.
            expire_every_s: How often what has expired is deleted, from the first time at which the forest is
                taken.
            on_expired: Called in the thread after each deletion, with all that was deleted since the
                deletions began.
            on_look: Called in the thread about once a second, while the forest is owned.
            on_owned: Called when that changes, with whether the forest is owned now.
        """
        self._held = held
        self._assign = assign
        self._name = name
        self._expiry = ExpirySchedule(held.expiring, every_s=expire_every_s)
        self._on_expired = on_expired
        self._on_look = on_look
        self._on_owned = on_owned
        self._thread = SerialThread("esdedup-owner")
        self._left_until_s = -math.inf
        self.ownership = Ownership()

    async def decide(self, articles: list[_Article]) -> Awaitable[Sequence[_Decided]]:
        """Decide a batch; return what waits until that is durable, with what is decided for each article.

        Meanwhile the next batch may be decided.

        Raises:
            NotOwner: This process does not own the forest.
            EsdedupError: It has lost it meanwhile, or Elasticsearch does not answer. What is returned may
                raise the same.
        """
        decided, written = await self.ask(lambda: self._assign(articles))
        return self._durable(decided, written)

    async def ask(self, job: Callable[[], _Result]) -> _Result:
        """Return what a job returns that asks the forest; errors as for `decide`."""
        self._require_owned()
        return await self._run(lambda: self._owned(job))

    async def look_after(self) -> None:
        """Take the forest and keep it, until this is cancelled."""
        while True:
            is_more_to_do = await self._run(self._look)
            if not is_more_to_do:
                await asyncio.sleep(_LOOK_S)

    async def hand_over(self) -> bool:
        """Release the forest, and leave it to others for a moment; return whether this process owned it.

        Raises:
            EsdedupError: Elasticsearch does not answer; the forest is left all the same.
        """
        return await self._run(self._hand_over)

    async def take(self) -> None:
        """Take the forest now, if it is free."""
        await self._run(self._look)

    async def close(self, *, timeout_s: float) -> None:
        """Release the forest, if that can be done in time; otherwise the lease runs out by itself."""
        was_owner = self.ownership.is_owner
        # Whatever the thread is about to look after.
        self._left_until_s = math.inf
        self._set(Ownership())
        if was_owner:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._run(self._release), timeout_s)

    async def _durable(self, decided: Sequence[_Decided], written: Future[None]) -> Sequence[_Decided]:
        try:
            await asyncio.wrap_future(written)
        except EsdedupError:
            # What has become of the forest is known in its thread.
            await self._run(lambda: self._noting(written.result))
        return decided

    async def _run(self, job: Callable[[], _Result]) -> _Result:
        """Do a job in the thread. It goes on if nobody waits for it any more."""
        return await asyncio.shield(asyncio.wrap_future(self._thread.begin(job)))

    def _noting(self, job: Callable[[], _Result]) -> _Result:
        try:
            return job()
        except EsdedupError as error:
            self._note(error)
            raise

    def _owned(self, job: Callable[[], _Result]) -> _Result:
        # It may have been handed over since the job was begun, which would take it again.
        self._require_owned()
        return self._noting(job)

    def _require_owned(self) -> None:
        if not self.ownership.is_owner:
            raise NotOwner(self.ownership.reason)

    def _hand_over(self) -> bool:
        if not self._held.is_open:
            return False
        self._left_until_s = time.monotonic() + _LEFT_S
        self._release()
        return True

    def _release(self) -> None:
        self._set(Ownership())
        self._held.close()

    def _look(self) -> bool:
        """Do a part of what is to be done; return whether there is more."""
        try:
            if not self._held.is_open:
                if time.monotonic() < self._left_until_s:
                    return False
                self._expiry.abandon()
                self._held.open()
            self._note(None)
            self._on_look()
            return self._expire()
        except EsdedupError as error:
            self._note(error)
            return False

    def _expire(self) -> bool:
        expired = self._expiry.step()
        if expired is not None:
            self._on_expired(expired)
        return expired is not None

    def _note(self, error: EsdedupError | None) -> None:
        """Note whether the forest is owned, and log it if that has changed."""
        before = self.ownership
        is_owner = self._held.is_open
        self._set(Ownership(is_owner, None if is_owner else error))
        if is_owner and not before.is_owner:
            log.info("this process owns the forest %s now", self._name)
        elif isinstance(error, ForestBusy):
            if str(error) != str(before.reason):
                # Nobody has to do anything about it, as the error says to others.
                log.info("stands by for the forest %s: %s", self._name, error.owner)
        elif not is_owner and str(error) != str(before.reason):
            log.warning("this process does not own the forest %s: %s", self._name, error)

    def _set(self, ownership: Ownership) -> None:
        has_changed = ownership.is_owner is not self.ownership.is_owner
        self.ownership = ownership
        if has_changed:
            self._on_owned(ownership.is_owner)

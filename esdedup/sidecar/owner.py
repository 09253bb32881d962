"""`Owner`: the thread that holds a forest, decides batches with it, and looks after it."""

import asyncio
import contextlib
import dataclasses
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import EsdedupError, ForestBusy

log = logging.getLogger("esdedup")

# How often the owner looks after the forest, and a standby whether the forest is free.
_LOOK_S = 1.0

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


@dataclasses.dataclass(frozen=True)
class Ownership:
    """Whether this process owns the forest."""

    is_owner: bool = False
    # Why not; None before it was tried.
    reason: EsdedupError | None = None

    @property
    def is_standby(self) -> bool:
        """Whether another process owns it, which this one would follow."""
        return isinstance(self.reason, ForestBusy)


class Owner(Generic[_Article, _Decided]):
    """Holds a forest as long as it can, and takes it again when it is free.

    Everything that touches the forest happens in one thread. It is a daemon: if Elasticsearch does not
    answer, nobody can end it.
    """

    def __init__(
        self,
        held: Held,
        assign: Callable[[list[_Article]], Sequence[_Decided]],
        *,
        expire_every_s: float,
        on_expired: Callable[[Expired], None] = lambda _: None,
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        """Take nothing yet; see `look_after`.

        Args:
            held: The forest.
            assign: Decides a batch; called in the thread, while the forest is owned.
            expire_every_s: How often what has expired is deleted, from the first time at which the forest is
                taken.
            on_expired: Called in the thread after each deletion, with all that was deleted since the
                deletions began.
            on_look: Called in the thread about once a second, while the forest is owned.
        """
        self._held = held
        self._assign = assign
        self._expire_every_s = expire_every_s
        self._on_expired = on_expired
        self._on_look = on_look
        self._thread = _Thread("esdedup-owner")
        self._expire_at_s = time.monotonic()
        self._expiring: Iterator[Expired] | None = None
        self.ownership = Ownership()

    async def decide(self, articles: list[_Article]) -> Sequence[_Decided]:
        """Return what is decided for each article; it has been stored by then.

        Raises:
            NotOwner: This process does not own the forest.
            EsdedupError: It has lost it meanwhile, or Elasticsearch does not answer.
        """
        if not self.ownership.is_owner:
            raise NotOwner(self.ownership.reason)
        return await self._thread.run(lambda: self._decide(articles))

    async def look_after(self) -> None:
        """Take the forest and keep it, until this is cancelled."""
        while True:
            is_more_to_do = await self._thread.run(self._look)
            if not is_more_to_do:
                await asyncio.sleep(_LOOK_S)

    async def close(self, *, timeout_s: float) -> None:
        """Release the forest, if that can be done in time; otherwise the lease runs out by itself."""
        was_owner, self.ownership = self.ownership.is_owner, Ownership()
        if was_owner:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._thread.run(self._held.close), timeout_s)

    def _decide(self, articles: list[_Article]) -> Sequence[_Decided]:
        try:
            return self._assign(articles)
        except EsdedupError as error:
            self._note(error)
            raise

    def _look(self) -> bool:
        """Do a part of what is to be done; return whether there is more."""
        try:
            if not self._held.is_open:
                self._expiring = None
                self._held.open()
            self._note(None)
            self._on_look()
            return self._expire()
        except EsdedupError as error:
            self._note(error)
            return False

    def _expire(self) -> bool:
        if self._expiring is None:
            if time.monotonic() < self._expire_at_s:
                return False
            self._expire_at_s = time.monotonic() + self._expire_every_s
            self._expiring = self._held.expiring()
        expired = next(self._expiring, None)
        if expired is None:
            self._expiring = None
            return False
        self._on_expired(expired)
        return True

    def _note(self, error: EsdedupError | None) -> None:
        """Note whether the forest is owned, and log it if that has changed."""
        before = self.ownership
        is_owner = self._held.is_open
        self.ownership = Ownership(is_owner, None if is_owner else error)
        if is_owner and not before.is_owner:
            log.info("this process owns the forest now")
        elif not is_owner and str(error) != str(before.reason):
            log.warning("this process does not own the forest: %s", error)


class _Thread:
    """A thread that does what it is given, in turn."""

    def __init__(self, name: str) -> None:
        self._given: queue.SimpleQueue[
            tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]]
        ] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, job: Callable[[], _Result]) -> _Result:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Result] = loop.create_future()
        self._given.put((job, loop, done))
        # It goes on if nobody waits for it any more.
        return await asyncio.shield(done)

    def _work(self) -> None:
        while True:
            job, loop, done = self._given.get()
            try:
                result = job()
            except BaseException as error:  # raised where it is awaited
                answer = _raise_in(done, error)
            else:
                answer = _return_in(done, result)
            # The loop may have ended.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(answer)


def _raise_in(done: asyncio.Future[Any], error: BaseException) -> Callable[[], None]:
    return lambda: None if done.cancelled() else done.set_exception(error)


def _return_in(done: asyncio.Future[_Result], result: _Result) -> Callable[[], None]:
    return lambda: None if done.cancelled() else done.set_result(result)

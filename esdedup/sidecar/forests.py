"""`Forests`: decides articles, in this process or by asking the sidecar that owns their forest."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from esdedup.errors import EsdedupError, ForestMissing
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned
from esdedup.sidecar.forest_choice import ForestChoice
from esdedup.sidecar.owner import NotOwner, OwnerFailed, Ownership
from esdedup.sidecar.sharing import Wanted, is_fair, wanted

log = logging.getLogger("esdedup")

# As often as a standby looks who owns the forest.
_LOOK_S = 1.0
# Longer than sidecars that begin at the same time take for all forests that are free.
_SHARE_EVERY_S = 3.0
# So long a caller waits for the next owner, with pauses that grow up to a second. Most clients wait for an
# answer some ten seconds, but give up within milliseconds if they have to try again.
_NEXT_OWNER_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 0.05, 1.0
# What is heard of an owner that is one no more, or ends, or was killed.
_NO_OWNER = frozenset(("not_owner", "shutting_down", "owner_unreachable"))

_Answer = TypeVar("_Answer")


class OwnForest(Protocol):
    """A forest that this process owns or would own, as `Feeding` has it."""

    @property
    def ownership(self) -> Ownership:
        """Whether this process owns it."""

    async def assign(self, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        """Return what is decided for articles, if this process owns it."""

    async def hand_over(self) -> bool:
        """Release it, and leave it to others for a moment; return whether this process owned it."""

    async def take(self) -> None:
        """Take it now, if it is free."""


class OtherSidecars(Protocol):
    """The other sidecars, as `Peers` has them."""

    async def decide(self, url: str, forest: str, articles: Sequence[ArticleAction]) -> list[Assigned]:
        """Return what the owner of a forest decides for articles."""

    async def relay(self, url: str, forest: str, body: bytes, *, content_type: str) -> bytes:
        """Return what the owner of a forest answers to fingerprints."""

    async def release(self, url: str, forest: str, *, owned: int) -> bool:
        """Ask the owner of a forest for it."""


class Forests:
    """The forests of a sidecar, shared with other sidecars inside ``async with forests``."""

    def __init__(
        self, forests: Mapping[str, OwnForest], *, choice: ForestChoice, peers: OtherSidecars | None
    ) -> None:
        """Decide.

        Args:
            forests: By their names.
            choice: Which of them an article belongs to.
            peers: The other sidecars; None: nobody is asked, and so a standby refuses articles.
        """
        self._forests = dict(forests)
        self._choice = choice
        self._peers = peers
        self._sharing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to share."""
        if self._peers is not None and len(self._forests) > 1:
            self._sharing = asyncio.create_task(self._share(self._peers), name="sharing")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Share no more."""
        if self._sharing is not None:
            self._sharing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sharing

    @property
    def ownerships(self) -> dict[str, Ownership]:
        """Of each forest, whether this process owns it."""
        return {name: each.ownership for name, each in self._forests.items()}

    async def assign(self, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        """Return what is decided for the articles of a caller's request, in their order.

        Raises:
            OwnerFailed: Another process owns a forest of theirs, and decides nothing now.
            EsdedupError: As for `Intake.assign`. Some articles may have been decided: they get the same roots
                when they are sent again.
        """
        places: dict[str, list[int]] = {}
        for at, article in enumerate(articles):
            places.setdefault(self._choice.of(article), []).append(at)
        # All are awaited, also if one fails: nothing is decided behind the back of whoever sends it again.
        parts = await asyncio.gather(
            *(self._assign(name, [articles[at] for at in each]) for name, each in places.items()),
            return_exceptions=True,
        )
        assigned: list[Assigned | None] = [None] * len(articles)
        for each, part in zip(places.values(), parts, strict=True):
            if isinstance(part, BaseException):
                raise part
            for at, one in zip(each, part, strict=True):
                assigned[at] = one
        return [each for each in assigned if each is not None]

    async def decide(self, name: str, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        """Return what this process decides for articles of one forest, and ask nobody else.

        Raises:
            ForestMissing: There is no such forest here.
            NotOwner: This process does not own it.
            EsdedupError: As for `Intake.assign`.
        """
        forest = self._named(name)
        # Also if there are none: so others ask whether this process would decide.
        if not forest.ownership.is_owner:
            raise NotOwner(forest.ownership.reason)
        return await forest.assign(articles)

    async def relay(
        self, name: str, body: bytes, *, content_type: str, own: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Return what the owner of a forest answers to fingerprints; errors as for `assign`.

        Args:
            name: Of the forest.
            body: As it came.
            content_type: Its type.
            own: Returns this process's answer, if it is the owner.
        """

        async def ask(peers: OtherSidecars, url: str) -> bytes:
            return await peers.relay(url, name, body, content_type=content_type)

        return await self._with_owner(name, ask=ask, own=own)

    async def release(self, name: str, *, asker_owns: int) -> bool:
        """Hand a forest over to a sidecar that owns fewer; return whether that was done.

        Raises:
            ForestMissing: There is no such forest here.
            EsdedupError: It cannot be released.
        """
        forest = self._named(name)
        owned = sum(each.is_owner for each in self.ownerships.values())
        if not forest.ownership.is_owner or not is_fair(owned=owned, asker_owns=asker_owns):
            return False
        log.info("hands the forest %s over to a sidecar that owns fewer", name)
        return await forest.hand_over()

    def _named(self, name: str) -> OwnForest:
        if name not in self._forests:
            raise ForestMissing(
                f"this sidecar has no forest {name!r}: all sidecars of one cluster need the same settings",
                forest=name,
            )
        return self._forests[name]

    async def _assign(self, name: str, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        async def ask(peers: OtherSidecars, url: str) -> Sequence[Assigned]:
            return await peers.decide(url, name, articles)

        return await self._with_owner(name, ask=ask, own=lambda: self._forests[name].assign(articles))

    async def _with_owner(
        self,
        name: str,
        *,
        ask: Callable[[OtherSidecars, str], Coroutine[Any, Any, _Answer]],
        own: Callable[[], Awaitable[_Answer]],
    ) -> _Answer:
        """Return the answer of a forest's owner; if there is none, wait a moment for the next one."""
        until_s, pause_s = asyncio.get_running_loop().time() + _NEXT_OWNER_S, _FIRST_PAUSE_S
        while True:
            try:
                return await self._with_owner_now(self._forests[name], ask, own)
            except (NotOwner, OwnerFailed) as error:
                if not _is_for_a_moment(error) or asyncio.get_running_loop().time() > until_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _with_owner_now(
        self,
        forest: OwnForest,
        ask: Callable[[OtherSidecars, str], Coroutine[Any, Any, _Answer]],
        own: Callable[[], Awaitable[_Answer]],
    ) -> _Answer:
        while self._peers is not None and (url := forest.ownership.url) is not None:
            asking = asyncio.create_task(ask(self._peers, url))
            try:
                while forest.ownership.url == url:
                    await asyncio.wait([asking], timeout=_LOOK_S)
                    if asking.done():
                        return asking.result()
                # An owner that hangs never answers. What it has decided gets the same roots from the next.
            finally:
                asking.cancel()
        return await own()

    async def _share(self, peers: OtherSidecars) -> None:
        while True:
            await asyncio.sleep(_SHARE_EVERY_S)
            if (asked := wanted(self.ownerships)) is not None:
                await self._ask_for(asked, peers)

    async def _ask_for(self, asked: Wanted, peers: OtherSidecars) -> None:
        try:
            if await peers.release(asked.url, asked.forest, owned=asked.owned):
                await self._forests[asked.forest].take()
        except EsdedupError as error:
            log.warning("the forests stay as they are shared: %s", error)


def _is_for_a_moment(error: NotOwner | OwnerFailed) -> bool:
    """Return whether a forest may get its next owner at once."""
    return error.kind in _NO_OWNER if isinstance(error, OwnerFailed) else error.reason is None

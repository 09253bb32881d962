"""The owner's thread: takes the forest, decides, expires in between, and says when it is not the owner."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime

import pytest

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import ForestBusy, ForestLost, ForestOwner, ServerUnavailable
from esdedup.forest.store import at_once
from esdedup.sidecar import owner as module
from esdedup.sidecar.owner import NotOwner, Owner

ANOTHER = ForestBusy(
    "the forest 'f' is in use",
    forest="f",
    owner=ForestOwner(host="h", pid=1, since=datetime(2026, 1, 1, tzinfo=UTC), released=False),
)


class Forest:
    """Is taken, lost and released as a test says."""

    def __init__(self, *, refusals: int = 0, steps: int = 0) -> None:
        self.is_open = False
        self.refusals = refusals
        self.steps = steps
        self.threads: set[int] = set()
        self.closed = 0

    def open(self) -> None:
        self.threads.add(threading.get_ident())
        if self.refusals:
            self.refusals -= 1
            raise ANOTHER
        self.is_open = True

    def expiring(self) -> Iterator[Expired]:
        for step in range(self.steps):
            self.threads.add(threading.get_ident())
            yield Expired(leaves=step + 1)

    def close(self) -> None:
        self.is_open, self.closed = False, self.closed + 1

    def lose(self, error: Exception) -> None:
        self.is_open = False
        raise error


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)


@contextlib.asynccontextmanager
async def looked_after(owner: Owner[str, str]) -> AsyncIterator[None]:
    task = asyncio.create_task(owner.look_after())
    try:
        yield
    finally:
        task.cancel()


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_true():
            await asyncio.sleep(0.005)


def upper(articles: list[str]) -> tuple[list[str], Future[None]]:
    return [each.upper() for each in articles], at_once()


async def decided(owner: Owner[str, str], *articles: str) -> Sequence[str]:
    """Return what is decided, when it is durable."""
    return await (await owner.decide([*articles]))


def test_it_decides_once_it_owns_the_forest() -> None:
    async def run() -> None:
        forest = Forest(refusals=3)
        owner = Owner(forest, upper, name="f", expire_every_s=60)
        with pytest.raises(NotOwner, match="is being taken"):
            await decided(owner, "a")
        async with looked_after(owner):
            await until(lambda: isinstance(owner.ownership.reason, ForestBusy))
            with pytest.raises(NotOwner, match="the forest 'f' is in use") as refused:
                await decided(owner, "a")
            assert refused.value.reason is ANOTHER
            await until(lambda: owner.ownership.is_owner)
            assert await decided(owner, "a", "b") == ["A", "B"]
        await owner.close(timeout_s=5)
        assert (forest.closed, forest.is_open) == (1, False)
        assert len(forest.threads - {threading.get_ident()}) == len(forest.threads) == 1
        with pytest.raises(NotOwner):
            await decided(owner, "a")

    asyncio.run(run())


def test_a_forest_that_is_handed_over_is_left_to_others_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEFT_S", 0.1)

    async def run() -> None:
        forest, told = Forest(), list[bool]()
        owner = Owner(forest, upper, name="f", expire_every_s=60, on_owned=told.append)
        assert not await owner.hand_over()
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            # A batch that is begun before that is done must not take the forest again.
            go_on = threading.Event()
            busy = asyncio.create_task(owner.ask(lambda: go_on.wait(10)))
            handed_over = asyncio.create_task(owner.hand_over())
            decided = asyncio.create_task(owner.decide(["a"]))
            await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(NotOwner, match="is being taken"):
                await decided
            assert await busy
            assert await handed_over
            assert (forest.closed, forest.is_open, owner.ownership.is_changing_hands) == (1, False, True)
            await owner.take()
            assert not forest.is_open
            await until(lambda: owner.ownership.is_owner)
            assert told == [True, False, True]

    asyncio.run(run())


def test_a_forest_that_was_lost_is_taken_again() -> None:
    async def run() -> None:
        forest = Forest()
        lost = ForestLost("lost to another", forest="f")

        def assign(articles: list[str]) -> tuple[list[str], Future[None]]:
            if articles == ["lose"]:
                forest.lose(lost)
            return articles, at_once()

        told = list[bool]()
        owner = Owner(forest, assign, name="f", expire_every_s=60, on_owned=told.append)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            forest.refusals = 10**6
            with pytest.raises(ForestLost):
                await decided(owner, "lose")
            with pytest.raises(NotOwner, match=r"lost to another|in use"):
                await decided(owner, "a")
            forest.refusals = 0
            await until(lambda: owner.ownership.is_owner)
            assert await decided(owner, "a") == ["a"]
            assert told == [True, False, True]

    asyncio.run(run())


def test_an_error_of_one_batch_does_not_end_the_ownership() -> None:
    async def run() -> None:
        forest = Forest()

        def assign(articles: list[str]) -> tuple[list[str], Future[None]]:
            if articles == ["a"]:
                raise ServerUnavailable("no server answers")
            return articles, at_once()

        owner = Owner(forest, assign, name="f", expire_every_s=60)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            with pytest.raises(ServerUnavailable):
                await decided(owner, "a")
            assert await decided(owner, "b") == ["b"]

    asyncio.run(run())


def test_the_next_batch_is_decided_while_one_is_written() -> None:
    async def run() -> None:
        writes: list[Future[None]] = []

        def assign(articles: list[str]) -> tuple[list[str], Future[None]]:
            writes.append(Future())
            return articles, writes[-1]

        forest = Forest()
        owner = Owner(forest, assign, name="f", expire_every_s=60)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            first, second = [await owner.decide([name]) for name in "ab"]
            writes[0].set_result(None)
            assert await first == ["a"]
            forest.is_open, forest.refusals = False, 10**6
            writes[1].set_exception(ForestLost("lost to another", forest="f"))
            with pytest.raises(ForestLost):
                await second
            assert not owner.ownership.is_owner

    asyncio.run(run())


def test_batches_are_decided_while_much_expires() -> None:
    async def run() -> None:
        forest, seen = Forest(steps=10**9), list[Expired]()
        owner = Owner(forest, upper, name="f", expire_every_s=60, on_expired=seen.append)
        async with looked_after(owner):
            await until(lambda: len(seen) > 10)
            for _ in range(20):
                before = len(seen)
                async with asyncio.timeout(1):
                    await decided(owner, "a")
                # At most the step under way and the one that was waiting.
                assert len(seen) - before <= 3
        assert [each.leaves for each in seen[:3]] == [1, 2, 3]

    asyncio.run(run())


def test_it_expires_on_schedule() -> None:
    async def run() -> None:
        forest, seen = Forest(steps=2), list[Expired]()
        owner = Owner(forest, upper, name="f", expire_every_s=0.2, on_expired=seen.append)
        started_s = time.monotonic()
        async with looked_after(owner):
            await until(lambda: len(seen) == 4)
        assert time.monotonic() - started_s >= 0.2

    asyncio.run(run())


def test_an_owner_that_hangs_does_not_keep_the_process() -> None:
    async def run() -> None:
        forest, go_on = Forest(), threading.Event()

        def assign(articles: list[str]) -> tuple[list[str], Future[None]]:
            go_on.wait(10)
            return articles, at_once()

        owner = Owner(forest, assign, name="f", expire_every_s=60)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            deciding = asyncio.create_task(decided(owner, "a"))
            await asyncio.sleep(0.02)
            async with asyncio.timeout(2):
                await owner.close(timeout_s=0.05)
            assert forest.closed == 0
            go_on.set()
            assert await deciding == ["a"]

    asyncio.run(run())


def test_a_forest_that_is_released_at_the_end_is_not_taken_again() -> None:
    async def run() -> None:
        forest, looking, go_on = Forest(), threading.Event(), threading.Event()

        def look() -> None:
            looking.set()
            go_on.wait(10)

        owner = Owner(forest, upper, name="f", expire_every_s=60, on_look=look)
        async with looked_after(owner):
            await until(looking.is_set)
            closing = asyncio.create_task(owner.close(timeout_s=5))
            await asyncio.sleep(0)
            go_on.set()
            await closing
            # Some looks later.
            await asyncio.sleep(0.05)
            assert (forest.is_open, owner.ownership.is_owner) == (False, False)

    asyncio.run(run())

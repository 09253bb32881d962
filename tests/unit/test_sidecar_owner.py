"""The owner's thread: takes the forest, decides, expires in between, and says when it is not the owner."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime

import pytest

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import ForestBusy, ForestLost, ForestOwner, ServerUnavailable
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


def upper(articles: list[str]) -> list[str]:
    return [each.upper() for each in articles]


def test_it_decides_once_it_owns_the_forest() -> None:
    async def run() -> None:
        forest = Forest(refusals=3)
        owner = Owner(forest, upper, expire_every_s=60)
        with pytest.raises(NotOwner, match="is being taken"):
            await owner.decide(["a"])
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_standby)
            with pytest.raises(NotOwner, match="the forest 'f' is in use") as refused:
                await owner.decide(["a"])
            assert refused.value.reason is ANOTHER
            await until(lambda: owner.ownership.is_owner)
            assert await owner.decide(["a", "b"]) == ["A", "B"]
        await owner.close(timeout_s=5)
        assert (forest.closed, forest.is_open) == (1, False)
        assert len(forest.threads - {threading.get_ident()}) == len(forest.threads) == 1
        with pytest.raises(NotOwner):
            await owner.decide(["a"])

    asyncio.run(run())


def test_a_forest_that_was_lost_is_taken_again() -> None:
    async def run() -> None:
        forest = Forest()
        lost = ForestLost("lost to another", forest="f")

        def assign(articles: list[str]) -> list[str]:
            if articles == ["lose"]:
                forest.lose(lost)
            return articles

        owner = Owner(forest, assign, expire_every_s=60)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            forest.refusals = 10**6
            with pytest.raises(ForestLost):
                await owner.decide(["lose"])
            with pytest.raises(NotOwner, match=r"lost to another|in use"):
                await owner.decide(["a"])
            forest.refusals = 0
            await until(lambda: owner.ownership.is_owner)
            assert await owner.decide(["a"]) == ["a"]

    asyncio.run(run())


def test_an_error_of_one_batch_does_not_end_the_ownership() -> None:
    async def run() -> None:
        forest = Forest()

        def assign(articles: list[str]) -> list[str]:
            if articles == ["a"]:
                raise ServerUnavailable("no server answers")
            return articles

        owner = Owner(forest, assign, expire_every_s=60)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            with pytest.raises(ServerUnavailable):
                await owner.decide(["a"])
            assert await owner.decide(["b"]) == ["b"]

    asyncio.run(run())


def test_batches_are_decided_while_much_expires() -> None:
    async def run() -> None:
        forest, seen = Forest(steps=10**9), list[Expired]()
        owner = Owner(forest, upper, expire_every_s=60, on_expired=seen.append)
        async with looked_after(owner):
            await until(lambda: len(seen) > 10)
            for _ in range(20):
                before = len(seen)
                async with asyncio.timeout(1):
                    await owner.decide(["a"])
                # At most the step under way and the one that was waiting.
                assert len(seen) - before <= 3
        assert [each.leaves for each in seen[:3]] == [1, 2, 3]

    asyncio.run(run())


def test_it_expires_on_schedule() -> None:
    async def run() -> None:
        forest, seen = Forest(steps=2), list[Expired]()
        owner = Owner(forest, upper, expire_every_s=0.2, on_expired=seen.append)
        started_s = time.monotonic()
        async with looked_after(owner):
            await until(lambda: len(seen) == 4)
        assert time.monotonic() - started_s >= 0.2

    asyncio.run(run())


def test_an_owner_that_hangs_does_not_keep_the_process() -> None:
    async def run() -> None:
        forest, go_on = Forest(), threading.Event()

        def assign(articles: list[str]) -> list[str]:
            go_on.wait(10)
            return articles

        owner = Owner(forest, assign, expire_every_s=60)
        async with looked_after(owner):
            await until(lambda: owner.ownership.is_owner)
            deciding = asyncio.create_task(owner.decide(["a"]))
            await asyncio.sleep(0.02)
            async with asyncio.timeout(2):
                await owner.close(timeout_s=0.05)
            assert forest.closed == 0
            go_on.set()
            assert await deciding == ["a"]

    asyncio.run(run())

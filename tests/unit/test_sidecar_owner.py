"""The owner's thread opens the forest, assigns batches, expires nodes in between, and releases the forest."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import cast

import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.owner import Owner

from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.store import ForestSize
from esdedup.errors import EsdedupError, ForestBusy, ForestLost, ForestOwner, Refused, ServerUnavailable
from esdedup.forest.model import Assignment, Kind
from esdedup.forest.store import completed
from esdedup.sidecar import owner as module
from esdedup.sidecar.batcher import BatchLimits
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership, OwnerThread

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
URL = "http://other:9500"
HELD = ForestOwner(host="h", pid=1, since=SINCE, released=False, url=URL)
RELEASED = ForestOwner(host="h", pid=1, since=SINCE, released=True, url=URL)
NAMELESS = ForestOwner(host="h", pid=1, since=SINCE, released=False)
ANOTHER = ForestBusy("the forest 'f' is in use", forest="f", owner=NAMELESS)
LOST = ForestLost("lost to another", forest="f")
ASSIGNMENT = Assignment(Kind.NEW_ROOT, "n", "r", 1, 1_000, b"")
# Far longer than shutdown may take in these tests.
HANG_S = 20.0


class Forest:
    """A fake `Owner`, controlled by the test."""

    def __init__(self, *, refusals: int = 0, steps: int = 0) -> None:
        self.is_open = False
        self.refusals = refusals
        self.steps = steps
        self.expired = 0
        self.closed = 0
        # How often a standby has read the owner's writes, and how often it must read them to catch up.
        self.followed = self.behind = 0
        self.threads: set[int] = set()
        self.decided: list[str] = []
        # Called at the start of `open`, `expire_some` and `look_up`.
        self.on_open: Callable[[], None] = lambda: None
        self.on_expire: Callable[[], None] = lambda: None
        self.on_look_up: Callable[[], None] = lambda: None
        self.looked_up = 0
        self.write: Callable[[list[str]], Future[None]] = lambda _: completed()

    def open(self, *, at_once: bool = False) -> None:
        del at_once
        self.threads.add(threading.get_ident())
        self.on_open()
        if self.is_open:
            return
        if self.refusals:
            self.refusals -= 1
            raise ANOTHER
        self.is_open = True

    def decide(self, articles: Sequence[ArticleAction]) -> Future[None]:
        self.threads.add(threading.get_ident())
        texts = [each.text for each in articles]
        written = self.write(texts)
        self.decided += texts
        return written

    def follow(self) -> bool:
        self.threads.add(threading.get_ident())
        self.followed += 1
        return self.followed < self.behind

    def contents(self) -> ForestSize:
        self.threads.add(threading.get_ident())
        return ForestSize(6, 7, memory_bytes=8, learned_bytes=9, passages=10, filled=0.5)

    def look_up(self, text: str, site: str | None) -> Assignment | None:
        self.threads.add(threading.get_ident())
        self.on_look_up()
        self.looked_up += 1
        return ASSIGNMENT if text == "a" and site == "s" else None

    def expire_some(self) -> Expired | None:
        self.threads.add(threading.get_ident())
        self.on_expire()
        if self.expired == self.steps:
            return None
        self.expired += 1
        return Expired(leaves=self.expired)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.is_open, self.closed = False, self.closed + 1

    def lose(self) -> None:
        self.is_open, self.refusals = False, 10**6
        raise LOST


def article(text: str) -> ArticleAction:
    return ArticleAction(action={}, name=text, text=text, dated_ms=None)


def feeding_of(forest: Forest, metrics: Metrics | None = None) -> OwnerThread:
    limits = BatchLimits(batch_articles=10)
    return OwnerThread(cast(Owner, forest), forest="f", limits=limits, metrics=metrics or Metrics("f"))


@asynccontextmanager
async def owning(forest: Forest) -> AsyncIterator[OwnerThread]:
    async with feeding_of(forest) as feeding:
        await until(lambda: feeding.ownership.is_owner)
        yield feeding


async def decided(feeding: OwnerThread, *texts: str) -> list[str]:
    async with feeding.assigning([*map(article, texts)]):
        return list(texts)


async def until(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not is_true():
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_INTERVAL_S", 0.01)


async def test_articles_are_assigned_once_the_forest_is_owned() -> None:
    forest = Forest(refusals=3)
    feeding = feeding_of(forest)
    with pytest.raises(Refused, match="does not own the forest yet"):
        await decided(feeding, "a")
    async with feeding:
        assert feeding.ownership.error is ANOTHER
        with pytest.raises(Refused, match="the forest 'f' is in use"):
            await decided(feeding, "a")
        await until(lambda: feeding.ownership.is_owner)
        assert await decided(feeding, "a", "b") == ["a", "b"]
    assert (forest.closed, forest.is_open, forest.decided) == (1, False, ["a", "b"])
    # All operations on the forest run in one thread.
    assert len(forest.threads - {threading.get_ident()}) == len(forest.threads) == 1
    with pytest.raises(Refused, match="does not own the forest yet"):
        await decided(feeding, "a")


async def test_a_standby_reads_the_owners_writes() -> None:
    forest = Forest(refusals=10**6)
    forest.behind = 100
    async with feeding_of(forest) as feeding:
        # While there is more to read, the standby alternates reading and trying to open, without a pause.
        await until(lambda: forest.followed > 100)
        assert forest.refusals <= 10**6 - 100
        forest.refusals = 0
        await until(lambda: feeding.ownership.is_owner)
        followed = forest.followed
        assert await decided(feeding, "a") == ["a"]
    assert forest.followed == followed
    assert len(forest.threads - {threading.get_ident()}) == len(forest.threads) == 1


async def test_no_writes_are_read_while_elasticsearch_is_unavailable() -> None:
    forest = Forest()

    def fail() -> None:
        raise ServerUnavailable("no server answers")

    forest.on_open = fail
    async with feeding_of(forest) as feeding:
        await until(lambda: feeding.ownership.error)
        await asyncio.sleep(0.05)
    assert forest.followed == 0


async def test_only_the_owner_looks_up_texts() -> None:
    forest = Forest(refusals=3)
    feeding = feeding_of(forest)
    async with feeding:
        # A standby looks up nothing.
        assert (await feeding.look_up("a", "s"), forest.looked_up) == (None, 0)
        await until(lambda: feeding.ownership.is_owner)
        assert await feeding.look_up("a", "s") == ASSIGNMENT
        assert await feeding.look_up("a", None) is None
    assert await feeding.look_up("a", "s") is None
    assert (forest.decided, forest.looked_up) == ([], 2)
    assert len(forest.threads - {threading.get_ident()}) == len(forest.threads) == 1


async def test_a_batch_waits_for_few_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = Forest()
    forest.on_look_up = lambda: time.sleep(0.02)
    async with owning(forest) as feeding:
        asked = [asyncio.create_task(feeding.look_up("a", "s")) for _ in range(50)]
        await until(lambda: forest.looked_up)
        for number in range(3):
            before = forest.looked_up
            assert await decided(feeding, "b") == ["b"], number
            assert forest.looked_up <= before + 2
        assert forest.looked_up < 20
        # A look-up that the thread does not get to in time returns None.
        monkeypatch.setattr(module, "_LOOK_UP_S", 0.01)
        assert await feeding.look_up("a", "s") is None
        assert await asyncio.gather(*asked) == [ASSIGNMENT] * 50


@pytest.mark.parametrize(
    ("reason", "url"),
    [
        (ForestBusy("in use", forest="f", owner=HELD), URL),
        (ForestLost("lost", forest="f", owner=HELD), URL),
        (ForestBusy("in use", forest="f", owner=RELEASED), None),
        (ForestLost("lost", forest="f"), None),
        (ANOTHER, None),
        (ServerUnavailable("no server answers"), None),
        (None, None),
    ],
)
def test_a_standby_names_the_address_of_the_owner(reason: EsdedupError | None, url: str | None) -> None:
    ownership = Ownership(error=reason)
    assert ownership.url == url
    with pytest.raises(Refused) as raised:
        ownership.require()
    expected = f"at {url}" if url else str(reason or "this sidecar does not own the forest yet: try again")
    assert str(raised.value).endswith(expected)
    assert (raised.value.status, raised.value.kind) == (503, "not_owner")
    Ownership(is_owner=True).require()


async def test_a_lost_forest_is_retaken() -> None:
    forest = Forest()

    def write(_: list[str]) -> Future[None]:
        forest.lose()
        return completed()

    async with owning(forest) as feeding:
        forest.write = write
        with pytest.raises(ForestLost):
            await decided(feeding, "a")
        with pytest.raises(Refused, match=r"lost to another|in use"):
            await decided(feeding, "a")
        forest.write = lambda _: completed()
        forest.refusals = 0
        await until(lambda: feeding.ownership.is_owner)
        assert await decided(feeding, "a") == ["a"]


async def test_queued_articles_are_refused_if_the_forest_is_lost() -> None:
    forest, looking, may_proceed = Forest(), threading.Event(), threading.Event()

    def lose() -> None:
        looking.set()
        may_proceed.wait(HANG_S)
        forest.lose()

    async with owning(forest) as feeding:
        forest.on_expire = lose
        await until(looking.is_set)
        waiting = asyncio.create_task(decided(feeding, "a"))
        await asyncio.sleep(0.02)
        may_proceed.set()
        with pytest.raises(Refused, match="lost to another"):
            await waiting
        assert forest.decided == []


async def test_the_lease_is_kept_after_a_failed_batch() -> None:
    forest = Forest()

    def write(texts: list[str]) -> Future[None]:
        if texts == ["a"]:
            raise ServerUnavailable("no server answers")
        return completed()

    async with owning(forest) as feeding:
        forest.write = write
        with pytest.raises(ServerUnavailable):
            await decided(feeding, "a")
        assert feeding.ownership.is_owner
        assert await decided(feeding, "b") == ["b"]


async def test_the_next_batch_is_assigned_while_one_is_written() -> None:
    forest, writes = Forest(), list[Future[None]]()

    def write(_: list[str]) -> Future[None]:
        writes.append(Future())
        return writes[-1]

    async with owning(forest) as feeding:
        forest.write = write
        first = asyncio.create_task(decided(feeding, "a"))
        await until(lambda: forest.decided == ["a"])
        second = asyncio.create_task(decided(feeding, "b"))
        await until(lambda: forest.decided == ["a", "b"])
        writes[0].set_result(None)
        assert await first == ["a"]
        # A failed write shows that the forest is lost.
        forest.is_open, forest.refusals = False, 10**6
        writes[1].set_exception(LOST)
        with pytest.raises(ForestLost):
            await second
        assert not feeding.ownership.is_owner


async def test_expiry_does_not_delay_batches() -> None:
    forest = Forest(steps=10**9)
    # Each step of the expiry takes longer than the event loop needs between two jobs of the thread.
    forest.on_expire = lambda: time.sleep(0.005)
    async with owning(forest) as feeding:
        await until(lambda: forest.expired > 10)
        for _ in range(20):
            before = forest.expired
            async with asyncio.timeout(1):
                await decided(feeding, "a")
            # Before the batch, at most the step in progress and the waiting step run.
            assert forest.expired - before <= 3


async def test_only_an_owner_has_metrics_of_its_nodes() -> None:
    forest, metrics = Forest(refusals=1, steps=3), Metrics("f")

    def shown() -> list[float | None]:
        of_forest = "nodes pages memory_bytes filled_ratio"
        names = "lease_held", *(f"forest_{each}" for each in of_forest.split()), "boilerplate_passages"
        value = metrics.registry.get_sample_value
        return [value(f"esdedup_{name}", {"forest": "f"}) for name in names]

    def expired() -> float | None:
        return metrics.registry.get_sample_value("esdedup_expired_nodes_total")

    async with feeding_of(forest, metrics) as feeding:
        assert shown() == [0, 0, 0, 0, 0, 0]
        await until(lambda: feeding.ownership.is_owner)
        await until(lambda: shown() == [1, 6, 7, 8, 0.5, 10])
        await until(lambda: expired() == 3)
        # The next expiry counts its nodes from 0.
        forest.expired = 0
        await until(lambda: expired() == 6)
        await decided(feeding, "a")
        for step in ("decide", "write"):
            assert metrics.registry.get_sample_value(f"esdedup_batch_{step}_seconds_count") == 1
        forest.is_open, forest.refusals = False, 10**6
        await until(lambda: shown() == [0, 0, 0, 0, 0, 0])


async def test_shutdown_assigns_accepted_articles_and_releases_the_forest() -> None:
    forest, may_proceed = Forest(), threading.Event()

    def write(_: list[str]) -> Future[None]:
        may_proceed.wait(HANG_S)
        return completed()

    forest.write = write
    feeding = feeding_of(forest)
    await feeding.__aenter__()
    taken = [asyncio.create_task(decided(feeding, *"abcdefghijkl")) for _ in range(2)]
    await asyncio.sleep(0.02)
    closing = asyncio.create_task(feeding.__aexit__(None, None, None))
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="is shutting down"):
        await decided(feeding, "late")
    assert not forest.closed
    may_proceed.set()
    assert [await each for each in taken] == [[*"abcdefghijkl"]] * 2
    await closing
    assert (forest.closed, forest.is_open, len(forest.decided)) == (1, False, 24)


@pytest.mark.parametrize("is_owner", [True, False])
async def test_a_forest_released_at_shutdown_is_not_retaken(
    monkeypatch: pytest.MonkeyPatch, is_owner: bool
) -> None:
    """At shutdown, the thread may be opening or checking the forest."""
    monkeypatch.setattr(module, "_FIRST_ATTEMPT_S", 0.05)
    forest, looking, may_proceed = Forest(), threading.Event(), threading.Event()

    def look() -> None:
        if forest.is_open is is_owner:
            looking.set()
            may_proceed.wait(HANG_S)

    forest.on_open = look
    feeding = feeding_of(forest)
    await feeding.__aenter__()
    await until(looking.is_set)
    closing = asyncio.create_task(feeding.__aexit__(None, None, None))
    await asyncio.sleep(0.02)
    may_proceed.set()
    await closing
    # The pause is long enough for several attempts to open the forest.
    await asyncio.sleep(0.05)
    assert (forest.is_open, feeding.ownership.is_owner) == (False, False)


def test_shutdown_completes_even_if_elasticsearch_does_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_S", 0.1)
    forest, has_begun, is_back = Forest(), threading.Event(), threading.Event()

    def wait(_: list[str]) -> Future[None]:
        has_begun.set()
        is_back.wait()
        raise EsdedupError("no answer")

    async def end() -> None:
        async with owning(forest) as feeding:
            forest.write = wait
            waiting = asyncio.create_task(decided(feeding, "a"))
            await asyncio.to_thread(has_begun.wait)
        assert forest.closed == 0
        waiting.cancel()

    try:
        asyncio.run(asyncio.wait_for(end(), HANG_S))
    finally:
        is_back.set()


async def test_an_owner_that_cannot_write_reports_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_INTERVAL_S", 0.01)
    blocked = EsdedupError("the forest is blocked")

    def refuse() -> None:
        raise blocked

    def refused(_: object) -> Future[None]:
        written: Future[None] = Future()
        written.set_exception(blocked)
        return written

    forest = Forest()
    async with owning(forest) as feeding:
        forest.write, forest.on_open = refused, refuse
        with pytest.raises(EsdedupError, match="the forest is blocked"):
            await decided(feeding, "a")
        await asyncio.sleep(0.1)
        assert (feeding.ownership.is_owner, feeding.ownership.error) == (True, blocked)
        forest.on_open = lambda: None
        await until(lambda: feeding.ownership.error is None)

"""Runs the owner of a forest in a child process, with the times of arriving articles as its clock."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from typing import Any, TypeVar

from elasticsearch import helpers
from esdedup.ingest.actions import ArticleAction, read_action
from esdedup.ingest.owner import Owner as OwningForest
from esdedup.ingest.owner import OwnerSettings

from benchmarks.month.arrivals import Arrival
from benchmarks.processes import resident_bytes
from esdedup.elastic.client import connect
from esdedup.elastic.forest.store import ForestSize
from esdedup.elastic.meta import WritableIndex
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES

_HOUR_MS = 3_600_000

FOREST = "benchmark-month-forest"
RETENTION = timedelta(days=7)
# Articles that arrive within this time form a batch.
_BATCH_MS = _HOUR_MS // 2
_MEMORY_BYTES = 2**33
_WAIT_S = 120.0
_PAUSE_S = 0.02

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fed:
    """The costs of feeding some arrivals."""

    articles: int
    # The duration of each batch, until its nodes and articles were acknowledged.
    batches_s: list[float]
    expiring_s: float
    expired: int
    contents: ForestSize
    # The memory of the process.
    resident_bytes: int

    def after(self, other: "Fed") -> "Fed":
        """Return the total costs of `other`, whose arrivals were earlier, and of this object."""
        return dataclasses.replace(
            self,
            articles=other.articles + self.articles,
            batches_s=other.batches_s + self.batches_s,
            expiring_s=other.expiring_s + self.expiring_s,
            expired=other.expired + self.expired,
        )


class Owner:
    """A process that owns the forest until it is killed."""

    def __init__(self, url: str) -> None:
        # A spawned process does not inherit the imports of the main process.
        self._process = ProcessPoolExecutor(1, get_context("spawn"), _begin, (url,))

    def open(self) -> float:
        """Open the forest; return the seconds until all nodes are in memory."""
        return self._call(_open)

    def feed(self, arrivals: Sequence[Arrival], *, index: str) -> Fed:
        """Assign and index some arrivals."""
        return self._call(_feed, arrivals, index)

    def kill(self) -> None:
        """Kill the process, so that it cannot release the forest."""
        for process in list(self._process._processes.values()):
            process.kill()
        self._process.shutdown()

    def _call(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        return self._process.submit(work, *arguments).result()


class _Feeder:
    def __init__(self, url: str) -> None:
        self._client = connect(url)
        self._owner = OwningForest(
            self._client,
            OwnerSettings(
                retention=RETENTION,
                wait_s=_WAIT_S,
                memory_bytes=_MEMORY_BYTES,
                most_plausible_leaves=2**6 * MOST_PLAUSIBLE_LEAVES,
                expire_every_s=None,
            ),
            forest=FOREST,
            profile=DEFAULT,
        )
        self._expired_ms = 0

    def open(self) -> float:
        started = time.perf_counter()
        self._owner.open()
        while (contents := self._owner.contents()).memory_bytes == contents.learned_bytes:
            time.sleep(_PAUSE_S)
        return time.perf_counter() - started

    def feed(self, arrivals: Sequence[Arrival], index: str) -> Fed:
        batches_s, expiring_s, expired = list[float](), 0.0, 0
        for _, group in itertools.groupby(arrivals, key=lambda each: each.when_ms // _BATCH_MS):
            batch = list(group)
            now_ms = batch[-1].when_ms
            started = time.perf_counter()
            self._index(batch, index, now_ms)
            batches_s.append(time.perf_counter() - started)
            if now_ms >= self._expired_ms + _HOUR_MS:
                self._expired_ms = now_ms
                started = time.perf_counter()
                done = self._owner.expire()
                expired += done.leaves + done.roots + done.pages
                expiring_s += time.perf_counter() - started
        return Fed(
            articles=len(arrivals),
            batches_s=batches_s,
            expiring_s=expiring_s,
            expired=expired,
            contents=self._owner.contents(),
            resident_bytes=resident_bytes(),
        )

    def _index(self, batch: Sequence[Arrival], index: str, now_ms: int) -> None:
        articles = list(_actions(batch, index, now_ms))
        self._owner.assign(articles)
        helpers.bulk(self._client, map(_enriched, articles))


def _enriched(article: ArticleAction) -> dict[str, Any]:
    action = article.enriched()
    assert isinstance(action, dict)
    return action


def _actions(batch: Sequence[Arrival], index: str, now_ms: int) -> Iterator[ArticleAction]:
    for each in batch:
        source = {name: value for name, value in each.article.items() if name != "id"}
        action = {"_index": index, "_id": each.article["id"], "_source": source}
        read = read_action(
            action, WritableIndex(fields=Fields(), name=index), position=1, now_ms=now_ms, backfill=True
        )
        assert isinstance(read, ArticleAction)
        # Use the time of the simulated month instead of the clock.
        yield dataclasses.replace(read, dated_ms=now_ms)


# Set in an owner's process.
_feeder: _Feeder


def _begin(url: str) -> None:
    global _feeder  # noqa: PLW0603 - set once, when the process begins
    _feeder = _Feeder(url)


def _open() -> float:
    return _feeder.open()


def _feed(arrivals: Sequence[Arrival], index: str) -> Fed:
    return _feeder.feed(arrivals, index)

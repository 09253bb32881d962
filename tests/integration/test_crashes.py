"""A feeding process is killed at any moment; the next process continues as if nothing had happened."""

import dataclasses
import random
import re
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import VERIFIED, Dedup, Profile
from tests.support import exploring, stream
from tests.support.feeder import Job, Point, feed
from tests.support.learned import LEARNED, Pace, contents, documents, learned
from tests.support.names import Names

# The number of kill points that are tried concurrently, each with its own index and forest.
SIDE_BY_SIDE = 4
# The learner remembers the pages of the current and the previous period. A period is a series of pages with
# 800 records. Three batches have fewer records, so pages that arrive again after a crash are still known.
LARGER_PACE = Pace(block_pages=64, period_records=800)


@dataclasses.dataclass(frozen=True)
class State:
    """The state of a server after all articles have been fed."""

    # The root of each article; None if it has no fingerprint.
    articles: dict[str, str | None]
    # The root of each node.
    nodes: dict[str, str]
    # The learned boilerplate.
    learned: dict[str, Any]

    @classmethod
    def of(cls, es: Elasticsearch, job: Job) -> "State":
        return cls(stream.indexed(es, job.index), stream.nodes(es, job.forest), learned(es, job.forest))

    @classmethod
    def undisturbed(cls, job: Job) -> "State":
        """Return the state of a forest in memory that receives the articles in one batch."""
        store, roots, nodes = stream.fed(job.articles(), job.profile, learns_first=job.learns_first)
        return cls(roots, nodes, contents(store.boilerplate))


FOREST_WRITES = r"^PUT /\S+-w-\d+/_bulk"
SHARDS = pytest.mark.parametrize("shards", [None, 3, 5], ids=["a log", "3 shards", "5 shards"])


def kill_points(requests: list[str], chance: random.Random, *, first: str, shards: int | None) -> list[Point]:
    """Return points at which a run is killed: before a request, or after a write whose response is lost.

    With several shards, also after a write to the forest that only some shards performed.

    In `make nightly`, return all such points. In `make test`, return two points at different kinds of writes:
    after sending a write whose address contains `first`, and before sending another write. A kill at a read
    has the same effect as a kill at the next write.
    """
    before = [Point(signal=signal.SIGKILL, number=number) for number in range(1, len(requests) + 1)]
    kinds: dict[str, list[Point]] = {}
    for point, request in zip(before, requests, strict=True):
        method, target, _ = request.split(" ", 2)
        if method not in ("GET", "HEAD") and "_search" not in target and "_pit" not in target:
            kinds.setdefault(f"{method} {target.partition('?')[0]}", []).append(point)
    count = sum(re.search(FOREST_WRITES, request) is not None for request in requests) if shards else 0
    partly = [
        Point(signal=signal.SIGKILL, matching=FOREST_WRITES, number=number, when="partly")
        for number in range(1, count + 1)
    ]
    if exploring.EFFORT > 1:
        writes = [point for each in kinds.values() for point in each]
        return before + [unanswered(point) for point in writes] + partly
    chosen = chance.choice([kind for kind in kinds if first in kind])
    other = chance.choice([kind for kind in kinds if kind != chosen])
    some = chance.sample(partly, min(len(partly), 2))
    return [unanswered(chance.choice(kinds[chosen])), chance.choice(kinds[other]), *some]


def jobs(url: str, index_name: Names, **options: Any) -> Callable[[], Job]:
    """Return a function that makes equal jobs, each with new indices."""
    return lambda: Job(url=url, index=index_name("news"), forest=index_name("forest"), **options)


def unanswered(point: Point) -> Point:
    return dataclasses.replace(point, when="unanswered")


def assert_nothing_is_lost(es: Elasticsearch, job: Job, point: Point, expected: State) -> None:
    """Kill a process at `point`, let another process do the job, and compare the states."""
    Dedup(es).setup(job.index)
    try:
        died = feed(dataclasses.replace(job, point=point))
        assert died.exit_code == -signal.SIGKILL
        # By now, the learner may have forgotten the first pages, and would learn from them a second time.
        is_resumed = job.pace is not None and not job.learns_first
        again = feed(job.resumed(len(died.acknowledged)) if is_resumed else job)
        assert again.error is None
        found = State.of(es, job)
        assert died.acknowledged.items() <= found.articles.items()
        assert found == expected
    except AssertionError as error:
        error.add_note(f"killed at {point}")
        raise
    finally:
        es.options(ignore_status=404).indices.delete(index=f"{job.index},{job.forest}")


@SHARDS
@pytest.mark.parametrize("profile", exploring.PROFILES, ids=lambda profile: profile.name)
def test_a_kill_at_any_request_changes_no_root(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, profile: Profile, shards: int | None
) -> None:
    new_job = jobs(elasticsearch_url, index_name, profile=profile, forest_shards=shards)
    job = new_job()
    Dedup(es).setup(job.index)
    chance = exploring.new_random(f"kill points of {profile.name}")
    points = kill_points(feed(job).requests, chance, first="_bulk", shards=shards)
    expected = State.of(es, job)
    assert expected == State.undisturbed(job)
    assert len(set(expected.articles.values())) < len(expected.nodes) < len(expected.articles) == job.count
    assert_nothing_is_lost_at(points, new_job, es, expected)


@SHARDS
@pytest.mark.parametrize("learns_first", [False, True])
def test_a_feeder_killed_while_learning_learns_everything_once(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, learns_first: bool, shards: int | None
) -> None:
    """The learner's blocks and periods of pages end within batches; outdated documents are deleted."""
    # In `make nightly`, use several blocks of the usual size.
    count, batch_size, pace = (48, 3, Pace()) if exploring.EFFORT <= 1 else (400, 60, LARGER_PACE)
    if learns_first:
        # No page may be forgotten, since the next process learns from all pages again. The last pages do not
        # fill a block.
        pace = dataclasses.replace(pace, period_records=100_000, part_bytes=1_500)
        count = count * 3 // 4 - 1

    new_job = jobs(
        elasticsearch_url,
        index_name,
        profile=VERIFIED,
        forest_shards=shards,
        pace=pace,
        learns_first=learns_first,
        count=count,
        batch_size=batch_size,
    )
    with pace.kept():
        job = new_job()
        Dedup(es).setup(job.index)
        chance = exploring.new_random(f"learns first: {learns_first}")
        # While the feeder learns from articles, all its writes are `_bulk` requests.
        points = kill_points(feed(job).requests, chance, first="_bulk", shards=shards)
        expected = State.of(es, job)
        assert expected == State.undisturbed(job)
        assert any(value >= LEARNED for (value,) in expected.learned["passages"].values())
        assert (documents(es, job.forest)[0] == "learned-1") == learns_first
        assert_nothing_is_lost_at(points, new_job, es, expected)


def assert_nothing_is_lost_at(
    points: list[Point], new_job: Callable[[], Job], es: Elasticsearch, expected: State
) -> None:
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        trials = [pool.submit(assert_nothing_is_lost, es, new_job(), point, expected) for point in points]
        for trial in trials:
            trial.result()

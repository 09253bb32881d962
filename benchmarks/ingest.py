"""Compares indexing with `Dedup` and through the sidecar with plain indexing."""

import concurrent.futures
import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.rows import Row, duration_s, less_is_better, more_is_better, rate
from benchmarks.server import Run
from esdedup import VERIFIED, Dedup, Profile
from tests import sample
from tests.support.sidecar_process import SidecarProcess, running

Action = dict[str, Any]
Send = Callable[[Iterable[Action]], object]

INDEX, FOREST = "benchmark-articles", "benchmark-forest"
PLAIN = "helpers.bulk of the articles as they are"
COUNT = 12_000
ROUNDS = 5
# Microseconds of processor time an article, in addition to plain indexing: Elasticsearch's for nodes and
# learned boilerplate (24) and for the articles' fields (18); the owner's; and the sidecar's for requests.
SERVER_US, OWNER_US, HOP_US = 42.0, 75.0, 20.0
_CHUNK = 500
_KEPT_WHOLE = VERIFIED.with_changes(keep_boilerplate=True)


class Spent(NamedTuple):
    """The cost of feeding."""

    wall_s: float
    # The processor time of this process and of a sidecar, and that of Elasticsearch.
    feeding_s: float
    server_s: float

    @property
    def processor_s(self) -> float:
        return self.feeding_s + self.server_s


def ingest(run: Run) -> list[Row]:
    """Feed the sample corpus to an empty index, with each configuration in turn."""
    actions = actions_of(run.size(COUNT))
    ways = {"embedded": (VERIFIED, 2), "one thread": (VERIFIED, 1), "pages kept whole": (_KEPT_WHOLE, 2)}
    spent: dict[str, list[Spent]] = {name: [] for name in (PLAIN, *ways)}
    with server.client(run, lifetime_s=3_600) as client:
        # Let the server compile its hot code before the measurement.
        empty(client)
        bulk(client, actions)
        for _ in range(run.size(ROUNDS)):
            empty(client)
            spent[PLAIN].append(spent_by(client, lambda: bulk(client, actions)))
            for name, (profile, workers) in ways.items():
                spent[name].append(_embedded(client, actions, profile, workers))
    cases = {name: f"{len(actions):,} articles, {name}" for name in ways}
    rows = [
        row for name, case in cases.items() for row in compared("ingest", case, spent[name], spent[PLAIN])
    ]
    name = next(iter(ways))
    own = beyond_plain(
        *("ingest", cases[name], spent[name], spent[PLAIN]), count=len(actions), feeding_us=OWNER_US
    )
    return [*rows, *own]


def spent_by(
    client: Elasticsearch, work: Callable[[], object], *, sidecar_s: Callable[[], float] = lambda: 0.0
) -> Spent:
    """Do the work, and return its cost.

    Args:
        client: A client of the server, whose processor time is included.
        work: The work to measure.
        sidecar_s: Returns the processor time of a sidecar so far.
    """

    def feeding_s() -> float:
        return time.process_time() + sidecar_s()

    before_s, server_before_s = feeding_s(), server.processor_s(client)
    began_s = time.perf_counter()
    work()
    wall_s = time.perf_counter() - began_s
    return Spent(wall_s, feeding_s() - before_s, server.processor_s(client) - server_before_s)


def compared(table: str, case: str, ours: Sequence[Spent], plain: Sequence[Spent]) -> Iterator[Row]:
    """Compare the median costs with the median costs of plain bulk requests."""
    for part, name in ((case, "wall_s"), (f"{case}, total processor time", "processor_s")):
        yield less_is_better(table, part, _median_s(ours, name), PLAIN, _median_s(plain, name), "s")


def _median_s(spent: Sequence[Spent], name: str) -> float:
    return median(getattr(each, name) for each in spent)


def beyond_plain(
    table: str, case: str, ours: Sequence[Spent], plain: Sequence[Spent], *, count: int, feeding_us: float
) -> Iterator[Row]:
    """Show what `count` articles take in addition to plain indexing, next to its budget per article."""
    for part, name, budget_us in (
        ("feeding", "feeding_s", feeding_us),
        ("Elasticsearch", "server_s", SERVER_US),
    ):
        yield Row(
            table=table,
            case=f"{case}: {part} in addition to plain",
            ours=(_median_s(ours, name) - _median_s(plain, name)) / count * 1e6,
            theirs=budget_us,
            unit="µs/article",
            against="its budget",
        )


def actions_of(count: int) -> list[Action]:
    """Return articles of the sample corpus as actions."""
    return [{"_index": INDEX, "_id": article["id"], "_source": article} for article in sample.articles(count)]


def empty(client: Elasticsearch) -> None:
    """Make an empty, plain index, and delete the forest."""
    for index in (INDEX, FOREST):
        client.options(ignore_status=404).indices.delete(index=index)
    client.indices.create(index=INDEX)


def bulk(client: Elasticsearch, actions: Iterable[Action]) -> None:
    # Send copies, because the helper modifies actions.
    helpers.bulk(client, ({**action} for action in actions), chunk_size=_CHUNK)


@contextlib.contextmanager
def opened(client: Elasticsearch, **options: Any) -> Iterator[Dedup]:
    """Yield a `Dedup` with an open forest, and an empty index that is set up."""
    empty(client)
    with Dedup(client, forest=FOREST, **options) as dedup:
        dedup.setup(INDEX)
        # Make and open the forest before the measurement, because a process does so only once.
        list(dedup.enrich([{"_id": "first", "text": "The first article of all."}]))
        yield dedup


def _embedded(client: Elasticsearch, actions: list[Action], profile: Profile, workers: int) -> Spent:
    with opened(client, profile=profile, workers=workers) as dedup:
        return spent_by(client, lambda: bulk(client, dedup.enrich({**action} for action in actions)))


_FEEDERS = 8
_LONE = 300
_LONE_PLAIN = "the same request to Elasticsearch"
_IN_PROCESS = "the same threads with one Dedup that owns the forest"


def sidecar(run: Run) -> list[Row]:
    """Feed the sample corpus with one feeder and with several; then send articles one by one."""
    actions = actions_of(run.size(COUNT))
    with server.client(run, lifetime_s=3_600) as client:
        return [
            *_feeding(client, actions, rounds=run.size(ROUNDS)),
            *_lone(client, actions[: run.size(_LONE)]),
            _assigning(client, actions, rounds=run.size(ROUNDS)),
        ]


def _feeding(client: Elasticsearch, actions: list[Action], *, rounds: int) -> Iterator[Row]:
    """Compare `helpers.bulk` through the sidecar with `helpers.bulk` to Elasticsearch."""
    url = server.url_of(client)
    for feeders in (1, _FEEDERS):
        parts = [actions[number::feeders] for number in range(feeders)]
        plain: list[Spent] = []
        ours: dict[int, list[Spent]] = {1: [], 2: []}
        for _ in range(rounds):
            empty(client)
            plain.append(spent_by(client, functools.partial(feed, url, parts)))
            for workers, spent in ours.items():
                with through_sidecar(client, "--workers", str(workers)) as through:
                    spent.append(
                        spent_by(
                            client,
                            functools.partial(feed, through.url, parts),
                            sidecar_s=lambda of=through: of.metric("process_cpu_seconds_total"),
                        )
                    )
        for workers, spent in ours.items():
            case = f"{len(actions):,} articles, {feeders} at once, {workers} threads"
            yield from compared("sidecar", case, spent, plain)
            if workers == 1:
                yield from beyond_plain(
                    *("sidecar", case, spent, plain), count=len(actions), feeding_us=OWNER_US + HOP_US
                )


def _lone(client: Elasticsearch, actions: list[Action]) -> Iterator[Row]:
    """Compare requests of one article each, sent in turn to the sidecar and to Elasticsearch."""
    with (
        through_sidecar(client) as sidecar,
        Elasticsearch(sidecar.url) as through,
        Elasticsearch(server.url_of(client)) as straight,
    ):
        spent_s: dict[Elasticsearch, list[float]] = {through: [], straight: []}
        for action in actions:
            operations = [{"index": {"_index": INDEX, "_id": action["_id"]}}, action["_source"]]
            for one, each_s in spent_s.items():
                each_s.append(duration_s(functools.partial(one.bulk, operations=operations)))
    for percentile in (50, 99):
        ours_ms, plain_ms = (1_000 * float(np.percentile(each_s, percentile)) for each_s in spent_s.values())
        case = f"a lone article by _bulk, p{percentile}"
        yield less_is_better("sidecar", case, ours_ms, _LONE_PLAIN, plain_ms, "ms")


def _assigning(client: Elasticsearch, actions: list[Action], *, rounds: int) -> Row:
    """Compare threads that get roots from the sidecar with threads that share a `Dedup`."""
    parts = [actions[number::_FEEDERS] for number in range(_FEEDERS)]
    ours_s, theirs_s = [], []
    for _ in range(rounds):
        with through_sidecar(client) as sidecar, Dedup(client, forest=FOREST, sidecar=sidecar.url) as dedup:
            ours_s.append(_at_once_s(parts, lambda part: list(dedup.enrich(part))))
        empty(client)
        with Dedup(client, forest=FOREST) as dedup:
            dedup.setup(INDEX)
            theirs_s.append(_at_once_s(parts, lambda part: list(dedup.enrich(part))))
    ours, theirs = rate(len(actions), ours_s), rate(len(actions), theirs_s)
    case = f"roots by /v1/enrich, {_FEEDERS} at once"
    return more_is_better("sidecar", case, ours, _IN_PROCESS, theirs, "articles/s")


@contextlib.contextmanager
def through_sidecar(client: Elasticsearch, *options: str) -> Iterator[SidecarProcess]:
    """Yield a sidecar in front of an empty index that is set up."""
    empty(client)
    with Dedup(client, forest=FOREST) as dedup:
        dedup.setup(INDEX)
    with running(server.url_of(client), *options, forest=FOREST) as sidecar:
        yield sidecar


def feed(url: str, parts: list[list[Action]]) -> None:
    with Elasticsearch(url, request_timeout=120) as client:
        _at_once_s(parts, lambda part: bulk(client, part))


def _at_once_s(parts: list[list[Action]], work: Callable[[list[Action]], object]) -> float:
    """Return the duration of work shared by threads."""
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as threads:
        return duration_s(lambda: list(threads.map(work, parts)))

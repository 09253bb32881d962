"""Articles through the sidecar, against the same requests to Elasticsearch itself."""

import concurrent.futures
import contextlib
import functools
from collections.abc import Callable, Iterator

import numpy as np
from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.ingest import (
    COUNT,
    FOREST,
    INDEX,
    ROUNDS,
    Action,
    Spent,
    actions_of,
    bulk,
    compared,
    empty,
    spent_by,
)
from benchmarks.rows import Row, duration_s, less_is_better, more_is_better, rate
from benchmarks.run import Run
from esdedup import Dedup
from tests.support.sidecar_process import SidecarProcess, running

_FEEDERS = 8
_LONE = 300
_LONE_PLAIN = "the same request to Elasticsearch"
_IN_PROCESS = "the same threads with one Dedup that owns the forest"


def sidecar(run: Run) -> list[Row]:
    """Feed the sample corpus by one feeder and by several; then send articles one by one."""
    actions = actions_of(run.size(COUNT))
    with server.client(run, lifetime_s=3_600) as client:
        return [
            *_feeding(client, actions, rounds=run.size(ROUNDS)),
            *_lone(client, actions[: run.size(_LONE)]),
            _assigning(client, actions, rounds=run.size(ROUNDS)),
        ]


def _feeding(client: Elasticsearch, actions: list[Action], *, rounds: int) -> Iterator[Row]:
    """Compare `helpers.bulk` through the sidecar with that to Elasticsearch."""
    url = server.url_of(client)
    for feeders in (1, _FEEDERS):
        parts = [actions[number::feeders] for number in range(feeders)]
        plain: list[Spent] = []
        ours: dict[int, list[Spent]] = {1: [], 2: []}
        for _ in range(rounds):
            empty(client)
            plain.append(spent_by(client, functools.partial(_feed, url, parts)))
            for workers, spent in ours.items():
                with _emptied(client, "--workers", str(workers)) as through:
                    spent.append(
                        spent_by(
                            client,
                            functools.partial(_feed, through.url, parts),
                            sidecar_s=lambda of=through: of.metric("process_cpu_seconds_total"),
                        )
                    )
        for workers, spent in ours.items():
            case = f"{len(actions):,} articles, {feeders} at once, {workers} threads"
            yield from compared("sidecar", case, spent, plain)


def _lone(client: Elasticsearch, actions: list[Action]) -> Iterator[Row]:
    """Compare requests of one article each, one after the other, in turn."""
    with (
        _emptied(client) as sidecar,
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
    """Compare threads that enrich articles with roots from the sidecar with those that share the forest."""
    parts = [actions[number::_FEEDERS] for number in range(_FEEDERS)]
    ours_s, theirs_s = [], []
    for _ in range(rounds):
        with _emptied(client) as sidecar, Dedup(client, forest=FOREST, sidecar=sidecar.url) as dedup:
            ours_s.append(_at_once_s(parts, lambda part: list(dedup.enrich(part))))
        empty(client)
        with Dedup(client, forest=FOREST) as dedup:
            dedup.setup(INDEX)
            theirs_s.append(_at_once_s(parts, lambda part: list(dedup.enrich(part))))
    ours, theirs = rate(len(actions), ours_s), rate(len(actions), theirs_s)
    case = f"roots by /v1/enrich, {_FEEDERS} at once"
    return more_is_better("sidecar", case, ours, _IN_PROCESS, theirs, "articles/s")


@contextlib.contextmanager
def _emptied(client: Elasticsearch, *options: str) -> Iterator[SidecarProcess]:
    """Yield a sidecar before an empty index that is set up."""
    empty(client)
    with Dedup(client, forest=FOREST) as dedup:
        dedup.setup(INDEX)
    with running(server.url_of(client), *options, forest=FOREST) as sidecar:
        yield sidecar


def _feed(url: str, parts: list[list[Action]]) -> None:
    with Elasticsearch(url, request_timeout=120) as client:
        _at_once_s(parts, lambda part: bulk(client, part))


def _at_once_s(parts: list[list[Action]], work: Callable[[list[Action]], object]) -> float:
    """Return how long it takes threads to do each a part."""
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as threads:
        return duration_s(lambda: list(threads.map(work, parts)))

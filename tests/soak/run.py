"""Runs a soak test of two sidecars with many feeders."""

import contextlib
import dataclasses
import itertools
import json
import random
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from esdedup import Dedup
from esdedup.elastic.client import connect
from tests.soak.feeders import FeederProcess, Job, Refused, articles
from tests.soak.outcome import Indices, Memory, Outcome, is_flat, outcome_of, shown
from tests.soak.readers import Readers
from tests.soak.stage import Disruption, Server, Stage

_SAMPLE_S, _REPORT_S = 2.0, 10.0
# The relative number of articles that a feeder gets; feeders that send articles one by one get fewer.
_USUAL_TURNS = 10
_TURNS = {"small": 1}
# Limits on the median and the longest wait of single documents, while another feeder sends thousands per
# request and no disruption is in effect. `make soak-sidecars MINUTES=3 ARTICLES=12000` measured 1.3 s and
# 3.3 s, and no 429, on two cores that many other programs were using.
_USUAL_WAIT_S, _LONGEST_WAIT_S = 2.5, 10.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a soak test."""

    articles: int
    # The time in which all articles are sent if nothing delays them.
    seconds: float
    # The kind of each feeder process.
    feeders: Sequence[str]
    # Disruptions, each with the fraction of `seconds` after which it happens.
    events: Sequence[tuple[float, Callable[[Stage], None]]]
    lease_ttl_s: float
    seed: int = 1
    indices: Indices = dataclasses.field(default_factory=Indices)
    # The number of shards of the articles' index; None for the server's default.
    shards: int | None = None
    # How long a node of a cluster stays away, and the number of articles of an index that readers check. With
    # 0 articles, there are no readers.
    away_s: float = 10.0
    settled: int = 0
    # Further options of the sidecars.
    options: Sequence[str] = ()
    # Runs a proxy in front of the sidecars with these addresses, and yields the proxy's address.
    proxy: Callable[[list[str]], AbstractContextManager[str]] | None = None
    # The fraction of `seconds` after which the memory of a process must no longer grow.
    flat_from: float = 1 / 3


def run(plan: Plan, folder: Path, url: str, *, server: Server | None = None) -> Outcome:
    """Feed articles during the plan's disruptions, then check the outcome; print progress.

    Args:
        plan: The plan.
        folder: A folder for the feeders' files.
        url: The address of Elasticsearch.
        server: The server at this address, if the plan restarts it.
    """
    given = {each["_id"]: each for each in articles(plan.articles, seed=plan.seed)}
    with connect(url) as es:
        with Dedup(es, forest=plan.indices.forest) as dedup:
            dedup.setup(plan.indices.articles, shards=plan.shards)
        readers = _readers(plan, url) if plan.settled else None
        stage = Stage(
            url,
            index=plan.indices.articles,
            forest=plan.indices.forest,
            lease_ttl_s=plan.lease_ttl_s,
            server=server,
            away_s=plan.away_s,
            options=plan.options,
        )
        held = contextlib.ExitStack()
        addresses = [held.enter_context(plan.proxy(stage.addresses))] if plan.proxy else stage.addresses
        began_s = time.monotonic()
        feeders = [FeederProcess(each) for each in _jobs(plan, list(given.values()), folder, addresses, url)]
        watch = _Watch(stage, feeders, has_proxy=plan.proxy is not None)
        try:
            reading = (
                readers.running([url, ",".join(stage.addresses)]) if readers else contextlib.nullcontext()
            )
            with watch.running(), reading:
                for part, event in plan.events:
                    _wait(began_s + part * plan.seconds, feeders)
                    event(stage)
                _wait(float("inf"), feeders)
            fed_s = time.monotonic() - began_s
            faults = [fault for each in feeders if (fault := each.fault) is not None]
            faults += watch.faults(began_s + plan.flat_from * plan.seconds)
            waits_s = _waits_s(feeders, stage.disruptions)
            faults += _unfair(waits_s)
        finally:
            for each in feeders:
                each.close()
            held.close()
            ended = stage.close()
        _report(f"all articles were fed after {fed_s:.0f} s; checking the outcome")
        outcome = outcome_of(es, given, plan.indices, report=_report)
    refused = Counter(f"responses with status {each.status}" for feeder in feeders for each in feeder.refused)
    refused_small = sum(
        each.status == 429 for feeder in feeders if feeder.kind == "small" for each in feeder.refused
    )
    figures = {
        "seconds of feeding": round(fed_s),
        "seconds in which a feeder was refused, at most": round(max(each.refused_s for each in feeders)),
        **outcome.figures,
        **refused,
    }
    if waits_s:
        figures |= {
            "single documents accepted without a disruption": len(waits_s),
            "ms median wait of these documents": round(1000 * statistics.median(waits_s)),
            "ms longest wait of these documents": round(1000 * max(waits_s)),
            "responses with status 429 to single documents": refused_small,
        }
    if readers:
        figures |= readers.figures
        faults += readers.faults
    return Outcome(figures, [*faults, *ended, *outcome.faults])


def _readers(plan: Plan, url: str) -> Readers:
    names = plan.indices
    return Readers(
        url,
        index=names.settled,
        forest=names.settled_forest,
        shards=plan.shards or 1,
        count=plan.settled,
        seed=plan.seed + 1,
    )


def _jobs(plan: Plan, given: Sequence[object], folder: Path, addresses: list[str], url: str) -> Iterator[Job]:
    turns = [at for at, kind in enumerate(plan.feeders) for _ in range(_TURNS.get(kind, _USUAL_TURNS))]
    # Shuffle, so that the articles of a story go to many feeders.
    random.Random(plan.seed).shuffle(turns)
    for at, kind in enumerate(plan.feeders):
        mine = [each for each, turn in zip(given, itertools.cycle(turns), strict=False) if turn == at]
        file = folder / f"{at}.jsonl"
        file.write_text("".join(f"{json.dumps(each)}\n" for each in mine))
        yield Job(
            kind=kind,
            # Half of the feeders try the sidecars in reverse order.
            sidecars=addresses if at % 2 else addresses[::-1],
            elasticsearch=url,
            index=plan.indices.articles,
            forest=plan.indices.forest,
            file=str(file),
            pace=len(mine) / plan.seconds,
        )


def _waits_s(feeders: list[FeederProcess], disruptions: list[Disruption]) -> list[float]:
    """Return the waits of those single documents that no disruption can have delayed."""
    return [
        each.seconds
        for feeder in feeders
        for each in feeder.waited
        if not any(event.concerns(each.until_s - each.seconds, each.until_s) for event in disruptions)
    ]


def _unfair(waits_s: list[float]) -> list[str]:
    if not waits_s or (statistics.median(waits_s) < _USUAL_WAIT_S and max(waits_s) < _LONGEST_WAIT_S):
        return []
    return [f"single documents waited {statistics.median(waits_s):.1f} s, and up to {max(waits_s):.1f} s"]


def _wait(until_s: float, feeders: list[FeederProcess]) -> None:
    while time.monotonic() < until_s and any(each.is_working for each in feeders):
        time.sleep(0.2)


class _Watch:
    """Samples the memory of the sidecars, and prints progress."""

    def __init__(self, stage: Stage, feeders: list[FeederProcess], *, has_proxy: bool) -> None:
        self._stage, self._feeders, self._has_proxy = stage, feeders, has_proxy
        self._memories: list[Memory] = []
        self._is_over = threading.Event()
        self._began_s = time.monotonic()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def faults(self, flat_from_s: float) -> list[str]:
        """Return faults in responses and in the use of memory, and print the use of memory."""
        found = [
            f"{each.kind} got {each.status}, Retry-After: {each.retry_after}, after "
            f"{each.at_s - self._began_s:.0f} s"
            for feeder in self._feeders
            for each in feeder.refused
            if not self._is_documented(each)
        ]
        # A process may have been handling a large request when it was killed, so only living processes are
        # compared.
        for memory in filter(lambda each: each.is_alive, self._memories):
            if (pair := memory.growth(flat_from_s)) is not None:
                parts = " and ".join(
                    f"{shown(each)} after {each.at_s - self._began_s:.0f} s" for each in pair
                )
                _report(f"memory of process {memory.sidecar.process.pid}: {parts}")
                if not is_flat(*pair):
                    found.append(f"the memory of a sidecar grows: {parts}")
        return found

    def _is_documented(self, refused: Refused) -> bool:
        """Return whether a response is as documented: a 429 or 503, even a standby's, says when to retry.

        A 502 is documented only during a disruption; Elasticsearch may have written the articles before
        failing. So is the 503 of a proxy, which does not say when to retry.
        """
        if refused.status == 502 or (self._has_proxy and refused.status == 503 and not refused.retry_after):
            return any(each.explains(refused.at_s) for each in self._stage.disruptions)
        return refused.status in {429, 503} and refused.retry_after is not None

    def _watch(self) -> None:
        reported_s = self._began_s
        reported = 0
        while not self._is_over.wait(_SAMPLE_S):
            known = [each.sidecar for each in self._memories]
            self._memories += [Memory(each) for each in self._stage.sidecars if each not in known]
            now_s = time.monotonic()
            for each in self._memories:
                each.take(now_s)
            for event in self._stage.disruptions[reported:]:
                reported += 1
                _report(f"{event.what}; both sidecars responded {event.until_s - event.from_s:.0f} s later")
            if now_s >= reported_s + _REPORT_S:
                reported_s = now_s
                self._report_state(now_s)

    def _report_state(self, now_s: float) -> None:
        kinds: Counter[str] = Counter()
        for each in self._feeders:
            kinds[each.kind] += each.fed
        memories = [shown(each.samples[-1]) for each in self._memories if each.is_alive and each.samples]
        fed = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
        _report(f"{now_s - self._began_s:5.0f} s: {kinds.total():,} articles ({fed}); {', '.join(memories)}")


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

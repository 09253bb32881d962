"""Measures how long it takes to import the package, run short commands, and take over a large forest."""

import contextlib
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.ingest import FOREST
from benchmarks.rows import Row, less_is_better
from benchmarks.server import Run
from benchmarks.signatures import Held
from esdedup.elastic.forest.store import ElasticStore
from esdedup.fingerprint.profile import VERIFIED
from esdedup.forest import Aging
from tests.support.sidecar_process import START_S, SidecarProcess, running, until

_TIMES = 10
_PROGRAMS = {
    "import esdedup": ("-c", "import esdedup"),
    "from esdedup import Dedup": ("-c", "from esdedup import Dedup"),
    "esdedup --version": ("-m", "esdedup", "--version"),
    "esdedup list --help": ("-m", "esdedup", "list", "--help"),
}
# The baseline: a program that uses Dedup has to import the Elasticsearch client anyway.
_PEERS = {"from esdedup import Dedup": ("import elasticsearch", ("-c", "import elasticsearch"))}
_EMPTY = ("an empty program", ("-c", "pass"))


def start(run: Run) -> Sequence[Row]:
    """Measure the processor time of whole processes, in milliseconds."""
    times = run.size(_TIMES)
    return [
        less_is_better("start", case, _least_ms(program, times), peer, _least_ms(theirs, times), "ms")
        for case, program in _PROGRAMS.items()
        for peer, theirs in [_PEERS.get(case, _EMPTY)]
    ]


def _least_ms(arguments: Sequence[str], times: int) -> float:
    """Return the minimum of several measurements, because the first one also reads files from disk."""
    return min(_once_ms(arguments) for _ in range(times))


def _once_ms(arguments: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


_MILLION = 1_000_000
_LEASE_TTL_S = 3
_MEMORY_BYTES = 2**33
_LOOK_S = 0.05
OPTIONS = ("--memory-bytes", str(_MEMORY_BYTES), "--lease-ttl-s", str(_LEASE_TTL_S))
"""The options of the sidecars that own the forest."""


def takeover(run: Run) -> list[Row]:
    """Start a sidecar for an ownerless forest; then stop, and later kill, an owner that has a standby."""
    count = run.size(_MILLION)
    with server.client(run, lifetime_s=4 * 3_600) as client:
        fill(client, count)
        url = server.url_of(client)
        started_s = time.perf_counter()
        with running(url, *OPTIONS, forest=FOREST):
            cold_s = time.perf_counter() - started_s
        owned_s, loaded_s = opened_s(client, count)
        # Each value is the time until the event. The second value excludes process start-up.
        found = {
            "a new process owns the forest": cold_s,
            "the same, without process start-up": owned_s,
            "all nodes are in memory": loaded_s,
            "a standby owns the forest after the owner ended": handed_over_s(url, OPTIONS, signal.SIGTERM),
            "the same after the owner was killed": handed_over_s(url, OPTIONS, signal.SIGKILL),
        }
        client.indices.delete(index=FOREST)
    return [
        Row(table="takeover", case=f"{count:,} nodes, {case}", ours=spent_s, unit="s")
        for case, spent_s in found.items()
    ]


def opened_s(client: Elasticsearch, count: int) -> tuple[float, float]:
    """Return the seconds until this process owns the forest, and until its nodes are in memory."""
    started_s = time.perf_counter()
    with ElasticStore(client, forest=FOREST, profile=VERIFIED, memory_bytes=_MEMORY_BYTES) as store:
        opened_s = time.perf_counter() - started_s
        while store.contents().memory_bytes < count * store.relation.dtype.itemsize:
            time.sleep(_LOOK_S)
        return opened_s, time.perf_counter() - started_s


def handed_over_s(url: str, options: tuple[str, ...], how: signal.Signals) -> float:
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(running(url, *options, forest=FOREST))
        standby = SidecarProcess(url, "--forest", FOREST, *options)
        stack.callback(standby.end)
        until(lambda: "following the forest" in standby.log, START_S, standby)
        started_s = time.perf_counter()
        owner.process.send_signal(how)
        until(standby.owns, START_S, standby)
        return time.perf_counter() - started_s


def fill(
    client: Elasticsearch,
    count: int,
    *,
    retention: timedelta = timedelta(days=30),
) -> None:
    client.options(ignore_status=404).indices.delete(index=FOREST)
    held = Held.random(VERIFIED, count, np.random.default_rng(count))
    aging = Aging.of(retention=retention)
    with ElasticStore(
        client, forest=FOREST, profile=VERIFIED, aging=aging, memory_bytes=_MEMORY_BYTES
    ) as store:
        held.fill(store)

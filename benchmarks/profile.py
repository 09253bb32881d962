"""Measures the processor time of feeding, by function and thread or, in Elasticsearch, by kind of request."""

import collections
import contextlib
import dataclasses
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.ingest import (
    COUNT,
    FOREST,
    INDEX,
    Action,
    actions_of,
    bulk,
    empty,
    feed,
    opened,
    through_sidecar,
)
from benchmarks.server import Run

# Samples per second.
_RATE = 400
_ROWS = 20
# Functions with a smaller share are not printed.
_LEAST_SHARE = 0.005
_FEEDERS = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """The cost of one function, or of one kind of request in the server."""

    table: str
    part: str
    share: float
    us_an_article: float

    def cells(self) -> dict[str, str]:
        return {
            "part": self.part,
            "of the process": f"{self.share:.1%}",
            "µs an article": f"{self.us_an_article:.1f}",
        }


# The operations of bulk requests, by kind.
_Requests = dict[str, list[list[Any]]]

_COPY = "benchmark-copy"
# The settings that are copied with an index.
_SETTINGS = {"number_of_shards", "number_of_replicas", "refresh_interval", "codec", "mapping", "sort"}

# Functions in which threads wait. The profiler counts waiting if it cannot see which threads are idle.
_WAITS = (
    "_work (esdedup/serial_thread.py)",
    "_worker (concurrent/",
    ".wait (threading.py)",
    ".select (selectors.py)",
    ".readinto (socket.py)",
)


def profile(run: Run) -> list[Part]:
    """Feed the sample corpus in-process and through the sidecar, and sample the forest's owner."""
    actions = actions_of(run.size(COUNT))
    with server.client(run, lifetime_s=3_600) as client:
        return [
            *_embedded(client, actions),
            *_sidecar(client, actions, feeders=1),
            *_sidecar(client, actions, feeders=_FEEDERS),
            *_server(client, actions),
        ]


def _embedded(client: Elasticsearch, actions: list[Action]) -> Iterator[Part]:
    with opened(client) as dedup, _sampled(os.getpid()) as stacks:
        bulk(client, dedup.enrich({**action} for action in actions))
    yield from _table("profile: embedded", stacks, len(actions))


def _sidecar(client: Elasticsearch, actions: list[Action], *, feeders: int) -> Iterator[Part]:
    parts = [actions[number::feeders] for number in range(feeders)]
    with through_sidecar(client) as sidecar, _sampled(sidecar.process.pid) as stacks:
        feed(sidecar.url, parts)
    yield from _table(f"profile: sidecar, {feeders} at once", stacks, len(actions))


@contextlib.contextmanager
def _sampled(pid: int) -> Iterator[collections.Counter[str]]:
    """Sample a process while the body runs; then count the samples by thread and innermost function."""
    found: collections.Counter[str] = collections.Counter()
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise FileNotFoundError("py-spy is missing: `make env` installs it")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stacks"
        options = ["--pid", str(pid), "--rate", str(_RATE), "--threads", "--function", "--format", "raw"]
        command = [program, "record", *options, "--output", str(path)]
        sampling = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # py-spy needs a moment to find the interpreter.
        time.sleep(1)
        try:
            yield found
        finally:
            sampling.send_signal(signal.SIGINT)
            sampling.wait(timeout=60)
        for line in path.read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            # A line is like "thread (0x7f): esdedup-owner;…;assign (esdedup/forest/nodes.py:120)".
            thread, *frames = re.sub(r"^thread \(\w+\): |:\d+(?=\))", "", stack).split(";")
            if frames and not any(wait in frames[-1] for wait in _WAITS):
                found[f"{thread}: {frames[-1]}"] += int(count)


def _table(table: str, stacks: collections.Counter[str], articles: int) -> Iterator[Part]:
    total = sum(stacks.values())
    for part, count in [("all", total), *stacks.most_common(_ROWS)]:
        if count >= _LEAST_SHARE * total:
            us = 1e6 * count / _RATE / articles
            yield Part(table=table, part=part, share=count / total, us_an_article=us)


def _server(client: Elasticsearch, actions: list[Action]) -> Iterator[Part]:
    """Record the requests of feeding, then send each kind alone, and read the server's processor time."""
    empty(client)
    with _recorded() as sent:
        bulk(client, actions)
    spent_s = {"articles without our fields": _replayed_s(client, INDEX, sent["articles"])}
    with opened(client) as dedup, _recorded() as sent:
        bulk(client, dedup.enrich({**action} for action in actions))
    for kind, requests in sent.items():
        # Requests go to a copy, because only the owner may write to the forest's index.
        spent_s[kind] = _replayed_s(client, INDEX if kind == "articles" else FOREST, requests)
    for kind, each_s in spent_s.items():
        us = 1e6 * each_s / len(actions)
        part = f"{kind}: {len(sent.get(kind, sent['articles'])):,} requests"
        yield Part(table="profile: server", part=part, share=each_s / sum(spent_s.values()), us_an_article=us)


@contextlib.contextmanager
def _recorded() -> Iterator[_Requests]:
    """Record the bulk requests of every client while the body runs."""
    sent: _Requests = collections.defaultdict(list)
    send = Elasticsearch.bulk

    @functools.wraps(send)
    def noting(self: Elasticsearch, **options: Any) -> Any:
        lines = list(options["operations"])
        by_kind: dict[str, list[Any]] = collections.defaultdict(list)
        for at in range(0, len(lines), 2):
            by_kind[_kind(lines[at])] += lines[at : at + 2]
        for kind, some in by_kind.items():
            sent[kind].append(some)
        return send(self, **options)

    Elasticsearch.bulk = noting  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        Elasticsearch.bulk = send  # type: ignore[method-assign]


def _kind(operation: Any) -> str:
    target = _read(operation)["index"]
    return "articles" if "_index" in target else "nodes" if target["_id"].startswith("log-") else "learned"


def _read(line: Any) -> dict[str, Any]:
    found: dict[str, Any] = line if isinstance(line, dict) else json.loads(line)
    return found


def _replayed_s(client: Elasticsearch, index: str, requests: list[list[Any]]) -> float:
    """Return the server's processor time for requests that are sent to an empty copy of an index."""
    (like,) = client.indices.get(index=index).values()
    settings = {key: each for key, each in like["settings"]["index"].items() if key in _SETTINGS}
    client.options(ignore_status=404).indices.delete(index=_COPY)
    client.indices.create(index=_COPY, mappings=like["mappings"], settings=settings)
    before_s = server.processor_s(client)
    for lines in requests:
        for operation in (lines := list(map(_read, lines)))[::2]:
            operation["index"].pop("_index", None)
        answer = client.bulk(index=_COPY, operations=lines)
        assert not answer["errors"], answer
    return server.processor_s(client) - before_s

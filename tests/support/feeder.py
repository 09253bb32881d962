"""Processes that feed articles, and are stopped or killed at a chosen request to the server."""

import contextlib
import dataclasses
import http.client
import itertools
import multiprocessing
import os
import re
import signal
import threading
import time
import zlib
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from types import TracebackType
from typing import Any, Literal, Self

import elastic_transport
import psutil
from elastic_transport.client_utils import DEFAULT, DefaultType
from elasticsearch import helpers

from esdedup import Dedup, EsdedupError
from esdedup.elastic.client import client_of
from esdedup.elastic.patience import patient
from esdedup.fingerprint.profile import CLASSIC, Profile
from esdedup.sites import RawPage
from tests.support import stream
from tests.support.learned import Pace
from tests.support.pages import pages

TIMEOUT_S = 60.0
_processes = multiprocessing.get_context("forkserver")
# Starting a process also checks whether earlier processes have exited, which only one thread at a time may
# do.
_starting = threading.Lock()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """The request at which a process sends itself a signal."""

    signal: signal.Signals
    # A regular expression for the method, the path and the beginning of the body. Only matching requests
    # count.
    matching: str = ""
    # The number of the request among the matching requests, counted from 1.
    number: int = 1
    # "before": before the request is sent; "unanswered": after it is sent, before the response is read;
    # "partly": after some of its operations were performed, as if only some shards had received theirs.
    when: Literal["before", "unanswered", "partly"] = "before"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """The articles that a process feeds, and its options."""

    url: str
    index: str
    forest: str
    profile: Profile = CLASSIC
    # None uses the default lookup and one shard.
    forest_shards: int | None = None
    # If given, the process feeds web pages instead of the stream, and learns boilerplate at this pace.
    pace: Pace | None = None
    # Whether boilerplate is learned from all pages before they are fed.
    learns_first: bool = False
    # The number of the first article to feed, counted from 0.
    first: int = 0
    count: int = 20
    batch_size: int = 5
    lease_ttl_s: float = 30.0
    wait_s: float = 0.0
    point: Point | None = None
    # The process pauses before the article with this number until a renewal of its lease reaches `point`.
    wait_before: int | None = None

    def articles(self) -> Iterator[dict[str, Any]]:
        """Yield the articles to feed."""
        end = self.first + self.count
        articles = stream.articles(end, self.profile) if self.pace is None else pages(end)
        return itertools.islice(articles, self.first, None)

    def resumed(self, first: int) -> "Job":
        """Return a job for the rest of the articles, from number `first` on."""
        return dataclasses.replace(self, first=first, count=self.first + self.count - first)


class Feeder:
    """A process that does a job; leaving the context kills the process."""

    def __init__(self, job: Job) -> None:
        _processes.set_forkserver_preload(["tests.support.feeder", "tests.support.forked"])
        self._heard, its_end = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=_work, args=(job, its_end))
        with _starting:
            self._process.start()
        its_end.close()
        # The articles that the server has acknowledged, in order, with their roots.
        self.acknowledged: dict[str, str | None] = {}
        # The requests that the process made, up to the request at which it stopped or died.
        self.requests: list[str] = []
        # The class name and message of the error with which the process exited.
        self.error: tuple[str, str] | None = None
        # None until the process has exited; negative if a signal killed it.
        self.exit_code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._join()
        self._process.close()
        self._heard.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def hear(self, event: str) -> None:
        """Wait until the process reports an event."""
        for each in self._events():
            if each == event:
                return
        raise AssertionError(f"the process exited without reporting {event!r}: {self.error}")

    def wait_for_stop(self) -> None:
        """Wait until the process has stopped itself."""
        self.hear("at the point")
        deadline = time.monotonic() + TIMEOUT_S
        while psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def wait(self) -> None:
        """Wait until the process exits."""
        for _ in self._events():
            pass
        self._join()
        self.exit_code = self._process.exitcode

    def _join(self) -> None:
        wait_for([self._process.sentinel], TIMEOUT_S)
        with _starting:
            self._process.join(0)

    def _events(self) -> Iterator[str]:
        """Record and yield the events that the process reports, until it exits."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                assert self._heard.poll(TIMEOUT_S), f"no event from process {self.pid}"
                yield self._record(*self._heard.recv())

    def _record(self, event: str, *values: Any) -> str:
        if event == "acknowledged":
            article_id, root = values
            self.acknowledged[article_id] = root
        elif event == "request":
            self.requests.append(values[0])
        elif event == "error":
            self.error = (values[0], values[1])
        return event


def feed(job: Job) -> Feeder:
    """Run a job in a process until the process exits."""
    with Feeder(job) as feeder:
        feeder.wait()
    return feeder


def _work(job: Job, tell: Connection) -> None:
    reached = threading.Event()
    _reach(job.point, tell, reached)
    roots: dict[str, str | None] = {}

    def actions() -> Iterator[dict[str, Any]]:
        for number, article in enumerate(job.articles()):
            if number == job.wait_before:
                assert reached.wait(TIMEOUT_S)
            yield {"_index": job.index, "_id": article["id"], "_source": article}

    try:
        with (
            job.pace.kept() if job.pace else contextlib.nullcontext(),
            # This waits if the process is started while the server is down.
            client_of(job.url) as client,
            Dedup(
                client,
                forest=job.forest,
                profile=job.profile,
                forest_shards=job.forest_shards,
                memory_bytes=0 if job.forest_shards else None,
                batch_size=job.batch_size,
                wait_s=job.wait_s,
                lease_ttl_s=job.lease_ttl_s,
            ) as dedup,
        ):
            if job.learns_first:
                dedup.learn(RawPage(each["text"], None, each["id"]) for each in job.articles())
            enriched = dedup.enrich(
                actions(), on_assigned=lambda article, made: roots.update({article.name: made.root})
            )
            # `patient` retries while tests kill and restart the server.
            for _, result in helpers.streaming_bulk(patient(client), enriched, chunk_size=job.batch_size):
                article_id = result["index"]["_id"]
                tell.send(("acknowledged", article_id, roots[article_id]))
    except EsdedupError as error:
        tell.send(("error", type(error).__name__, str(error)))


def _reach(point: Point | None, tell: Connection, reached: threading.Event) -> None:
    """Report each request through `tell`, and send the signal when the point is reached."""
    plain = elastic_transport.Urllib3HttpNode.perform_request
    seen = 0

    def perform_request(
        self: elastic_transport.Urllib3HttpNode,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: elastic_transport.HttpHeaders | None = None,
        request_timeout: DefaultType | float | None = DEFAULT,
    ) -> Any:
        nonlocal seen
        request = f"{method} {target} {(body or b'')[:400].decode(errors='replace')}"
        tell.send(("request", request))
        if point is not None and re.search(point.matching, request):
            seen += 1
            if seen == point.number:
                if point.when != "before":
                    connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
                    sent = _some_operations(body or b"") if point.when == "partly" else body
                    connection.request(method, target, sent, dict(headers or {}))
                    if point.when == "partly":
                        connection.getresponse().read()
                tell.send(("at the point",))
                reached.set()
                os.kill(os.getpid(), point.signal)
        return plain(self, method, target, body, headers, request_timeout)

    elastic_transport.Urllib3HttpNode.perform_request = perform_request  # type: ignore[method-assign]


def _some_operations(bulk: bytes) -> bytes:
    """Return half of the operations of a bulk request, and those that one shard performs in order."""
    lines = iter(bulk.splitlines(keepends=True))
    operations = [line if line.startswith(b'{"delete"') else line + next(lines) for line in lines]
    kept = [each for each in operations if b"learned" in each[:40] or zlib.crc32(each) % 2]
    return b"".join(kept or operations[:1])

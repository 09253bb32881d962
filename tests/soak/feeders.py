"""Several kinds of feeders, each in its own process: `python -m tests.soak.feeders JOB`, a `Job` as JSON.

A feeder sends its articles at an even pace, retries articles that were temporarily refused, and exits when
all articles are accepted. It writes JSON lines to standard output: how many articles were accepted, and the
status of each response that accepted none. `FeederProcess` starts a feeder and reads these lines.
"""

import dataclasses
import functools
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import elastic_transport
import urllib3
from elasticsearch import ApiError, Elasticsearch, TransportError, helpers

from esdedup import Dedup, ServerUnavailable, SidecarUnavailable
from tests.support.stream import words

_SITES = 40
_MENU = ("Home", "Politics", "Weather", "Sport", "Culture", "Contact us", "Sign in")
_NOTICES = 5
_SENTENCES = 11
_WORDS = 11
# The maximum distance, in articles, of a version from its story, or of a repetition from its page.
_MOST_BACK = 2_000
_VERSIONS, _REPEATED = 0.35, 0.03


def articles(count: int, *, seed: int) -> Iterator[dict[str, Any]]:
    """Yield articles with an id, a text, and an address.

    About a third are new versions of earlier stories, on any site, and a few repeat a whole page.
    Versions differ both in their words and in the surrounding boilerplate. So nearly every page that is not
    a repetition makes a new node, whose seq shows the position of the page among all arrivals.
    """
    for number in range(count):
        chance = random.Random(f"{seed} kind {number}")
        origin, kind = max(0, number - chance.randrange(1, _MOST_BACK)), chance.random()
        if kind < _REPEATED:
            page = _page(seed, origin, version=origin)
        elif kind < _REPEATED + _VERSIONS:
            page = _page(seed, origin, version=number)
        else:
            page = _page(seed, number, version=number)
        yield {"_id": f"article-{number:06d}", **page}


def _page(seed: int, story: int, *, version: int) -> dict[str, str]:
    """Return a version of a story, on a site that depends on the number of the version."""
    chance = random.Random(f"{seed} version {version}")
    site = chance.randrange(_SITES)
    sentences = [list(each) for each in _story(seed, story)]
    if version != story:
        del sentences[chance.randrange(len(sentences))]
        sentences[chance.randrange(len(sentences))][chance.randrange(_WORDS)] = chance.choice(words())
    text = " ".join(f"{' '.join(each).capitalize()}." for each in sentences)
    notices = [f"{_sentence(f'{seed} site {site} {each}')}." for each in range(_NOTICES)]
    return {
        "text": "\n".join([*_MENU[site % 4 :], text, *notices]),
        "url": f"https://site-{site}.example/{version}",
    }


@functools.lru_cache(maxsize=2 * _MOST_BACK)
def _story(seed: int, number: int) -> tuple[tuple[str, ...], ...]:
    chance = random.Random(f"{seed} story {number}")
    return tuple(tuple(chance.choices(words(), k=_WORDS)) for _ in range(_SENTENCES))


@functools.cache
def _sentence(seed: str) -> str:
    return " ".join(random.Random(seed).choices(words(), k=_WORDS)).capitalize()


PATIENCE_S = 300.0
# The timeout of requests.
_ANSWER_S = 20.0
# The timeout of huge requests, which take longer.
_HUGE_ANSWER_S = 120.0
_BUSY = (429, 502, 503, 504)
_BUSY_ITEM = (429, 503)
_CHUNK = 100
_HUGE = 5_000
_NDJSON = "application/x-ndjson"
_POOL = urllib3.PoolManager(retries=False, timeout=_HUGE_ANSWER_S)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """The work of a feeder."""

    kind: str
    sidecars: list[str]
    elasticsearch: str
    index: str
    forest: str
    # The path of a file with the articles as JSON lines.
    file: str
    # Articles per second.
    pace: float

    def command(self) -> list[str]:
        """Return the command that does this work."""
        return [sys.executable, "-m", "tests.soak.feeders", json.dumps(dataclasses.asdict(self))]

    def articles(self) -> Iterator[dict[str, Any]]:
        """Yield the articles at the pace of the job."""
        began_s = time.monotonic()
        with Path(self.file).open() as lines:
            for at, line in enumerate(lines):
                time.sleep(max(0.0, began_s + at / self.pace - time.monotonic()))
                yield json.loads(line)


def report(**values: object) -> None:
    """Write values as a line of JSON for the parent process."""
    sys.stdout.write(f"{json.dumps(values)}\n")
    sys.stdout.flush()


def _python(job: Job) -> None:
    """Write through both sidecars with the official client and its bulk helper."""
    with Elasticsearch(job.sidecars, request_timeout=_ANSWER_S, retry_on_timeout=True) as client:
        _write(client, _actions(job, job.articles()))


def _enrich(job: Job) -> None:
    """Get roots from `/v1/enrich` of either sidecar, then write the articles to Elasticsearch."""
    turns = itertools.cycle(job.sidecars)
    pool = urllib3.PoolManager(retries=False, timeout=_ANSWER_S)
    with _plain(job) as client:
        for chunk in _chunks(job.articles()):
            enriched: list[dict[str, Any]] = []

            def send(
                chunk: list[dict[str, Any]] = chunk, enriched: list[dict[str, Any]] = enriched
            ) -> tuple[int, str | None]:
                url = f"{next(turns)}/v1/enrich?index={job.index}"
                try:
                    answer = pool.request("POST", url, body=_lines(chunk), headers={"Content-Type": _NDJSON})
                except urllib3.exceptions.HTTPError:
                    return 0, None
                if answer.status == 200:
                    items = answer.json()["items"]
                    enriched += [
                        each | {"dedup": item["dedup"]} for each, item in zip(chunk, items, strict=True)
                    ]
                return _reported(answer.status, answer.headers.get("retry-after"))

            _repeat(send)
            _write(client, _actions(job, enriched))


def _lines(chunk: list[dict[str, Any]]) -> bytes:
    """Return articles as the body of a bulk request."""
    sources = ({key: value for key, value in each.items() if key != "_id"} for each in chunk)
    lines = (
        line
        for each, own in zip(chunk, sources, strict=True)
        for line in ({"index": {"_id": each["_id"]}}, own)
    )
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _dedup(job: Job) -> None:
    """Get roots from the sidecars with the library, then write the articles to Elasticsearch."""
    with (
        _plain(job) as client,
        Dedup(
            client, sidecar=job.sidecars, forest=job.forest, batch_size=_CHUNK, sidecar_patience_s=PATIENCE_S
        ) as dedup,
    ):
        for chunk in _chunks(_actions(job, job.articles())):
            enriched: list[dict[str, Any]] = []

            def enrich(
                chunk: list[dict[str, Any]] = chunk, enriched: list[dict[str, Any]] = enriched
            ) -> tuple[int, str | None]:
                try:
                    enriched[:] = dedup.enrich(chunk)
                except (ServerUnavailable, SidecarUnavailable):
                    return 0, None
                return 200, None

            _repeat(enrich)
            _write(client, iter(enriched))


def _huge(job: Job) -> None:
    """Send thousands of articles in each request."""
    addresses = deque(job.sidecars)
    for chunk in _chunks(job.articles(), size=_HUGE):
        _post(job, addresses, f"/{job.index}/_bulk", _lines(chunk))
        report(fed=len(chunk))


def _small(job: Job) -> None:
    """Send one request for each article, and report how long it took until the article was accepted."""
    addresses = deque(job.sidecars)
    for each in job.articles():
        own = {key: value for key, value in each.items() if key != "_id"}
        began_s = time.monotonic()
        _post(job, addresses, f"/{job.index}/_doc/{each['_id']}", json.dumps(own).encode())
        report(fed=1, waited_s=time.monotonic() - began_s)


def _post(job: Job, addresses: deque[str], path: str, body: bytes) -> None:
    """Repeat a request until every item is accepted; begin with the sidecar that responded most recently."""
    # Each feeder has its own credentials, so the sidecar counts it as a separate caller.
    headers = {"Content-Type": _NDJSON, **urllib3.make_headers(basic_auth=f"{job.file}:x")}

    def send() -> tuple[int, str | None]:
        try:
            answer = _POOL.request("POST", addresses[0] + path, body=body, headers=headers)
        except urllib3.exceptions.HTTPError:
            addresses.rotate()
            return 0, None
        if answer.status >= 500:
            addresses.rotate()
        if answer.status == 200 and path.endswith("_bulk"):
            statuses = {each["index"]["status"] for each in answer.json()["items"]}
            if statuses & set(_BUSY_ITEM):
                return 429, None
            _require(statuses <= {200, 201}, f"items have the statuses {statuses}")
        return _reported(200 if answer.status == 201 else answer.status, answer.headers.get("retry-after"))

    _repeat(send)


KINDS: dict[str, Callable[[Job], None]] = {
    "huge": _huge,
    "small": _small,
    "python": _python,
    "enrich": _enrich,
    "dedup": _dedup,
}


def _plain(job: Job) -> Elasticsearch:
    """Return a client of Elasticsearch itself."""
    return Elasticsearch(job.elasticsearch.split(","), request_timeout=_ANSWER_S, retry_on_timeout=True)


def _actions(job: Job, articles: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return ({"_index": job.index, **each} for each in articles)


def _write(client: Elasticsearch, actions: Iterator[dict[str, Any]]) -> None:
    """Write with the official helper, and pause between retries; the client retries without pauses."""
    for chunk in _chunks(actions):
        _repeat(functools.partial(_try_write, client, chunk))
        report(fed=len(chunk))


def _try_write(client: Elasticsearch, chunk: list[dict[str, Any]]) -> tuple[int, str | None]:
    try:
        _, failed = helpers.bulk(client, chunk, raise_on_error=False)
    except ApiError as error:
        return error.status_code, error.meta.headers.get("retry-after")
    except TransportError:
        return 0, None
    assert isinstance(failed, list)
    statuses = {each["index"]["status"] for each in failed}
    _require(statuses <= set(_BUSY_ITEM), f"items have failed: {failed[:2]}")
    return (429 if failed else 200), None


def _chunks(articles: Iterator[dict[str, Any]], *, size: int = _CHUNK) -> Iterator[list[dict[str, Any]]]:
    while chunk := list(itertools.islice(articles, size)):
        yield chunk


def _repeat(send: Callable[[], tuple[int, str | None]]) -> None:
    """Retry until a request succeeds; pause as long as the server asks for."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        status, retry_after = send()
        if status == 200:
            return
        _require(status in (0, *_BUSY), f"refused with {status}")
        _require(time.monotonic() < end_s, f"refused for {PATIENCE_S:.0f} s, the last time with {status}")
        time.sleep(float(retry_after or 1))


def _reported(status: int, retry_after: str | None) -> tuple[int, str | None]:
    """Return the given values, after reporting an error response. Status 0 means no response."""
    if status >= 400:
        report(status=status, retry_after=retry_after)
    return status, retry_after


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(message)


def _watch(sidecars: list[str]) -> None:
    """Report each error response that the official client or the library receives from a sidecar."""
    plain = elastic_transport.Urllib3HttpNode.perform_request

    def watched(node: elastic_transport.Urllib3HttpNode, *args: Any, **options: Any) -> Any:
        answer = plain(node, *args, **options)
        if answer.meta.status >= 400 and node.base_url in sidecars:
            report(status=answer.meta.status, retry_after=answer.meta.headers.get("retry-after"))
        return answer

    elastic_transport.Urllib3HttpNode.perform_request = watched  # type: ignore[assignment]


def main(given: str) -> None:
    job = Job(**json.loads(given))
    _watch(job.sidecars)
    KINDS[job.kind](job)


_ROOT = Path(__file__).parents[2]
_END_S = 30.0


@dataclasses.dataclass(frozen=True)
class Refused:
    """A response with which a sidecar refused articles."""

    at_s: float
    kind: str
    status: int
    retry_after: str | None


@dataclasses.dataclass(frozen=True)
class Waited:
    """How long an article waited until it was accepted, and when it was accepted."""

    until_s: float
    seconds: float


class FeederProcess:
    """A running feeder, with a count of its accepted articles."""

    def __init__(self, job: Job) -> None:
        self.kind = job.kind
        self.fed = 0
        self.refused: list[Refused] = []
        self.waited: list[Waited] = []
        # The longest time from a refusal until articles were accepted again.
        self.refused_s = 0.0
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            job.command(), cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._readers = [
            threading.Thread(target=each, daemon=True) for each in (self._read_reports, self._read_errors)
        ]
        for each in self._readers:
            each.start()

    @property
    def is_working(self) -> bool:
        return self._process.poll() is None

    @property
    def fault(self) -> str | None:
        """Why the feeder failed to feed all of its articles; None if it did not fail."""
        if self._process.wait(_END_S) == 0:
            return None
        for each in self._readers:
            each.join(_END_S)
        return f"a feeder of the kind {self.kind} failed: {' '.join(self._errors)[-500:]}"

    def close(self) -> None:
        if self.is_working:
            self._process.kill()
        self._process.wait(_END_S)
        for each in self._readers:
            each.join(_END_S)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _read_reports(self) -> None:
        assert self._process.stdout is not None
        refused_since_s: float | None = None
        for line in self._process.stdout:
            values = json.loads(line)
            self.fed += values.get("fed", 0)
            if "status" in values:
                refused_since_s = refused_since_s or time.monotonic()
            elif refused_since_s is not None:
                self.refused_s = max(self.refused_s, time.monotonic() - refused_since_s)
                refused_since_s = None
            if "waited_s" in values:
                self.waited.append(Waited(time.monotonic(), values["waited_s"]))
            if "status" in values:
                self.refused.append(
                    Refused(time.monotonic(), self.kind, values["status"], values["retry_after"])
                )

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.strip())


if __name__ == "__main__":
    main(sys.argv[1])

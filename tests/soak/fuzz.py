"""Sends odd requests for an hour: `python -m tests.soak.fuzz --minutes 60`, or `make fuzz MINUTES=60`.

The requests go one after the other to a sidecar with pages and to `esdedup serve`, so that the cost of
each request can be measured. Exits with status 1 if a 5xx response did not come from Elasticsearch, if a
request took more than two seconds of processor time, if memory grew, if an idle server did not respond, or if
an article has no root or a forged root.
"""

import argparse
import contextlib
import dataclasses
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import hypothesis
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup
from esdedup.elastic.client import connect
from esdedup.node.distribution import DEFAULT_VERSION
from tests import sample
from tests.integration.test_pages_fuzz import PARAMETERS, VALUES
from tests.soak.odd_bytes import FORGED, request
from tests.soak.odd_requests import OddRequests, RawRequest
from tests.soak.stage import Server, free_port
from tests.soak.watched import Answer, Watched, send, tell
from tests.support.from_openapi import Description, Sent
from tests.support.sidecar_process import SidecarProcess, running

# The numbers of requests of each kind between two checks of the servers.
_ODD, _DESCRIBED, _ODD_PAGES = 150, 25, 25
_REPORT_S = 30.0
# The length in bytes of the longest request line that Elasticsearch accepts.
_LONGEST_LINE = 4_096
_START_S = 60.0
_ROOT = re.compile(r"~?[0-9a-f]{32}")
_FOREST = re.compile(rb"^esdedup_forest_memory_bytes\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Indices:
    """The names of the indices."""

    set_up: str = "fuzzed"
    alias: str = "fuzzed-alias"
    # An index like `set_up`, to which requests for comparison are sent directly.
    theirs: str = "theirs"
    other: str = "fuzz-plain"
    forest: str = "fuzz-forest"

    def elsewhere(self, content: bytes) -> bytes:
        """Return a request with the name `theirs` in place of `set_up`."""
        return content.replace(self.set_up.encode(), self.theirs.encode())


class Run:
    """A sidecar and a server for the pages, with checks of their responses and of the articles."""

    def __init__(
        self,
        es: Elasticsearch,
        url: str,
        sidecar: Watched,
        pages: Watched,
        indices: Indices,
        *,
        chance: random.Random,
    ) -> None:
        self._es, self._server = es, url
        self.sidecar, self.pages = sidecar, pages
        self._indices, self._chance = indices, chance
        others = [indices.other, "none-there"]
        self._odd = OddRequests(chance, set_up=[indices.set_up, indices.alias], others=others)
        self.articles = 0
        # The requests since the last check, to find the request that wrote a wrong article.
        self._recent: deque[tuple[RawRequest, Answer]] = deque(maxlen=_ODD + 2 * _DESCRIBED + _ODD_PAGES)
        (first, *_) = sample.articles(60)
        known = {
            "index": [indices.set_up, indices.alias, *others],
            "id": [first["id"], "1", "2", "unknown"],
            "_id": ["1", "2"],
            "root": [FORGED],
            "text": [first["text"], "a"],
            "q": ["harbour", '"a phrase" -x', "(", "*", "a~9", "[1 TO 2]"],
            "source": [first["source"], "none"],
            "where": ["source:x", "nothing:y", "x"],
            "source_includes": ["url", "dedup,text"],
            "sort": ["newest", "similar-desc"],
            "published_at": ["2026-09-07T21:32:00Z", "yesterday"],
        }
        self._described = {
            each.name: Description(
                json.loads(send(each.url, RawRequest("", request("GET", path))).body)
            ).requests(known=known)
            for each, path in ((sidecar, "/v1/openapi.json"), (pages, "/openapi.json"))
        }

    def round(self) -> None:
        """Send requests of each kind, then check both servers and the articles."""
        for _ in range(_ODD):
            self._send(self.sidecar, self._odd.draw())
        for watched in (self.sidecar, self.pages):
            for raw in self._drawn(watched.name):
                self._send(watched, raw)
        for _ in range(_ODD_PAGES):
            self._send(self.pages, RawRequest("odd parameters", request("GET", odd_page(self._chance))))
        # Wait for the servers to finish requests whose connections were closed.
        time.sleep(0.1)
        metrics = send(self.sidecar.url, RawRequest("", request("GET", "/metrics"))).body
        self.sidecar.check_is_well(
            "/healthz", "/readyz", forest_bytes=round(sum(map(float, _FOREST.findall(metrics))))
        )
        self.pages.check_is_well("/static/icon.svg")
        self._check_articles()

    def _drawn(self, name: str) -> list[RawRequest]:
        drawn: list[Sent] = []

        @hypothesis.seed(self._chance.randrange(2**32))
        @hypothesis.settings(
            max_examples=_DESCRIBED,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(self._described[name])
        def draw(sent: Sent) -> None:
            drawn.append(sent)

        draw()
        return [
            RawRequest("described", request(each.method, each.target, each.body, **each.headers))
            for each in drawn
        ]

    def _send(self, watched: Watched, raw: RawRequest) -> None:
        answer = watched.send(raw)
        self._recent.append((raw, answer))
        # An incomplete request times out, as documented.
        if answer.status < 500 or (raw.is_broken and answer.status == 504):
            return
        # This response is Elasticsearch's own. If the request were repeated, the response could differ, for
        # example after a timeout.
        if "x-elastic-product" in answer.headers and b"esdedup_" not in answer.body:
            return
        # If the request line is too long, Elasticsearch sends a body even in response to HEAD, which violates
        # HTTP.
        if raw.method == "HEAD" and answer.status == 502 and len(raw.content) > _LONGEST_LINE:
            return
        theirs = send(self._server, dataclasses.replace(raw, content=self._indices.elsewhere(raw.content)))
        if 0 < theirs.status < 500:
            watched.fault(f"Elasticsearch responds with {theirs.status} {theirs.body[:200]!r}", raw, answer)

    def _check_articles(self) -> None:
        index = self._indices.set_up
        self._es.indices.refresh(index=index)
        self.articles = 0
        for hit in helpers.scan(self._es, index=index, _source=["dedup", "dedup.*"]):
            self.articles += 1
            dedup = hit["_source"].get("dedup")
            root = dedup.get("root") if isinstance(dedup, dict) else None
            is_root = isinstance(root, str) and _ROOT.fullmatch(root) and root != FORGED
            if not is_root or len(hit["_source"]) > 1:
                written = [
                    each.content for each, answer in self._recent if hit["_id"].encode() in answer.body
                ]
                self.sidecar.note(f"article {hit['_id']!r} has {hit['_source']!r:.300}: {written!r:.3000}")
                # Delete the article, so that it is reported only once.
                self._es.options(ignore_status=404).delete(
                    index=index, id=hit["_id"], routing=hit.get("_routing")
                )


def odd_page(chance: random.Random) -> str:
    """Return a path of the pages, with odd values of parameters."""
    paths, names = chance.choice([(each, names.split()) for each, names in PARAMETERS.items()])
    query = "&".join(
        f"{chance.choice(names)}={chance.choice([*VALUES, f'sample-{chance.randrange(60):04d}'])}"
        for _ in range(chance.randrange(5))
    )
    return f"{chance.choice(paths)}?{query}"


@contextlib.contextmanager
def staged(url: str, chance: random.Random) -> Iterator[Run]:
    """Set up indices with some articles, start both servers, and yield a `Run`."""
    indices = Indices()
    with connect(url) as es:
        with Dedup(es, forest=indices.forest) as dedup:
            for each in (indices.set_up, indices.theirs):
                dedup.setup(each)
                es.indices.put_mapping(index=each, dynamic="false")
                es.indices.put_alias(index=each, name=f"{each}-alias")
            articles = (
                {"_index": indices.set_up, "_id": each["id"], "_source": each} for each in sample.articles(60)
            )
            helpers.bulk(es, dedup.enrich(articles), refresh=True)
        es.indices.create(index=indices.other, mappings={"dynamic": False})
        es.cluster.put_settings(persistent={"action.auto_create_index": "fuzz-*"})
        options = (
            "--index",
            indices.set_up,
            "--pages",
            "--request-timeout-s",
            "2",
            "--header-timeout-s",
            "2",
        )
        with (
            running(url, *options, forest=indices.forest) as process,
            served("--url", url, "--index", indices.set_up, "--forest", indices.forest) as pages,
        ):
            sidecar = Watched("sidecar", process.url, process.process.pid)
            run = Run(es, url, sidecar, pages, indices, chance=chance)
            yield run
            _check_log(process, sidecar)


def _check_log(process: SidecarProcess, sidecar: Watched) -> None:
    before, mark, rest = process.log.partition("Traceback")
    if mark:
        sidecar.note(f"the log has {before[-300:]}{mark}{rest[:8_000]}")


@contextlib.contextmanager
def served(*options: str) -> Iterator[Watched]:
    """Run `esdedup serve` in a child process."""
    command = [sys.executable, "-m", "esdedup", "serve", *options, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r" at (http://\S+) ", process.stdout.readline())
            assert found is not None
            yield Watched("serve", found[1], process.pid)
        finally:
            process.terminate()
            process.wait(_START_S)


def report(run: Run, requests_s: float) -> list[str]:
    """Print a summary; return the faults."""
    for each in (run.sidecar, run.pages):
        categories = sorted({category for category, _ in each.answers})
        total = sum(each.answers.values())
        tell(f"{each.name}: {total:,} requests in {requests_s / 60:.1f} minutes")
        kinds = sorted({kind for _, kind in each.answers})
        tell(f"{'':>20}{''.join(f'{kind:>9}' for kind in kinds)}  most processor time")
        for category in categories:
            counts = "".join(f"{each.answers[category, kind]:>9,}" for kind in kinds)
            tell(f"{category:>20}{counts}  {each.worst_cpu_s[category]:.2f} s")
        first, last = each.check_memory()
        tell(f"memory without the forest: {first:,} MiB after the warm-up, {last:,} MiB at the end")
        tell(f"longest wait for a response while idle: {each.longest_wait_s:.2f} s")
    tell(f"{run.articles:,} articles, all with a root" if not run.sidecar.faults else "")
    return run.sidecar.faults + run.pages.faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="seed of the requests")
    parser.add_argument(
        "--version", default=DEFAULT_VERSION, help="version of Elasticsearch; 8.19 accepts document types"
    )
    options = parser.parse_args()
    # Exit normally on SIGTERM, so that child processes are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tell(f"seed {options.seed}, Elasticsearch {options.version}")
    with tempfile.TemporaryDirectory(prefix="esdedup-fuzz-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder) / "node", free_port(), version=options.version)
        with server.running():
            with staged(server.url, random.Random(options.seed)) as run:
                began_s = reported_s = time.monotonic()
                while time.monotonic() < began_s + 60 * options.minutes:
                    run.round()
                    if time.monotonic() > reported_s + _REPORT_S:
                        reported_s = time.monotonic()
                        total = sum(run.sidecar.answers.values()) + sum(run.pages.answers.values())
                        tell(
                            f"{reported_s - began_s:5.0f} s: {total:,} requests, {run.articles:,} articles, "
                            f"{len(run.sidecar.faults + run.pages.faults)} faults"
                        )
            faults = report(run, time.monotonic() - began_s)
    for fault in faults:
        tell(f"FAULT: {fault}")
    tell(f"fuzz: {'FAILED' if faults else 'passed'}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

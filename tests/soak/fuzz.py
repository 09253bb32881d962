"""Odd requests for an hour: `python -m tests.soak.fuzz --minutes 60`, or `make fuzz MINUTES=60`.

They go to a sidecar with pages and to `esdedup serve`, one after the other, so that it is known what each
takes. Exit status 1 if an answer of 5xx was not Elasticsearch's own, a request took more than two seconds of
processor time, memory grew, a process was not well when it was idle, or an article has no root or a forged
one.
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
from tests.soak.odd_requests import Asked, OddRequests
from tests.soak.stage import Server, free_port
from tests.soak.watched import Answer, Watched, ask, tell
from tests.support.from_openapi import Description, Sent
from tests.support.sidecar_process import SidecarProcess, running

# Requests between two looks at how all is.
_ODD, _DESCRIBED, _PAGES_ASKED = 150, 25, 25
_TELL_S = 30.0
# That Elasticsearch takes.
_LONGEST_LINE = 4_096
_START_S = 60.0
_ROOT = re.compile(r"~?[0-9a-f]{32}")
_FOREST = re.compile(rb"^esdedup_forest_memory_bytes\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Indices:
    """Names."""

    set_up: str = "fuzzed"
    alias: str = "fuzzed-alias"
    # Set up as well, with such an alias; what is compared is written there.
    theirs: str = "theirs"
    other: str = "fuzz-plain"
    forest: str = "fuzz-forest"

    def elsewhere(self, content: bytes) -> bytes:
        """Return a request as it is sent to Elasticsearch itself: what is watched is left alone."""
        return content.replace(self.set_up.encode(), self.theirs.encode())


class Run:
    """A sidecar and the pages in front of a server, and what becomes of the articles in it."""

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
        # What may have written an article that should not be.
        self._recent: deque[tuple[Asked, Answer]] = deque(maxlen=_ODD + 2 * _DESCRIBED + _PAGES_ASKED)
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
            each.name: Description(json.loads(ask(each.url, Asked("", request("GET", path))).body)).requests(
                known=known
            )
            for each, path in ((sidecar, "/v1/openapi.json"), (pages, "/openapi.json"))
        }

    def round(self) -> None:
        """Send some requests of each kind, and look how all is."""
        for _ in range(_ODD):
            self._ask(self.sidecar, self._odd.draw())
        for watched in (self.sidecar, self.pages):
            for asked in self._drawn(watched.name):
                self._ask(watched, asked)
        for _ in range(_PAGES_ASKED):
            self._ask(self.pages, Asked("odd parameters", request("GET", odd_page(self._chance))))
        # What was given up ends.
        time.sleep(0.1)
        metrics = ask(self.sidecar.url, Asked("", request("GET", "/metrics"))).body
        self.sidecar.check_is_well(
            "/healthz", "/readyz", forest_bytes=round(sum(map(float, _FOREST.findall(metrics))))
        )
        self.pages.check_is_well("/static/icon.svg")
        self._check_articles()

    def _drawn(self, name: str) -> list[Asked]:
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
            Asked("described", request(each.method, each.target, each.body, **each.headers)) for each in drawn
        ]

    def _ask(self, watched: Watched, asked: Asked) -> None:
        answer = watched.ask(asked)
        self._recent.append((asked, answer))
        # What breaks off is late, as documented.
        if answer.status < 500 or (asked.is_broken and answer.status == 504):
            return
        # It went through. Elasticsearch may answer otherwise the second time, as where its time is over.
        if "x-elastic-product" in answer.headers and b"esdedup_" not in answer.body:
            return
        # Elasticsearch answers HEAD with a body if a line is too long, which is not HTTP.
        if asked.method == "HEAD" and answer.status == 502 and len(asked.content) > _LONGEST_LINE:
            return
        theirs = ask(self._server, dataclasses.replace(asked, content=self._indices.elsewhere(asked.content)))
        if 0 < theirs.status < 500:
            watched.fault(f"where Elasticsearch answers {theirs.status} {theirs.body[:200]!r}", asked, answer)

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
                # So it is told once.
                self._es.options(ignore_status=404).delete(
                    index=index, id=hit["_id"], routing=hit.get("_routing")
                )


def odd_page(chance: random.Random) -> str:
    """Return a path of the pages with parameters that have odd values."""
    paths, names = chance.choice([(each, names.split()) for each, names in PARAMETERS.items()])
    query = "&".join(
        f"{chance.choice(names)}={chance.choice([*VALUES, f'sample-{chance.randrange(60):04d}'])}"
        for _ in range(chance.randrange(5))
    )
    return f"{chance.choice(paths)}?{query}"


@contextlib.contextmanager
def staged(url: str, chance: random.Random) -> Iterator[Run]:
    """Yield all that is needed, with some articles."""
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
        sidecar.note(f"it logs {before[-300:]}{mark}{rest[:8_000]}")


@contextlib.contextmanager
def served(*options: str) -> Iterator[Watched]:
    """Yield the pages, of a process of their own."""
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
    """Tell what was found; return what is wrong."""
    for each in (run.sidecar, run.pages):
        doors = sorted({door for door, _ in each.answers})
        total = sum(each.answers.values())
        tell(f"{each.name}: {total:,} requests in {requests_s / 60:.1f} minutes")
        kinds = sorted({kind for _, kind in each.answers})
        tell(f"{'':>20}{''.join(f'{kind:>9}' for kind in kinds)}  most processor time")
        for door in doors:
            counts = "".join(f"{each.answers[door, kind]:>9,}" for kind in kinds)
            tell(f"{door:>20}{counts}  {each.worst_cpu_s[door]:.2f} s")
        first, last = each.check_memory()
        tell(f"memory without the forest: {first:,} MiB when warm, {last:,} MiB at the end")
        tell(f"longest wait for an answer when idle: {each.longest_wait_s:.2f} s")
    tell(f"{run.articles:,} articles, all with a root" if not run.sidecar.faults else "")
    return run.sidecar.faults + run.pages.faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the requests")
    parser.add_argument("--version", default=DEFAULT_VERSION, help="of Elasticsearch: 8.19 has typed paths")
    options = parser.parse_args()
    # So that what it has started ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tell(f"seed {options.seed}, Elasticsearch {options.version}")
    with tempfile.TemporaryDirectory(prefix="esdedup-fuzz-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder) / "node", free_port(), version=options.version)
        server.start()
        try:
            with staged(server.url, random.Random(options.seed)) as run:
                began_s = told_s = time.monotonic()
                while time.monotonic() < began_s + 60 * options.minutes:
                    run.round()
                    if time.monotonic() > told_s + _TELL_S:
                        told_s = time.monotonic()
                        asked = sum(run.sidecar.answers.values()) + sum(run.pages.answers.values())
                        tell(
                            f"{told_s - began_s:5.0f} s: {asked:,} requests, {run.articles:,} articles, "
                            f"{len(run.sidecar.faults + run.pages.faults)} faults"
                        )
            faults = report(run, time.monotonic() - began_s)
        finally:
            server.stop()
    for fault in faults:
        tell(f"FAULT: {fault}")
    tell(f"fuzz: {'FAILED' if faults else 'all well'}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

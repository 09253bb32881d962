"""Soak test of two editors and two sidecars: `python -m tests.soak.editors`, or `make soak-editors`.

Editors make random edits while articles are fed, processes are killed and paused, and the forest is
rebuilt. At the end, stories are compared with an independent model, and all acknowledged articles and
edits must exist.
"""

import argparse
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elasticsearch import ApiError, Elasticsearch, TransportError, helpers

from esdedup import Dedup, Editor, EditRequest, EsdedupError, ForestError, Maintenance, ServerError
from esdedup.elastic.client import connect
from esdedup.elastic.patience import patient
from tests.soak.feeders import articles
from tests.soak.stage import Server, free_port
from tests.support.sidecar_process import ROOT, SidecarProcess, until
from tests.support.story_model import by_model

INDEX, FOREST = "soak-edited", "soak-edited-forest"
TTL_S = 5.0
_KINDS = ("merge", "merge", "merge", "move", "split", "undo")
_CHUNK = 10
_PATIENCE_S = 240.0
# Short enough that the next edit still finds an article that a paused sidecar indexes late.
_LONGEST_PAUSE_S = 8.0


def edit(url: str, seed: int, pending: str) -> None:
    """Make random edits until killed; write each request and its result as JSON lines."""
    chance, es = random.Random(seed), Elasticsearch(url)
    editor, request = Editor(es, forest=FOREST), None
    if pending:
        # The process that sent this request was killed before it received the response.
        request = EditRequest.model_validate_json(pending)
    while True:
        try:
            if request is None:
                request = _random_request(chance, es, editor)
                _report(request=request.model_dump_json())
            made = editor.edit(INDEX, request, by=f"editor {seed % 2}")
            _report(made=made.edit.number, id=request.request_id)
        except (ForestError, ServerError, TransportError) as error:
            # Send the same request again.
            _report(again=type(error).__name__)
            time.sleep(0.5)
            continue
        except EsdedupError as error:
            _report(refused=type(error).__name__)
        request = None
        time.sleep(chance.uniform(0.0, 0.5))


def _random_request(chance: random.Random, es: Elasticsearch, editor: Editor) -> EditRequest:
    kind = chance.choice(_KINDS)
    if kind == "undo" and (edits := editor.history(INDEX).edits):
        return EditRequest(kind="undo", undoes=chance.choice(edits[-30:]).number)
    order = {"function_score": {"random_score": {"seed": chance.randrange(2**31), "field": "_seq_no"}}}
    hits = es.search(index=INDEX, query=order, size=2, source=False)["hits"]["hits"]
    one, other = (hit["_id"] for hit in hits)
    if kind == "split":
        return EditRequest(kind="split", ids=(one,))
    return EditRequest(kind="move" if kind == "move" else "merge", ids=(one,), to=other)


def _report(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


class EditorProcess:
    """A process that makes edits. When restarted, it repeats the request that has no result yet."""

    def __init__(self, url: str, seed: int) -> None:
        self._url, self._seed, self._pending = url, seed, ""
        self.acknowledged: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        self._seed += 2
        command = [sys.executable, "-m", "tests.soak.editors", "--url", self._url, "--seed", str(self._seed)]
        self.process = subprocess.Popen(
            [*command, f"--edit={self._pending}"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            values = json.loads(line)
            if "request" in values:
                self._pending = values["request"]
            elif "again" in values:
                self.counts[f"edits sent again after {values['again']}"] += 1
            else:
                self._pending = ""
                self.counts["edits refused" if "refused" in values else "edits acknowledged"] += 1
                if "made" in values:
                    self.acknowledged[values["id"]] = values["made"]


class Newsroom:
    """Editors, sidecars and feeders at work, with counts and faults."""

    def __init__(self, url: str, *, seed: int) -> None:
        self._url, self._chance = url, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._es = patient(connect(url))
        self._articles: dict[str, dict[str, Any]] = {}
        self._ports = [free_port(), free_port()]
        self._is_over = threading.Event()
        with Dedup(self._es, forest=FOREST) as dedup:
            dedup.setup(INDEX, forest=FOREST, editorial=True)
            some = [{"_index": INDEX, **each} for each in articles(200, seed=seed)]
            helpers.bulk(self._es, dedup.enrich(some), refresh=True)
        self._coming = ({**each, "_id": f"fed-{each['_id']}"} for each in articles(10**7, seed=seed))
        self._taking = threading.Lock()
        self._sidecars = [self._sidecar(at) for at in range(2)]
        until(lambda: any(each.owns() for each in self._sidecars), _PATIENCE_S, *self._sidecars)
        self._editors = [EditorProcess(url, 2 * seed + at) for at in range(2)]
        self._feeders = [threading.Thread(target=self._feed, args=(at,)) for at in range(2)]
        for each in self._feeders:
            each.start()

    def run(self, *, minutes: float) -> None:
        """Disrupt processes at random; rebuild the forest halfway through."""
        half, end = time.monotonic() + 30 * minutes, time.monotonic() + 60 * minutes
        is_rebuilt = False
        while time.monotonic() < end:
            time.sleep(self._chance.uniform(0.5, 4.0))
            if not is_rebuilt and time.monotonic() > half:
                self._rebuild()
                is_rebuilt = True
            self._chance.choice([self._kill_editor, self._pause, self._kill_sidecar, self._delete])()
        self._is_over.set()
        for each in self._feeders:
            each.join()
        for editor in self._editors:
            editor.kill()
            self.counts += editor.counts
        for sidecar in self._sidecars:
            sidecar.end()

    def check(self) -> None:
        """Complete the edits of killed editors by making one more edit, then look for faults."""
        editor = Editor(self._es, forest=FOREST)
        last = editor.history(INDEX).edits[-1]
        editor.edit(INDEX, EditRequest(kind="undo", undoes=last.number), by="the last one")
        edits = editor.history(INDEX).edits
        numbers = {each.request_id: each.number for each in edits}
        self._fault_if(len(numbers) != len(edits), "one request made two edits")
        self._fault_if([each.number for each in edits] != [*range(1, len(edits) + 1)], "gaps between edits")
        for each in self._editors:
            lost = [key for key, number in each.acknowledged.items() if numbers.get(key) != number]
            self._fault_if(lost, f"acknowledged edits are lost: {lost[:5]}")
        found = {hit["_id"]: hit["_source"]["dedup"] for hit in helpers.scan(self._es, index=INDEX)}
        lost = [name for name in self._articles if name not in found]
        self._fault_if(lost, f"acknowledged articles are lost: {lost[:5]}")
        texts = {name: (each["root"], each.get("fingerprint")) for name, each in found.items()}
        stories = by_model(edits, sorted(set(texts.values()), key=str))
        wrong = [name for name, each in found.items() if each["story"] != stories[texts[name]]]
        self._fault_if(wrong, f"articles in a wrong story: {len(wrong)}, such as {wrong[:5]}")
        self.counts |= Counter({"edits": len(edits), "articles compared": len(found)})
        self.counts["stories"] = len({each["story"] for each in found.values()})
        self.counts["roots"] = len({each["root"] for each in found.values()})
        self.counts["articles in a story not named by their root"] = sum(
            each["story"] != each["root"] for each in found.values()
        )
        self.counts["articles wrong"] = len(wrong)

    def _fault_if(self, is_fault: object, what: str) -> None:
        if is_fault:
            self.faults.append(what)

    def _feed(self, at: int) -> None:
        clients = [
            Elasticsearch(f"http://127.0.0.1:{port}", request_timeout=30, max_retries=0)
            for port in self._ports
        ]
        while not self._is_over.is_set():
            with self._taking:
                pending = {each["_id"]: each for each in (next(self._coming) for _ in range(_CHUNK))}
            while pending and not self._is_over.is_set():
                at += 1
                actions = [{"_index": INDEX, **each} for each in pending.values()]
                with contextlib.suppress(ApiError, TransportError):
                    for is_taken, item in helpers.streaming_bulk(
                        clients[at % 2], actions, raise_on_error=False, raise_on_exception=True
                    ):
                        if is_taken:
                            (result,) = item.values()
                            self._articles[result["_id"]] = pending.pop(result["_id"])
                time.sleep(0.4)

    def _sidecar(self, at: int) -> SidecarProcess:
        options = ("--forest", FOREST, "--index", INDEX, "--lease-ttl-s", str(TTL_S))
        return SidecarProcess(self._url, *options, "--port", str(self._ports[at]))

    def _kill_editor(self) -> None:
        self.counts["editors killed"] += 1
        one = self._chance.choice(self._editors)
        one.kill()
        one.start()

    def _kill_sidecar(self) -> None:
        self.counts["sidecars killed"] += 1
        at = self._chance.randrange(2)
        self._sidecars[at].process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._sidecars[at].end()
        self._sidecars[at] = self._sidecar(at)

    def _pause(self) -> None:
        processes: list[EditorProcess | SidecarProcess] = [*self._editors, *self._sidecars]
        one = self._chance.choice(processes)
        self.counts[f"{'editors' if isinstance(one, EditorProcess) else 'sidecars'} paused"] += 1
        with self._paused(one.process):
            time.sleep(self._chance.uniform(0.5, _LONGEST_PAUSE_S))

    @contextlib.contextmanager
    def _paused(self, process: subprocess.Popen[str]) -> Iterator[None]:
        process.send_signal(signal.SIGSTOP)
        yield
        process.send_signal(signal.SIGCONT)

    def _delete(self) -> None:
        if names := list(self._articles):
            self.counts["articles deleted"] += 1
            name = self._chance.choice(names)
            del self._articles[name]
            self._es.options(ignore_status=404).delete(index=INDEX, id=name)

    def _rebuild(self) -> None:
        """Rebuild the forest while no sidecar owns it. Edits are refused only while it is replaced."""
        for each in self._sidecars:
            each.end()
        Maintenance(self._es, forest=FOREST, wait_s=60).rebuild([INDEX])
        self.counts["rebuilds"] += 1
        self._sidecars = [self._sidecar(at) for at in range(2)]
        until(lambda: any(each.owns() for each in self._sidecars), _PATIENCE_S, *self._sidecars)


def run(url: str, *, minutes: float, seed: int) -> list[str]:
    """Run the soak test and print its figures; return the faults."""
    newsroom = Newsroom(url, seed=seed)
    newsroom.run(minutes=minutes)
    newsroom.check()
    for what, count in newsroom.counts.items():
        sys.stdout.write(f"{count:>10,}  {what}\n")
    for fault in newsroom.faults:
        sys.stdout.write(f"FAULT: {fault}\n")
    sys.stdout.write(f"soak of the editors: {'FAILED' if newsroom.faults else 'passed'}, seed {seed}\n")
    return newsroom.faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--url", help="address of Elasticsearch; by default, a node is started")
    parser.add_argument("--edit", help="run one editor, which first repeats this request (JSON or empty)")
    options = parser.parse_args()
    if options.edit is not None:
        edit(options.url, options.seed, options.edit)
    if options.url:
        sys.exit(bool(run(options.url, minutes=options.minutes, seed=options.seed)))
    with tempfile.TemporaryDirectory(prefix="esdedup-soak-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder) / "node", free_port())
        with server.running():
            faults = run(server.url, minutes=options.minutes, seed=options.seed)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

"""The command `esdedup sidecar` in a child process, which tests can kill."""

import contextlib
import functools
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
START_S = 180.0
STOP_S = 30.0
_ADDRESS = re.compile(r" at (http://\S+)")


class SidecarProcess:
    """A process that runs `esdedup sidecar` on a free port."""

    def __init__(self, elasticsearch_url: str, *options: str) -> None:
        command = [sys.executable, "-m", "esdedup", "sidecar", "--url", elasticsearch_url, "--port", "0"]
        self.process = subprocess.Popen([*command, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        self._lines: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @functools.cached_property
    def url(self) -> str:
        """The sidecar's address; waits until it listens."""
        return str(until(lambda: next(iter(_ADDRESS.findall(self.log)), None), START_S, self))

    @property
    def log(self) -> str:
        """The sidecar's log so far."""
        return "".join(self._lines)

    def get(self, path: str) -> Any:
        """Return the body of the response to a GET request, parsed from JSON."""
        return self._ask(urllib.request.Request(self.url + path))

    def enrich(self, *actions: dict[str, Any], index: str | None = None) -> list[dict[str, Any]]:
        """Send documents, each with an optional `_id`, to `/v1/enrich`; return the response's items."""
        lines: list[dict[str, Any]] = []
        for each in actions:
            source = {key: value for key, value in each.items() if key != "_id"}
            lines += [{"index": {"_id": each["_id"]} if "_id" in each else {}}, source]
        body = b"".join(b"%b\n" % json.dumps(line).encode() for line in lines)
        named = "" if index is None else f"?index={index}"
        items: list[dict[str, Any]] = self.post(f"/v1/enrich{named}", body)["items"]
        return items

    def post(self, path: str, body: Any) -> Any:
        """Send a value as JSON, or bytes unchanged; return the response's body, parsed from JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = urllib.request.Request(self.url + path, data)
        given.add_header("Content-Type", "application/json")
        return self._ask(given)

    def is_alive(self) -> bool:
        """Return whether the sidecar responds."""
        return self._is_ok("/healthz")

    def is_ready(self) -> bool:
        """Return whether the sidecar accepts articles."""
        return self._is_ok("/readyz")

    def _is_ok(self, path: str) -> bool:
        try:
            self.get(path)
        except (urllib.error.HTTPError, OSError):
            return False
        return True

    def owns(self) -> bool:
        """Return whether the sidecar owns its forest."""
        try:
            found = self.get("/readyz")
        except urllib.error.HTTPError as refused:
            with refused:
                found = json.load(refused)
        except OSError:
            return False
        return bool(found["owner"] == "this process")

    def metric(self, name: str) -> float:
        """Return the value of a metric; `name` includes the labels as `/metrics` writes them."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=STOP_S) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    def end(self) -> None:
        """Stop the process if it is still running."""
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reading.join()
            assert self.process.stderr is not None
            self.process.stderr.close()

    def _ask(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=STOP_S) as answer:
            return json.load(answer)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.append(line)


@contextlib.contextmanager
def running(elasticsearch_url: str, *options: str, forest: str) -> Iterator[SidecarProcess]:
    """Yield a sidecar that owns a forest."""
    process = SidecarProcess(elasticsearch_url, "--forest", forest, *options)
    try:
        until(process.is_ready, START_S, process)
        yield process
    finally:
        process.end()


def until(condition: Callable[[], Any], most_s: float, *processes: SidecarProcess) -> Any:
    """Wait until a condition returns a true value; return the value."""
    end_s = time.monotonic() + most_s
    while not (found := condition()):
        logs = "\n".join(each.log for each in processes)
        assert time.monotonic() < end_s, f"not true within {most_s:.0f} s: {logs}"
        assert any(each.process.poll() is None for each in processes) or not processes, logs
        time.sleep(0.05)
    return found

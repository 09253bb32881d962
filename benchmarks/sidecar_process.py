"""A sidecar in a process of its own."""

import collections
import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

_START_S = 120.0
_LOOK_S = 0.01
_ADDRESS = re.compile(r" at (http://\S+)")


class Sidecar:
    """Runs until it is ended."""

    def __init__(self, elasticsearch_url: str, *options: str) -> None:
        command = [sys.executable, "-m", "esdedup", "sidecar", "--url", elasticsearch_url, "--port", "0"]
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = next(found[1] for line in self.process.stderr if (found := _ADDRESS.search(line)))
        # Nobody reads the rest, but it must not wait for a reader.
        threading.Thread(target=collections.deque, args=(self.process.stderr, 0), daemon=True).start()

    def await_owner(self) -> None:
        """Wait until it owns its forest."""
        deadline_s = time.monotonic() + _START_S
        while not self._is_owner():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"the sidecar at {self.url} does not own its forest")
            time.sleep(_LOOK_S)

    def _is_owner(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=_START_S) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                found = json.load(refused)
        return all(each["owner"] == "this process" for each in found["forests"])

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def running(elasticsearch_url: str, *options: str) -> Iterator[Sidecar]:
    """Yield a sidecar that owns its forest."""
    sidecar = Sidecar(elasticsearch_url, *options)
    try:
        sidecar.await_owner()
        yield sidecar
    finally:
        sidecar.end()

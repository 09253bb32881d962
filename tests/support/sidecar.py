"""A sidecar in a child process: `python -m tests.support.sidecar URL [FOREST]`."""

import contextlib
import dataclasses
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticsearch import Elasticsearch, helpers

if TYPE_CHECKING:
    import uvicorn

ROOT = Path(__file__).parents[2]
START_S = 60.0
STOP_S = 15.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feeding:
    """Articles that a client feeds through a sidecar to an index."""

    sidecar: str
    index: str
    articles: list[dict[str, Any]]
    # The roots, by id, that the articles get if they arrive in the order of `articles`.
    roots: dict[str, str]

    def check_articles(self, es: Elasticsearch, *, in_order: bool = True) -> None:
        """Check that the index has each article once, unchanged, with its root.

        Args:
            es: A client of Elasticsearch itself, not of the sidecar.
            in_order: Whether the articles arrived one after the other.
        """
        es.indices.refresh(index=self.index)
        found = {hit["_id"]: hit["_source"] for hit in helpers.scan(es, index=self.index)}
        given = {each["_id"]: {**each} for each in self.articles}
        assert found.keys() == given.keys()
        added = {id_: source.pop("dedup", None) for id_, source in found.items()}
        assert all(source["text"] == given[id_]["text"] for id_, source in found.items())
        roots = {id_: (dedup or {}).get("root") for id_, dedup in added.items()}
        assert roots == self.roots if in_order else all(roots.values())


@contextlib.contextmanager
def running(url: str, forest: str | None = None) -> Iterator[str]:
    """Yield the address of a sidecar in front of a node; without a forest, it only passes requests on."""
    command = [sys.executable, "-m", "tests.support.sidecar", url, *([forest] if forest else [])]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(START_S, process.kill)
        late.start()
        try:
            address = process.stdout.readline().strip()
            late.cancel()
            assert address, "the sidecar did not start"
            if forest is not None:
                _await_ready(address)
            yield address
        finally:
            late.cancel()
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _await_ready(address: str) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=STOP_S):
                return
        except urllib.error.HTTPError:
            assert time.monotonic() < deadline, "the sidecar does not own its forest"
            time.sleep(0.1)


def main(url: str, forest: str | None = None) -> None:
    import uvicorn

    from esdedup.serving.connections import address_of, listen

    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(_passing(url) if forest is None else _enriching(url, forest, port))

    def end_with_parent() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.stdout.write(f"{address_of(listening)}\n")
    sys.stdout.flush()
    server.run(sockets=[listening])


def _passing(url: str) -> "uvicorn.Config":
    import uvicorn

    from esdedup.sidecar.app import create_app
    from esdedup.sidecar.upstream import Upstream

    return uvicorn.Config(
        create_app(Upstream([url])),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=5,
        # Clients expect idle connections to stay open, because Elasticsearch does not close them.
        timeout_keep_alive=3_600,
    )


def _enriching(url: str, forest: str, port: int) -> "uvicorn.Config":
    from esdedup.sidecar.app import assemble
    from esdedup.sidecar.server import config
    from esdedup.sidecar.settings import load

    settings = load({"url": url, "forest": forest, "shutdown_timeout_s": 5})
    return config(assemble(settings, port=port), settings)


if __name__ == "__main__":
    main(*sys.argv[1:])

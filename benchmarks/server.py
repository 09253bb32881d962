"""Defines the settings of a run of benchmarks, and connects to a server: at ES_URL, or embedded."""

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from elasticsearch import Elasticsearch

from esdedup import node
from esdedup.elastic.client import connect


@dataclasses.dataclass(kw_only=True)
class Run:
    """The settings of a run; every benchmark receives them."""

    # The factor by which usual collection sizes are multiplied; below 1 only for trials, not for publication.
    scale: float = 1.0
    # The number of hash functions with which detection is measured.
    seeds: int = 5
    # The versions of programs that a benchmark used, such as a server, without the installed packages.
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    def size(self, usual: int) -> int:
        """Return the scaled size of a collection, at least 1."""
        return max(1, round(usual * self.scale))


@contextlib.contextmanager
def client(run: Run | None = None, *, lifetime_s: float, heap: str = "1g") -> Iterator[Elasticsearch]:
    """Connect to the server, and record its version in the run.

    An embedded server is stopped afterwards, or stops by itself after `lifetime_s`.
    """
    given = os.environ.get("ES_URL")
    with contextlib.ExitStack() as stack:
        if given is None:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            given = node.start(data, port=0, heap=heap, lifetime_s=lifetime_s, with_parent=True).url
            stack.callback(node.stop, data)
        connected = stack.enter_context(connect(given))
        if run is not None:
            run.versions["Elasticsearch"] = version_of(connected)
        yield connected


def url_of(client: Elasticsearch) -> str:
    """Return the address of a server, to which another process can connect."""
    return next(iter(client.transport.node_pool.all())).base_url


def version_of(client: Elasticsearch) -> str:
    """Return the version of a server, or the versions of its nodes."""
    versions = client.cluster.stats(filter_path="nodes.versions")["nodes"]["versions"]
    return " and ".join(versions)


def processor_s(client: Elasticsearch) -> float:
    """Return the processor time of a server so far."""
    # The server updates its count once a second.
    time.sleep(1.1)
    nodes = client.nodes.stats(metric="process")["nodes"].values()
    return float(sum(each["process"]["cpu"]["total_in_millis"] for each in nodes)) / 1_000

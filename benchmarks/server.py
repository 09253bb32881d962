"""How large a run of benchmarks is, and the server to measure with: that at ES_URL, else an embedded one."""

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
    """One run; every benchmark gets it."""

    # Collections have this share of their usual size; less than 1 to try a benchmark, not to publish it.
    scale: float = 1.0
    # Detection is measured with so many hash functions.
    seeds: int = 5
    # What a benchmark has used beside the installed packages, such as a server, with its version.
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    def size(self, usual: int) -> int:
        """Return the size of a collection, by its usual size."""
        return max(1, round(usual * self.scale))


@contextlib.contextmanager
def client(run: Run | None = None, *, lifetime_s: float, heap: str = "1g") -> Iterator[Elasticsearch]:
    """Connect, and tell the run which server it is.

    An embedded server is stopped afterwards, or ends by itself after `lifetime_s`.
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
    """Return the address of a server, for another process to connect with."""
    return next(iter(client.transport.node_pool.all())).base_url


def version_of(client: Elasticsearch) -> str:
    """Return the version of a server, or those of its nodes."""
    versions = client.cluster.stats(filter_path="nodes.versions")["nodes"]["versions"]
    return " and ".join(versions)


def processor_s(client: Elasticsearch) -> float:
    """Return the processor time of a server so far."""
    # The server counts once a second.
    time.sleep(1.1)
    nodes = client.nodes.stats(metric="process")["nodes"].values()
    return float(sum(each["process"]["cpu"]["total_in_millis"] for each in nodes)) / 1_000

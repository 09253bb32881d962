"""The Elasticsearch to measure with: the one at ES_URL, else an embedded one."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from elasticsearch import Elasticsearch

from benchmarks.run import Run
from esdedup import node
from esdedup.elastic.client import connect


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

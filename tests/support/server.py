"""Provides the Elasticsearch server that tests use."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

URL_VARIABLE = "ESDEDUP_TEST_ES_URL"
# The embedded node stops by itself after this time, even if the tests are killed.
LIFETIME_S = 5_400
# Linux keeps files in this directory in memory. The servers of a test run need less space than _NEEDED_BYTES.
_MEMORY, _NEEDED_BYTES = Path("/dev/shm"), 2**30


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Yield the address of a server.

    This is the server named in the environment or, if none is named, a Docker container or an embedded node.
    """
    given = os.environ.get(URL_VARIABLE)
    if given:
        yield given
    elif _docker_answers():
        yield from _container()
    else:
        yield from _embedded()


def _docker_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        return (
            subprocess.run(["docker", "info"], check=False, capture_output=True, timeout=20).returncode == 0
        )
    return False


def _container() -> Iterator[str]:
    from testcontainers.community.elasticsearch import ElasticSearchContainer

    from esdedup.node import DEFAULT_VERSION

    image = f"elasticsearch:{DEFAULT_VERSION}"
    with ElasticSearchContainer(image, mem_limit="2g") as container:
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(container.port)}"


def _embedded() -> Iterator[str]:
    from esdedup import node

    with data_directory() as data:
        cluster = node.start(data, port=0, lifetime_s=LIFETIME_S, with_parent=True)
        try:
            yield cluster.url
        finally:
            node.stop(data)


@contextlib.contextmanager
def data_directory() -> Iterator[Path]:
    """Yield an empty directory for a server's data, in memory if there is enough space.

    On a disk, a server waits until each write is synced; to create an index, it syncs about ten times.
    """
    is_in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _NEEDED_BYTES
    with tempfile.TemporaryDirectory(
        prefix="esdedup-test-", dir=_MEMORY if is_in_memory else None, ignore_cleanup_errors=True
    ) as data:
        yield Path(data)

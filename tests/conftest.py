"""Fixtures for every test: a real Elasticsearch, real articles, and no silent skips in CI."""

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from elasticsearch import Elasticsearch

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

hypothesis.settings.register_profile("esdedup", deadline=None, print_blob=True, derandomize=IN_CI)
hypothesis.settings.load_profile("esdedup")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "elasticsearch_url" in getattr(item, "fixturenames", ()):
            item.add_marker("node")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real articles; not part of the project."""
    folder = os.environ.get("ESDEDUP_SHARED")
    if not folder:
        pytest.skip("ESDEDUP_SHARED does not name the folder with real articles")
    return Path(folder)


@pytest.fixture(scope="session")
def elasticsearch_url() -> Iterator[str]:
    """The first that can be had: a given server, one in a container, the embedded node."""
    given = os.environ.get("ESDEDUP_TEST_ES_URL")
    if given:
        yield given
    elif _docker_answers():
        yield from _container()
    else:
        yield from _embedded()


@pytest.fixture(scope="session")
def es(elasticsearch_url: str) -> Iterator[Elasticsearch]:
    from esdedup.elastic.client import connect

    with connect(elasticsearch_url) as client:
        yield client


@pytest.fixture
def index_name(es: Elasticsearch) -> Iterator[Callable[[str], str]]:
    """Makes names that no other test has; the indices go at the end."""
    names: list[str] = []

    def name(what: str) -> str:
        names.append(f"test-{what}-{secrets.token_hex(4)}")
        return names[-1]

    yield name
    for each in names:
        es.options(ignore_status=404).indices.delete(index=each)


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

    # Not the user's directory: a test must not meet data that are not its own.
    with tempfile.TemporaryDirectory(prefix="esdedup-test-", ignore_cleanup_errors=True) as data:
        cluster = node.start(Path(data), port=0, lifetime_s=3600, with_parent=True)
        try:
            yield cluster.url
        finally:
            node.stop(Path(data))

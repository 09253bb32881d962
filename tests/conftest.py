"""Fixtures for every test: a real Elasticsearch, real articles, and no silent skips.

Tests may run in several processes (``-n 2``), which share one server. Tests that the machine cannot run are
skipped, and the reasons are listed at the end. If ``ESDEDUP_SHARED`` is set, every skip counts as a failure.
"""

import asyncio
import collections
import contextlib
import inspect
import os
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from tests.support import exploring, server
from tests.support.names import Names, new_names

SHARED = os.environ.get("ESDEDUP_SHARED")

exploring.load_profile()

# Embedded Elasticsearch nodes live for minutes, so Java's second compiler would take more time than it saves.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

# If several processes share the work, slow files run first, so that no slow file is left for the end.
LONG_FILES = (
    *("test_opensearch", "test_restart", "test_code_blocks", "test_versions", "test_embedded"),
    *("test_migrate", "test_adopt", "test_explain", "test_online", "test_editor", "test_pages_fuzz"),
    *("test_frame", "test_maintenance", "test_damage", "test_crashes", "test_store", "test_lists"),
    *("test_threads", "test_following", "test_sidecar_pair", "test_distribution"),
    "test_sidecar_entry_points",
)

# Except in `make nightly`, a test runs with only one combination of the parameters `_WAYS`, because they do
# not affect its expected result. Tests in the folders `_IN_ALL_WAYS` always run with all combinations.
_WAYS, _IN_ALL_WAYS = {"profile", "lookup", "is_away", "corpus", "zone", "window"}, {"contract", "unit"}

# Resources that the main process holds until all worker processes have exited.
_held = pytest.StashKey[contextlib.ExitStack]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # This hook runs before Hypothesis reads the option.
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(exploring.SEED)


def pytest_report_header() -> str:
    return exploring.HEADER


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the shared server before the worker processes start."""
    options = session.config.option
    if options.numprocesses and not options.collectonly:
        held = session.config.stash[_held] = contextlib.ExitStack()
        os.environ[server.URL_VARIABLE] = held.enter_context(server.running())


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash.get(_held, contextlib.ExitStack()).close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if exploring.EFFORT <= 1:
        nightly = {item for item in items if item.get_closest_marker("night")}
        nightly |= set(items).difference(_in_one_way_each(items))
        config.hook.pytest_deselected(items=list(nightly))
        items[:] = [item for item in items if item not in nightly]
    for item in items:
        if "elasticsearch_url" in getattr(item, "fixturenames", ()):
            item.add_marker("node")
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: LONG_FILES.index(item.path.stem) if item.path.stem in LONG_FILES else 99)


def _in_one_way_each(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield each test once for each combination of its parameters other than `_WAYS`.

    A hash of the test's name chooses the values of `_WAYS`, so they vary between tests. Unit and contract
    tests run with all values.
    """
    ways: dict[str, dict[tuple[str, ...], list[pytest.Item]]] = {}
    for item in items:
        spec = getattr(item, "callspec", None)
        if spec is None or not _WAYS & spec.params.keys() or item.path.parent.name in _IN_ALL_WAYS:
            yield item
        else:
            others = tuple(f"{name}={value!r}" for name, value in spec.params.items() if name not in _WAYS)
            ways.setdefault(item.nodeid.partition("[")[0], {}).setdefault(others, []).append(item)
    for test, cases in ways.items():
        for number, each in enumerate(cases.values(), zlib.crc32(test.encode())):
            yield each[number % len(each)]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in its own event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    named = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in named}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if SHARED and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped although ESDEDUP_SHARED is set: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the reasons for skipped tests, with the number of tests for each."""
    skipped = collections.Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    if skipped:
        terminalreporter.section("skipped on this machine")
        for reason, count in skipped.most_common():
            terminalreporter.line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with real articles, which is not part of the project."""
    if not SHARED:
        pytest.skip("ESDEDUP_SHARED does not name the folder with real articles")
    return Path(SHARED)


@pytest.fixture(scope="session")
def elasticsearch_url() -> Iterator[str]:
    with server.running() as url:
        yield url


@pytest.fixture(scope="session")
def es(elasticsearch_url: str) -> Iterator[Elasticsearch]:
    from esdedup.elastic.client import connect

    with connect(elasticsearch_url) as client:
        yield client


@pytest.fixture
def index_name(es: Elasticsearch) -> Iterator[Names]:
    with new_names(es) as name:
        yield name


@pytest.fixture(scope="session")
def unchanged(es: Elasticsearch) -> Iterator[tuple[str, str]]:
    """Yield an index of the sample and its forest, shared by tests that only read; neither accepts writes."""
    from esdedup.fingerprint.profile import DEFAULT
    from tests.support.forests import feed_sample

    with new_names(es) as name:
        index, forest = feed_sample(es, name, DEFAULT)
        es.indices.add_block(index=f"{index},{forest}", block="write")
        yield index, forest

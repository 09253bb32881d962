"""Feeding, adopting, migrating and reading with servers and clients of versions 8.19 and 9.

All other tests use the newest server with the newest client. Clients of version 9 do not work with servers of
version 8, except for the client that the commands use.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esdedup.elastic.client import connect
from tests import sample
from tests.acceptance.conftest import Run, lines, run_in
from tests.support.any_client import read
from tests.support.forests import ARTICLES
from tests.support.names import Names
from tests.support.sidecar_process import ROOT, running

OLDER = "8.19"
CLIENT = [f"elasticsearch=={OLDER}.*", "elastic-transport==8.*"]


@pytest.fixture(scope="module")
def older_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the older client, to be imported before the environment's packages."""
    target = tmp_path_factory.mktemp("client")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    installed = subprocess.run(
        [*pip, "--target", str(target), *CLIENT], check=False, capture_output=True, text=True
    )
    if installed.returncode:
        pytest.skip(f"client {OLDER} cannot be installed: {installed.stderr.strip()[-300:]}")
    return target


@pytest.fixture(scope="module")
def older_url(data_directory: Path) -> Iterator[str]:
    """The address of a server of the older version, started by the command."""
    run, data = run_in(data_directory), data_directory / "node"
    options = ["--port", 0, "--version", OLDER, "--heap", "512m", "--hours", 0.25]
    started = run("node", "start", "--data", data, *options, "--json")
    try:
        assert started.json["version"].startswith(f"{OLDER}.")
        assert [each["alive"] for each in started.json["nodes"]] == [True]
        yield started.json["url"]
    finally:
        run("node", "stop", "--data", data)


def test_commands_work_with_an_older_server(run: Run, older_url: str) -> None:
    articles = list(sample.articles(300))
    assert run("setup", "news", url=older_url).code == 0
    summary = run("index", "-", "--index", "news", "--json", stdin=lines(*articles), url=older_url).json
    assert summary["written"] == len(articles)
    page = run("list", "--index", "news", "--sort", "similar-desc", "--json", url=older_url).json
    assert page["total_rows"] == summary["new_roots"]
    head = page["rows"][0]
    similar = run("similar", "--index", "news", "--id", head["id"], "--json", url=older_url).json
    assert similar["total"] == head["similar"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("server", "at"),
    [(OLDER, "older_url"), pytest.param("9", "elasticsearch_url", marks=pytest.mark.night)],
)
def test_the_older_client_gives_the_same_results(
    request: pytest.FixtureRequest, index_name: Names, older_client: Path, server: str, at: str
) -> None:
    index, forest, url = index_name("versions"), index_name("forest"), request.getfixturevalue(at)
    environment = os.environ | {"PYTHONPATH": str(older_client)}
    with running(url, forest=forest) as sidecar:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.any_client", url, sidecar.url, index, forest],
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        got: dict[str, Any] = json.loads(done.stdout)
        with connect(url) as es:
            assert es.info()["version"]["number"].startswith(server)
            expected = read(es, f"{index}-fed", f"{forest}-own")
    assert got["version"].startswith(OLDER)
    assert got["violations"] == 0
    assert got["sync"] == got["async"] == expected
    assert expected["list"]["total_articles"] == len(ARTICLES)
    half = len(ARTICLES) // 2
    assert got["through"] == {
        "adopted": len(ARTICLES) - half,
        "migrated": len(ARTICLES),
        "articles": len(ARTICLES),
        "then": len(ARTICLES),
        "violations": 0,
    }

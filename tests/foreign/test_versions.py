"""Elasticsearch 8.19 and 9 with clients of 8.19 and 9: feeding, adopting, migrating and reading are the same.

The newest server with the newest client is what all other tests use. A client of version 9 does not speak to
a server of version 8, but for the one of the command line, which `tests/foreign/test_embedded.py` tries.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esdedup import node
from esdedup.elastic.client import connect
from tests.support.any_client import waited
from tests.support.forests import ARTICLES
from tests.support.names import Names
from tests.support.sidecar_process import ROOT, running

OLDER = "8.19"
CLIENT = [f"elasticsearch=={OLDER}.*", "elastic-transport==8.*"]


@pytest.fixture(scope="module")
def older_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with that client, which comes before the environment's packages."""
    target = tmp_path_factory.mktemp("client")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    installed = subprocess.run(
        [*pip, "--target", str(target), *CLIENT], check=False, capture_output=True, text=True
    )
    if installed.returncode:
        pytest.skip(f"client {OLDER} cannot be installed: {installed.stderr.strip()[-300:]}")
    return target


@contextlib.contextmanager
def server_of(version: str, newest_url: str, data: Path) -> Iterator[str]:
    if version != OLDER:
        yield newest_url
        return
    started = node.start(data, port=0, heap="512m", lifetime_s=900, with_parent=True, version=version)
    try:
        yield started.url
    finally:
        node.stop(data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("server", ["9", OLDER])
def test_the_older_client_does_the_same(
    elasticsearch_url: str, index_name: Names, data_directory: Path, older_client: Path, server: str
) -> None:
    index, forest = index_name("versions"), index_name("forest")
    environment = os.environ | {"PYTHONPATH": str(older_client)}
    with (
        server_of(server, elasticsearch_url, data_directory) as url,
        running(url, forest=forest) as sidecar,
    ):
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
            expected = waited(es, f"{index}-fed", f"{forest}-own")
    assert got["version"].startswith(OLDER)
    assert got["violations"] == 0
    assert got["waited"] == got["awaited"] == expected
    assert expected["list"]["total_articles"] == len(ARTICLES)
    half = len(ARTICLES) // 2
    assert got["through"] == {
        "adopted": len(ARTICLES) - half,
        "migrated": len(ARTICLES),
        "articles": len(ARTICLES),
        "then": len(ARTICLES),
        "violations": 0,
    }

"""The sidecar, fed by official clients for other languages and by the example feeder, `deploy/feeder.py`.

The client programs are in `tests/clients/`. Their lock files name no registry, so npm and go install
packages from the registry that they are configured to use. The Go client is pinned to 8.3, the last version
before the typed API, which takes minutes to compile. Version 8.3 works with servers of versions 8 and 9.
"""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from tests import sample
from tests.support.forests import roots
from tests.support.names import Names
from tests.support.sidecar import Feeding
from tests.support.sidecar_process import running

PROGRAMS = Path(__file__).parents[1] / "clients"
INSTALL_S = 420.0
RUN_S = 60.0


def _run(command: list[str], *, folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=seconds, env=os.environ
    )


def _installed(command: list[str], *, language: str, folder: Path) -> None:
    """Install a client, or skip the test."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed, so the client for {language} cannot be tested")
    shutil.copytree(PROGRAMS / folder.name, folder)
    done = _run(command, folder=folder, seconds=INSTALL_S)
    if done.returncode:
        pytest.skip(f"the client for {language} cannot be installed: {done.stderr.strip()[-300:]}")


def _feed(command: list[str], folder: Path, feeding: Feeding) -> dict[str, Any]:
    articles = folder.parent / "articles.jsonl"
    lines = [json.dumps({"id": article["_id"]} | _source(article)) for article in feeding.articles]
    articles.write_text("\n".join(lines) + "\n")
    done = _run([*command, feeding.sidecar, feeding.index, str(articles)], folder=folder, seconds=RUN_S)
    assert done.returncode == 0, done.stderr
    got: dict[str, Any] = json.loads(done.stdout)
    return got


def _source(article: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in article.items() if name != "_id"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_javascript_client_feeds_articles(feeding: Feeding, es: Elasticsearch, tmp_path: Path) -> None:
    folder = tmp_path / "javascript"
    _installed(["npm", "ci"], language="JavaScript", folder=folder)
    got = _feed(["node", "main.mjs"], folder, feeding)
    assert got.pop("version").startswith("9.")
    count = len(feeding.articles)
    assert got == {
        "bulk": {"flushed": count, "failed": 1},
        "found": count,
        "scrolled": count,
        "odd_id": ["created", True, "deleted"],
        "errors": {"missing": 404, "conflict": 409, "invalid": 400},
        "exists": [True, False],
    }
    feeding.check_articles(es)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_go_client_feeds_articles(feeding: Feeding, es: Elasticsearch, tmp_path: Path) -> None:
    folder = tmp_path / "go"
    # Compiler optimisations would take more time than they save.
    build = ["go", "build", "-gcflags=all=-N -l", "-mod=readonly", "-o", "client", "."]
    _installed(build, language="Go", folder=folder)
    got = _feed(["./client"], folder, feeding)
    assert got.pop("version").startswith("8.")
    count = len(feeding.articles)
    assert got == {
        "bulk": {"flushed": count, "failed": 1},
        "refresh": 200,
        "found": count,
        "product": "Elasticsearch",
        "odd_id": [201, 200, 200],
        "errors": {"missing": 404, "conflict": 409, "invalid": 400},
        "exists": [200, 404],
    }
    feeding.check_articles(es)


FEEDER = Path(__file__).parents[2] / "deploy/feeder.py"
FED = list(sample.articles(60))
# A client that retries without pauses gives up within this time; the feeder keeps retrying for much longer.
ALONE_S = 2.0


class Enough(Exception):
    """Raised when the feeder has written every article once."""


class _NoPauses:
    """Replaces `time` in the feeder, and stops the feeder instead of pausing."""

    @staticmethod
    def sleep(_: float) -> None:
        raise Enough


def test_the_feeder_waits_until_a_sidecar_responds(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = index_name("articles")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("ES_URL", elasticsearch_url)
    monkeypatch.setenv("SIDECARS", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("ELASTIC_USER", "any")
    monkeypatch.setenv("ELASTIC_PASSWORD", "any")
    monkeypatch.setattr("esdedup.sample.articles", lambda: iter(FED))
    spec = importlib.util.spec_from_file_location("deployed_feeder", FEEDER)
    assert spec is not None
    assert spec.loader is not None
    feeder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(feeder)
    monkeypatch.setattr(feeder, "INDEX", index)
    monkeypatch.setattr(feeder, "time", _NoPauses)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            feeder.main()
        except BaseException as error:
            ended.append(error)

    feeding = threading.Thread(target=run, daemon=True)
    feeding.start()
    time.sleep(ALONE_S)
    assert not ended
    with running(elasticsearch_url, "--port", str(port), forest=index_name("forest")):
        feeding.join(60)
    assert [type(each) for each in ended] == [Enough]
    es.indices.refresh(index=index)
    assert roots(es, index).keys() == {each["id"] for each in FED}

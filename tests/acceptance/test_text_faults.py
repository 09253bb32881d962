"""Commands that meet texts at which the core fails: these articles are named, the others are written."""

import pytest

from tests.acceptance.conftest import LONG, Run, lines
from tests.support.faults import PLACE, fail_at
from tests.support.names import Names

ARTICLES = lines(
    {"id": "1", "text": LONG},
    {"id": "2", "text": f"{LONG} amid grumbleweed"},
    {"id": "3", "text": f"Another one, {LONG}"},
)
SAID = f"standard input:2 (id '2'): its text met a fault in esdedup; please report it: {PLACE}"


@pytest.fixture(autouse=True)
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(monkeypatch, "grumbleweed", when_parsed=True)


def test_clusters_of_files(run: Run) -> None:
    done = run("cluster", "-", stdin=ARTICLES)
    assert (done.code, len(done.out.splitlines()), SAID in done.err) == (1, 2, True)


def test_an_index(run: Run, elasticsearch_url: str, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    run("setup", index, url=elasticsearch_url)
    options = ("--index", index, "--forest", forest, "--json")
    done = run("index", "-", *options, stdin=ARTICLES, url=elasticsearch_url)
    assert (done.code, done.json["indexed"], done.json["failed"]) == (1, 2, 1)
    assert SAID in done.err

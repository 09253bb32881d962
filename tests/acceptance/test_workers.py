"""Commands that fingerprint in several processes: byte for byte what one process gives."""

import json
import multiprocessing
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.fingerprint_processes import FingerprintProcesses

from tests.acceptance.conftest import Run, lines
from tests.support.names import Names
from tests.support.pages import pages

# Each has boilerplate that is learned meanwhile, so the order in which pages are judged counts.
PAGES = lines(*pages(300))


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many processes there were, for each batch that they fingerprinted."""
    found = []
    fingerprint = FingerprintProcesses.fingerprint

    def noted(self: FingerprintProcesses, *given: Any, **options: Any) -> Any:
        result = fingerprint(self, *given, **options)
        found.append(len(multiprocessing.active_children()))
        return result

    monkeypatch.setattr(FingerprintProcesses, "fingerprint", noted)
    return found


def test_clusters_are_the_same(run: Run, used: list[int]) -> None:
    alone = run("cluster", "-", stdin=PAGES)
    assert not used
    assert run("cluster", "-", "--workers", 2, stdin=PAGES).out == alone.out
    assert used == [2]
    assert len(alone.out.splitlines()) == 300
    assert not multiprocessing.active_children()


def test_indexed_articles_are_the_same(
    run: Run, used: list[int], es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    found = []
    for workers in (0, 2):
        index, forest = index_name("articles"), index_name("forest")
        run("setup", index, url=elasticsearch_url)
        how = ("--index", index, "--forest", forest, "--workers", workers, "--json")
        assert json.loads(run("index", "-", *how, stdin=PAGES, url=elasticsearch_url).out)["indexed"] == 300
        es.indices.refresh(index=index)
        hits = sorted(helpers.scan(es, index=index), key=lambda hit: hit["_id"])
        found.append([{**hit["_source"]["dedup"], "seen": 0, "published": 0} for hit in hits])
    assert found[0] == found[1]
    assert set(used) == {2}

"""Commands that fingerprint in several threads: byte for byte what one thread gives."""

import json

from elasticsearch import Elasticsearch, helpers

from tests.acceptance.conftest import Run, lines
from tests.support.names import Names
from tests.support.pages import pages

# Each has boilerplate that is learned meanwhile, so the order in which pages are judged counts.
PAGES = lines(*pages(300))


def test_clusters_are_the_same(run: Run) -> None:
    alone = run("cluster", "-", stdin=PAGES)
    assert run("cluster", "-", "--workers", 4, stdin=PAGES).out == alone.out
    assert len(alone.out.splitlines()) == 300
    assert run("cluster", "-", "--workers", 0, stdin=PAGES).code == 2


def test_indexed_articles_are_the_same(
    run: Run, es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    found = []
    for workers in (1, 4):
        index, forest = index_name("articles"), index_name("forest")
        run("setup", index, url=elasticsearch_url)
        how = ("--index", index, "--forest", forest, "--workers", workers, "--json")
        assert json.loads(run("index", "-", *how, stdin=PAGES, url=elasticsearch_url).out)["indexed"] == 300
        es.indices.refresh(index=index)
        hits = sorted(helpers.scan(es, index=index), key=lambda hit: hit["_id"])
        found.append([{**hit["_source"]["dedup"], "seen": 0, "published": 0} for hit in hits])
    assert found[0] == found[1]

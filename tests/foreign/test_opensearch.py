"""OpenSearch 3 instead of Elasticsearch: stores, feeding, adopting, migrating and reading."""

import asyncio
import functools
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import (
    Adoption,
    AsyncReader,
    Dedup,
    Maintenance,
    Migration,
    Reader,
    Removal,
    ServerUnavailable,
    connect,
    connect_async,
)
from tests import sample
from tests.acceptance.conftest import Run, lines
from tests.support import exploring, opensearch, server
from tests.support.forests import ARTICLES
from tests.support.names import Names, new_names
from tests.support.sidecar_process import ROOT, running

# Test files that get their client from a fixture, and use no feature that OpenSearch lacks.
SHARED_TESTS = ("contract/test_store.py", "integration/test_lists.py", "integration/test_maintenance.py")
# `make nightly` runs these files completely. Other test runs use fewer examples and only lists on one shard,
# and skip maintenance and the store in memory.
IS_WHOLE = exploring.EFFORT > 1

JSON = {"accept": "application/json", "content-type": "application/json"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with opensearch.running() as url:
        yield url


@pytest.fixture
def es(url: str) -> Iterator[Elasticsearch]:
    with connect(url) as client:
        yield client


@pytest.fixture
def index_name(es: Elasticsearch) -> Iterator[Names]:
    with new_names(es) as name:
        yield name


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shared_tests_pass_on_opensearch(url: str) -> None:
    paths = [f"tests/{each}" for each in SHARED_TESTS[: None if IS_WHOLE else 2]]
    chosen = [] if IS_WHOLE else ["-k", "not five and not test_memory"]
    effort = {} if IS_WHOLE else {"ESDEDUP_TEST_EFFORT": "0.3"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *paths],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | effort | {server.URL_VARIABLE: url},
    )
    assert done.returncode == 0, done.stdout[-3_000:]
    assert " passed" in done.stdout


def test_articles_are_fed_adopted_migrated_and_read(es: Elasticsearch, url: str, index_name: Names) -> None:
    index, plain, forest = index_name("fed"), index_name("plain"), index_name("forest")
    half = len(ARTICLES) // 2
    helpers.bulk(es, ({"_index": plain, **article} for article in ARTICLES[half:]), refresh=True)
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in ARTICLES[:half]), refresh=True)
        adoption = Adoption(es, plain)
        adoption.run(dedup)
    assert adoption.summary.written == len(ARTICLES) - half
    both = f"{index},{plain}"
    es.indices.refresh(index=both)
    assert not list(Maintenance(es, forest=forest).verify([both]))
    reader = Reader(es, forest=forest)
    page = reader.list(both, sort="similar-desc")
    assert page.total_articles == len(ARTICLES)

    async def awaited() -> tuple[Any, ...]:
        async with connect_async(url) as client:
            other = AsyncReader(client, forest=forest)
            return await other.list(both, sort="similar-desc"), await other.similar(both, page.rows[0].id)

    assert asyncio.run(awaited()) == (page, reader.similar(both, page.rows[0].id))
    assert reader.similar_to_text(both, str(ARTICLES[0]["text"])).root is not None
    migration = Migration(es, both, forest=forest, to=index_name("next"))
    with Dedup(es, forest=migration._to, fields=migration.fields) as dedup:
        migration.run(dedup)
        migration.swap(dedup)
    assert migration.summary.written == len(ARTICLES)
    assert not list(Maintenance(es, forest=migration._to).verify([both]))
    after = Reader(es).list(both, sort="similar-desc")
    assert (after.total_articles, after.not_enriched) == (len(ARTICLES), 0)
    assert reader.overview(both) == Reader(es).overview(both)


def test_data_streams_are_set_up_fed_adopted_and_migrated(
    run: Run, es: Elasticsearch, url: str, index_name: Names
) -> None:
    """Only OpenSearch is tested: Elasticsearch's published jars lack the module for data streams."""
    stream, template = index_name("stream"), index_name("template")
    forest, following = index_name("forest"), index_name("following")
    articles = [{**each, "@timestamp": each["published_at"]} for each in ARTICLES]
    send = functools.partial(es.perform_request, headers=JSON)
    mappings = {"properties": {"@timestamp": {"type": "date"}}}
    body = {"index_patterns": [f"{stream}*"], "data_stream": {}, "template": {"mappings": mappings}}
    send("PUT", f"/_index_template/{template}", body=body)
    try:
        creating = [{"_op_type": "create", "_index": stream, **each} for each in articles]
        refused = run("setup", f"{stream}-2", url=url)
        assert refused.code == 3
        assert "will be a data stream" in refused.err
        helpers.bulk(es, creating[:50], refresh=True)
        send("POST", f"/{stream}/_rollover", body={})
        adopted = run("adopt", stream, "--forest", forest, "--json", url=url).json
        assert adopted["written"] == 50
        with running(url, forest=forest) as sidecar, connect(sidecar.url) as through:
            helpers.bulk(through, creating[50:100], refresh=True)
        # The template adds the fields to the mapping of the new backing index.
        send("POST", f"/{stream}/_rollover", body={})
        given = ("index", "-", "--index", stream, "--forest", forest, "--id-field", "_id", "--json")
        assert run(*given, stdin=lines(*articles[100:150]), url=url).json["failed"] == 50
        for repeated in (0, 50):
            summary = run(*given, "--create", stdin=lines(*articles[100:150]), url=url).json
            assert (summary["written"], summary["skipped"], summary["failed"]) == (50 - repeated, repeated, 0)
        page = Reader(es).list(stream, sort="similar-desc")
        assert (page.total_articles, page.not_set_up, page.not_enriched) == (150, (), 0)
        assert not list(Maintenance(es, forest=forest).verify([stream]))
        migration = Migration(es, stream, forest=forest, to=following)
        with Dedup(es, forest=following, fields=migration.fields) as dedup:
            migration.run(dedup)
            migration.swap(dedup)
        send("POST", f"/{stream}/_rollover", body={})
        with Dedup(es, forest=following) as dedup:
            helpers.bulk(es, dedup.enrich(creating[150:200]), refresh=True)
        assert Reader(es).list(stream).total_articles == 200
        assert not list(Maintenance(es, forest=following).verify([stream]))
        removal = Removal(es, stream)
        assert (removal.total, removal.templates, removal.forest) == (200, (template,), following)
        removal.run()
        es.indices.refresh(index=stream)
        left = {hit["_id"]: hit["_source"] for hit in helpers.scan(es, index=stream)}
        assert [{"_id": name, **left[name]} for name in sorted(left)] == articles[:200]
    finally:
        for path in (f"/_data_stream/{stream}", f"/_index_template/{template}"):
            send("DELETE", path)


def test_a_sidecar_accepts_articles_for_opensearch(es: Elasticsearch, url: str, index_name: Names) -> None:
    """The feeder sends a standard media type, not Elasticsearch's own."""
    index, forest = index_name("through"), index_name("forest")
    Dedup(es, forest=forest).setup(index)
    with running(url, forest=forest) as sidecar:
        body = []
        for each in ARTICLES[:50]:
            source = {name: value for name, value in each.items() if name != "_id"}
            body += [json.dumps({"index": {"_index": index, "_id": each["_id"]}}), json.dumps(source)]
        request = urllib.request.Request(f"{sidecar.url}/_bulk?refresh=true", "\n".join([*body, ""]).encode())
        request.add_header("Content-Type", "application/x-ndjson")
        with urllib.request.urlopen(request) as answer:
            assert not json.load(answer)["errors"]
        found = sidecar.get(f"/api/v1/list?index={index}")
    assert found["total_articles"] == 50
    assert not list(Maintenance(es, forest=forest).verify([index]))


def test_commands_recognise_opensearch(run: Run, url: str, index_name: Names) -> None:
    index, forest = index_name("commands"), index_name("forest")
    assert run("setup", index, url=url).code == 0
    articles = list(sample.articles(60))
    given = ("index", "-", "--index", index, "--forest", forest, "--json")
    summary = run(*given, stdin=lines(*articles), url=url).json
    assert summary["written"] == len(articles)
    page = run("list", "--index", index, "--sort", "similar-desc", "--json", url=url).json
    assert page["total_rows"] == summary["new_roots"]
    checked = run("verify", "--index", index, "--forest", forest, "--json", url=url)
    assert (checked.code, checked.json["violations"]) == (0, {})


def test_clients_for_elasticsearch_are_refused(es: Elasticsearch, url: str, index_name: Names) -> None:
    index = index_name("other")
    Dedup(es).setup(index)
    with Elasticsearch(url) as client, pytest.raises(ServerUnavailable, match=r"esdedup\.connect"):
        Reader(client).list(index)

"""The versions of a story, and who had it first, against every article of its cluster."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import ArticleNotFound, Dedup, Maintenance, Reader, SettingError, sample
from esdedup.reading.versions import TimeOrder
from esdedup.times import time_ms

INDEX, FOREST = "test-versions", "test-versions-forest"


@pytest.fixture(scope="module")
def members(es: Elasticsearch) -> Iterator[list[dict[str, Any]]]:
    """The articles of the largest cluster, as they are stored, the earliest first."""
    es.options(ignore_status=404).indices.delete(index=[INDEX])
    es.options(ignore_status=404).indices.delete(index=[FOREST])
    articles = list(sample.articles(400))
    with Dedup(es, forest=FOREST) as dedup:
        dedup.setup(INDEX)
        actions = ({"_index": INDEX, "_id": each["id"], "_source": each} for each in articles)
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    hits = list(helpers.scan(es, index=INDEX))
    ((root, _),) = Counter(hit["_source"]["dedup"]["root"] for hit in hits).most_common(1)
    cluster = [hit for hit in hits if hit["_source"]["dedup"]["root"] == root]
    yield sorted(cluster, key=place)
    es.indices.delete(index=[INDEX, FOREST])


def place(hit: dict[str, Any]) -> tuple[int, int]:
    published_ms = time_ms(hit["_source"]["dedup"]["published"])
    assert published_ms is not None
    return published_ms, hit["_source"]["dedup"]["seq"]


def texts(hits: list[dict[str, Any]]) -> list[list[str]]:
    """Return the ids of the articles with each fingerprint, in the order in which these first occur."""
    found: dict[str, list[str]] = {}
    for hit in hits:
        found.setdefault(hit["_source"]["dedup"]["fingerprint"], []).append(hit["_id"])
    return list(found.values())


@pytest.mark.parametrize("sort", ["oldest", "newest"])
@pytest.mark.parametrize("other_sources", [False, True])
def test_versions_are_the_texts_of_a_cluster_in_order(
    es: Elasticsearch, members: list[dict[str, Any]], sort: TimeOrder, other_sources: bool
) -> None:
    own = members[len(members) // 2]
    wanted = [
        hit
        for hit in (members if sort == "oldest" else reversed(members))
        if not other_sources or hit["_source"]["source"] != own["_source"]["source"]
    ]
    expected = texts(wanted)
    assert any(len(each) > 1 for each in expected), "no text has a copy"
    reader, found, size = Reader(es), [], 7
    for page in itertools.count(1):
        got = reader.versions(INDEX, own["_id"], sort=sort, other_sources=other_sources, page=page, size=size)
        assert (got.total, got.total_versions) == (len(wanted), len(expected))
        assert (got.page, got.size, got.sort) == (page, size, sort)
        for version in got.versions:
            assert version.fingerprint is not None
            assert len(version.copies_shown) == min(version.copies, 20)
            found.append([version.article.id, *(each.id for each in version.copies_shown)])
            assert version.article.resemblance is not None
        if page * size >= len(expected):
            break
    assert found == [each[:21] for each in expected]
    same = reader.with_fingerprint(INDEX, got.versions[-1].fingerprint or "")
    assert {each.id for each in same.rows} >= set(found[-1])


def test_a_timeline_names_the_first_and_the_largest_source(
    es: Elasticsearch, members: list[dict[str, Any]]
) -> None:
    found = Reader(es).timeline(INDEX, members[0]["_source"]["dedup"]["root"])
    assert found.earliest is not None
    assert found.earliest.id == members[0]["_id"]
    counts = Counter(hit["_source"]["source"] for hit in members)
    assert found.largest_source_articles == max(counts.values())
    assert counts[found.largest_source] == max(counts.values())
    assert sum(step.articles for step in found.steps) == len(members)
    nothing = Reader(es).timeline(INDEX, "no such root")
    assert (nothing.earliest, nothing.largest_source, nothing.largest_source_articles) == (None, None, 0)


def test_readers_explain_as_maintenance_does(es: Elasticsearch, members: list[dict[str, Any]]) -> None:
    reader, maintenance = Reader(es, forest=FOREST), Maintenance(es, forest=FOREST)
    own = members[0]["_id"]
    elsewhere = next(
        row.id for row in reader.list(INDEX).rows if row.root != members[0]["_source"]["dedup"]["root"]
    )
    for other in (own, members[-1]["_id"], elsewhere):
        found = reader.explain(INDEX, own, other, in_index=INDEX)
        assert found == maintenance.explain(INDEX, own, other)
        assert found.same_cluster is (other != elsewhere)
    # Without a forest the index alone tells.
    alone = Reader(es, forest="test-versions-none").explain(INDEX, own, members[-1]["_id"])
    assert alone.same_cluster
    assert alone.forest_missing is not None
    with pytest.raises(ArticleNotFound):
        reader.explain(INDEX, own, own, other_in_index="test-versions-none")


def test_what_versions_refuse(es: Elasticsearch, members: list[dict[str, Any]]) -> None:
    reader, article_id = Reader(es), members[0]["_id"]
    odd: Any = "similar"
    with pytest.raises(SettingError, match="oldest or newest"):
        reader.versions(INDEX, article_id, sort=odd)
    with pytest.raises(SettingError, match="numbered pages end"):
        reader.versions(INDEX, article_id, page=1_001, size=10)

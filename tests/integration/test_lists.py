"""The list against a brute-force answer computed from all documents."""

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import ArticleNotFound, Dedup, SettingError
from esdedup.queries import SORTS, Sort

Names = Callable[[str], str]
DAY_MS = 86_400_000


@pytest.fixture(scope="module", params=[1, 3], ids=["one shard", "three shards"])
def corpus(request: pytest.FixtureRequest, es: Elasticsearch) -> Any:
    """Articles with ready roots: clusters of 1 to 40, equal times, missing times."""
    index = f"test-lists-{request.param}"
    chance = random.Random(11)
    es.options(ignore_status=404).indices.delete(index=index)
    es.indices.create(index=index, settings={"number_of_shards": request.param})
    dedup = Dedup(es)
    dedup.setup(index)
    documents: dict[str, dict[str, Any]] = {}
    for cluster in range(150):
        for _ in range(chance.choice([1, 1, 1, 2, 3, 7, 40])):
            article_id = f"a{len(documents)}"
            documents[article_id] = {
                "title": " ".join(chance.choices(["red", "green", "blue", "grey"], k=2)),
                "published_at": None if chance.random() < 0.1 else chance.randrange(20) * DAY_MS,
                "source": chance.choice(["A", "B"]),
                "dedup": {"root": f"root{cluster:03d}", "seq": len(documents) + 1},
            }
    mapping = {
        "properties": {
            "title": {"type": "text"},
            "published_at": {"type": "date"},
            "source": {"type": "keyword"},
        }
    }
    es.indices.put_mapping(index=index, **mapping)
    helpers.bulk(
        es, ({"_index": index, "_id": each, "_source": source} for each, source in documents.items())
    )
    es.index(index=index, id="without-root", document={"title": "red"})
    es.indices.refresh(index=index)
    yield index, documents
    es.indices.delete(index=index)


QUERIES: list[tuple[dict[str, Any] | None, Callable[[dict[str, Any]], bool]]] = [
    (None, lambda article: True),
    ({"term": {"source": "A"}}, lambda article: article["source"] == "A"),
    ({"match": {"title": "red"}}, lambda article: "red" in article["title"]),
    ({"match": {"title": "nothing"}}, lambda article: False),
]


def newest_first(article: dict[str, Any]) -> tuple[bool, int, int]:
    time = article["published_at"]
    return (time is None, -(time or 0), -article["dedup"]["seq"])


def oldest_first(article: dict[str, Any]) -> tuple[bool, int, int]:
    time = article["published_at"]
    return (time is None, time or 0, article["dedup"]["seq"])


@pytest.mark.parametrize("sort", [sort for sort in SORTS if sort != "relevance"])
@pytest.mark.parametrize("query", range(len(QUERIES)))
def test_every_page_against_brute_force(es: Elasticsearch, corpus: Any, sort: Sort, query: int) -> None:
    index, documents = corpus
    body, matches = QUERIES[query]
    sizes = Counter(article["dedup"]["root"] for article in documents.values())
    clusters = defaultdict(list)
    for article_id, article in documents.items():
        if matches(article):
            clusters[article["dedup"]["root"]].append(article_id)
    key = oldest_first if sort == "oldest" else newest_first
    heads = {root: min(ids, key=lambda each: key(documents[each])) for root, ids in clusters.items()}
    if sort.startswith("similar"):
        sign = -1 if sort == "similar-desc" else 1
        order = sorted(heads, key=lambda root: (sign * sizes[root], root))
    else:
        order = sorted(heads, key=lambda root: key(documents[heads[root]]))
    expected = [(heads[root], root, sizes[root] - 1, len(clusters[root])) for root in order]

    dedup, found = Dedup(es), []
    for number in itertools.count(1):
        page = dedup.list(index, query=body, sort=sort, page=number, size=40)
        assert (page.total_rows, page.total_rows_exact) == (len(expected), True)
        assert page.total_articles == sum(map(len, clusters.values()))
        assert page.order_exact
        found += [(row.id, row.root, row.similar, row.matching) for row in page.rows]
        if len(page.rows) < 40:
            break
    assert found == expected


def test_relevance(es: Elasticsearch, corpus: Any) -> None:
    index, documents = corpus
    query = {"match": {"title": "red"}}
    page = Dedup(es).list(index, query=query, sort="relevance", size=1000)
    roots = [row.root for row in page.rows]
    assert len(roots) == len(set(roots)) == page.total_rows
    assert {row.root for row in page.rows} == {
        article["dedup"]["root"] for article in documents.values() if "red" in article["title"]
    }


def test_similar_against_brute_force(es: Elasticsearch, corpus: Any) -> None:
    index, documents = corpus
    dedup = Dedup(es)
    for article_id in list(documents)[::60]:
        root = documents[article_id]["dedup"]["root"]
        expected = [
            each
            for each, article in documents.items()
            if article["dedup"]["root"] == root and each != article_id
        ]
        expected.sort(key=lambda each: newest_first(documents[each]))
        found = [
            article.id
            for number in (1, 2, 3)
            for article in dedup.similar(index, article_id, page=number, size=15).articles
        ]
        assert found == expected
        assert dedup.similar(index, article_id).total == len(expected)


def test_what_is_refused(es: Elasticsearch, corpus: Any) -> None:
    index, _ = corpus
    dedup = Dedup(es)
    with pytest.raises(ArticleNotFound, match="no article"):
        dedup.similar(index, "none")
    with pytest.raises(ArticleNotFound, match="no root"):
        dedup.similar(index, "without-root")
    with pytest.raises(SettingError, match="beyond row"):
        dedup.list(index, page=501, size=20)
    with pytest.raises(SettingError, match="at least 1"):
        dedup.list(index, page=0)
    with pytest.raises(SettingError, match="no sort"):
        dedup.list(index, sort="random")  # type: ignore[arg-type]

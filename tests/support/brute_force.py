"""Computes lists from all documents, for comparison on random corpora and queries."""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from elasticsearch import Elasticsearch

from esdedup import Fields, Page
from esdedup.elastic.execute import execute
from esdedup.elastic.requests import Query
from esdedup.reading.list_request import Head, Sort
from esdedup.reading.lists import list_rows
from esdedup.reading.scope import Scope, Tuning

Document = dict[str, Any]
HOUR_MS = 3_600_000
WORDS = ["red", "green", "blue", "grey", "gold"]
SOURCES = ["A", "B", "C", "D"]


def random_corpus(chance: random.Random, *, clusters: int) -> dict[str, Document]:
    """Return articles with roots, in clusters of 1 to 60; some have equal times, or no time or source."""
    documents: dict[str, Document] = {}
    roots = [f"root{chance.randrange(10**6):06d}" for _ in range(clusters)]
    arrivals = [
        root
        for root in roots
        for _ in range(chance.choice([1, 1, 1, 1, 2, 2, 3, 5, 8, 20]) if root != roots[0] else 60)
    ]
    chance.shuffle(arrivals)
    for seq, root in enumerate(arrivals, 1):
        text_length = chance.choice([10, 20, 20, 30])
        published = None if chance.random() < 0.1 else chance.randrange(60) * HOUR_MS
        # Implausible dates must not affect the list.
        is_believed = published is None or chance.random() < 0.9
        documents[f"a{seq}"] = {
            "title": " ".join(chance.choices(WORDS, k=chance.randint(1, 4))),
            "published_at": published if is_believed else chance.choice([-1, 1]) * 10**13,
            "source": None if chance.random() < 0.1 else chance.choice(SOURCES),
            "dedup": {"root": root, "seq": seq, "length": text_length, "published": published},
        }
    return documents


@dataclasses.dataclass(frozen=True)
class RandomQuery:
    """A query, and the same condition in Python."""

    query: Query | None
    matches: Callable[[Document], bool]


def random_query(chance: random.Random) -> RandomQuery:
    """Return a query by word, source or time, a query that combines two of these, or no query."""
    kind = chance.randrange(6)
    word, source = chance.choice(WORDS), chance.choice(SOURCES)
    start, end = sorted((chance.randrange(60) * HOUR_MS, chance.randrange(60) * HOUR_MS))
    time = {"range": {"published_at": {"gte": start, "lte": end}}}

    def in_time(article: Document) -> bool:
        return article["published_at"] is not None and start <= article["published_at"] <= end

    if kind == 0:
        return RandomQuery(None, lambda article: True)
    if kind == 1:
        return RandomQuery({"term": {"source": source}}, lambda article: article["source"] == source)
    if kind == 2:
        return RandomQuery({"match": {"title": word}}, lambda article: word in article["title"].split())
    if kind == 3:
        return RandomQuery(time, in_time)
    if kind == 4:
        return RandomQuery(
            {"bool": {"must": {"match": {"title": word}}, "filter": time}},
            lambda article: word in article["title"].split() and in_time(article),
        )
    return RandomQuery(
        {"bool": {"must_not": {"term": {"source": source}}, "filter": {"exists": {"field": "source"}}}},
        lambda article: article["source"] not in {None, source},
    )


def newest_first(article: Document) -> tuple[bool, int, int]:
    time = article["dedup"]["published"]
    return (time is None, -(time or 0), -article["dedup"]["seq"])


def oldest_first(article: Document) -> tuple[bool, int, int]:
    time = article["dedup"]["published"]
    return (time is None, time or 0, article["dedup"]["seq"])


def longest_first(article: Document) -> tuple[Any, ...]:
    return (-article["dedup"]["length"], *newest_first(article))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """All rows of a list, as (id, similar, matching, sources, first, last), and its totals."""

    rows: list[tuple[Any, ...]]
    total_articles: int


def expected_list(
    documents: dict[str, Document],
    query: RandomQuery,
    *,
    sort: Sort,
    head: Head | None = None,
    min_similar: int = 0,
    min_sources: int = 0,
    dedup: bool = True,
) -> Expected:
    """Compute a list from all documents, in any sort except relevance, which needs Elasticsearch's scores."""
    clusters: dict[str, list[str]] = defaultdict(list)
    for article_id, article in documents.items():
        clusters[article["dedup"]["root"]].append(article_id)
    matching = {
        root: found
        for root, ids in clusters.items()
        if (found := [each for each in ids if query.matches(documents[each])])
    }
    by_place = oldest_first if sort == "oldest" else newest_first
    keys = {"newest": newest_first, "earliest": oldest_first, "longest": longest_first}
    by_head = by_place if head is None else keys[head]

    def first(ids: list[str], key: Callable[[Document], Any]) -> str:
        return min(ids, key=lambda each: key(documents[each]))

    def numbers(root: str) -> tuple[Any, ...]:
        cluster = [documents[each] for each in clusters[root]]
        times = [time for each in cluster if (time := each["dedup"]["published"]) is not None]
        return (
            len(cluster) - 1,
            len(matching[root]),
            len({each["source"] for each in cluster} - {None}),
            min(times, default=None),
            max(times, default=None),
        )

    total = sum(map(len, matching.values()))
    if not dedup:
        ids = sorted(
            (each for found in matching.values() for each in found),
            key=lambda each: by_place(documents[each]),
        )
        return Expected(
            rows=[(each, *numbers(documents[each]["dedup"]["root"])) for each in ids], total_articles=total
        )
    roots = list(matching)
    roots = [root for root in roots if numbers(root)[0] >= min_similar and numbers(root)[2] >= min_sources]
    if sort == "sources-desc":
        roots.sort(key=lambda root: (-numbers(root)[2], -len(clusters[root]), root))
    elif sort.startswith("similar"):
        sign = -1 if sort == "similar-desc" else 1
        roots.sort(key=lambda root: (sign * len(clusters[root]), root))
    else:
        roots.sort(key=lambda root: by_place(documents[first(matching[root], by_place)]))
    return Expected(
        rows=[(first(matching[root], by_head), *numbers(root)) for root in roots], total_articles=total
    )


def list_tuned(es: Elasticsearch, tuning: Tuning, index: str, **options: Any) -> Page:
    """Return a page of results as `Reader.list` does, but with the limits in `tuning`.

    With small limits, a few articles suffice to exercise every way of counting.
    """
    return execute(es, list_rows(Scope(fields=Fields(), tuning=tuning), index, **options))

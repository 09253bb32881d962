"""Every page of results in every sort equals a brute-force result computed from all documents."""

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import ArticleNotFound, Dedup, Page, Reader, Row, SettingError
from esdedup.elastic import limits
from esdedup.elastic.execute import ServerCache, execute
from esdedup.elastic.requests import UNREAD, Search
from esdedup.fields import Fields, partition_of
from esdedup.reading.lists import list_rows
from esdedup.reading.scope import Scope, Tuning
from esdedup.times import iso
from tests.support.brute_force import (
    Document,
    RandomQuery,
    expected_list,
    list_tuned,
    newest_first,
    random_corpus,
    random_query,
)
from tests.support.exploring import new_random, times_effort
from tests.support.forests import Read
from tests.support.names import Names
from tests.support.noted_searches import noting

PAGE_SIZES = (11, 40)


class Corpus:
    """Random articles in an index."""

    def __init__(self, es: Elasticsearch, name: str, shards: int, routed: bool) -> None:
        self.name = name
        self.index = f"test-{name}"
        self.is_routed = routed
        self.documents: dict[str, Document] = random_corpus(random.Random(name), clusters=130)
        es.options(ignore_status=404).indices.delete(index=self.index)
        Dedup(es).setup(self.index, shards=shards, route_by_root=routed)
        helpers.bulk(
            es,
            (
                {
                    "_index": self.index,
                    "_id": each,
                    "_source": source,
                    **({"routing": source["dedup"]["root"]} if routed else {}),
                }
                for each, source in self.documents.items()
            ),
        )
        if not routed:
            es.index(index=self.index, id="without-root", document={"title": "red"})
        es.indices.refresh(index=self.index)


@pytest.fixture(
    scope="module",
    params=[(1, False), (5, False), (5, True)],
    ids=["one shard", "five shards", "five routed"],
)
def corpus(request: pytest.FixtureRequest, es: Elasticsearch) -> Iterator[Corpus]:
    shards, routed = request.param
    made = Corpus(es, f"lists-{shards}-{int(routed)}", shards, routed)
    yield made
    es.indices.delete(index=made.index)


def all_pages(read: Read, index: str, *, size: int, by_number: bool, **options: Any) -> list[Page]:
    """Read all pages of a list, by cursor or by number."""
    pages: list[Page] = []
    after = None
    for number in itertools.count(1):
        place = {"page": number} if by_number else {"after": after}
        page: Page = read("list", index, size=size, **place, **options)
        assert page.page == number
        pages.append(page)
        after = page.next
        if after is None:
            break
        assert len(page.rows) == size
    return pages


def seen(pages: list[Page]) -> list[tuple[Any, ...]]:
    return [
        (row.id, row.similar, row.matching, row.sources, row.first, row.last)
        for page in pages
        for row in page.rows
    ]


def random_options(chance: random.Random, sort: str) -> dict[str, Any]:
    options: dict[str, Any] = {"sort": sort, "head": chance.choice([None, "newest", "earliest", "longest"])}
    if sort in {"newest", "oldest"} and chance.random() < 0.2:
        return {"sort": sort, "dedup": False}
    if chance.random() < 0.5:
        options |= {"min_similar": chance.randrange(4), "min_sources": chance.randrange(4)}
    return options


@pytest.mark.parametrize("sort", ["newest", "oldest", "similar-desc", "similar-asc", "sources-desc"])
def test_every_page_equals_brute_force(corpus: Corpus, read: Read, sort: str) -> None:
    name = f"{sort} {corpus.name}"
    # The first case is the same in every run; the other cases are random.
    for chance in [random.Random(name)] + [new_random(name)] * times_effort(1):
        query, options = random_query(chance), random_options(chance, sort)
        size, by_number = chance.choice(PAGE_SIZES), chance.random() < 0.3
        pages = all_pages(read, corpus.index, query=query.query, size=size, by_number=by_number, **options)
        expected = expected_list(corpus.documents, query, **options)
        rows = [
            (*row[:4], *(None if time is None else iso(time) for time in row[4:])) for row in expected.rows
        ]
        assert seen(pages) == rows, (query.query, options, size)
        for page in pages:
            assert (page.total_rows, page.total_rows_exact) == (len(rows), True)
            assert page.total_articles == expected.total_articles
            assert page.order_exact


def test_sorting_by_sources_reads_until_the_order_is_proven(corpus: Corpus, es: Elasticsearch) -> None:
    query = RandomQuery({"match_all": {}}, lambda _: True)
    expected = [row[0] for row in expected_list(corpus.documents, query, sort="sources-desc").rows]
    options: dict[str, Any] = {"sort": "sources-desc", "size": 5}
    # The counts of ten clusters do not prove the order; the counts of all clusters do.
    page = list_tuned(es, Tuning(first_roots=2), corpus.index, **options)
    assert ([row.id for row in page.rows], page.order_exact) == (expected[:5], True)
    # If `max_roots` prevents the proof, the order is not reported as exact.
    page = list_tuned(es, Tuning(first_roots=2, max_roots=10), corpus.index, **options)
    assert not page.order_exact


def test_source_order_of_single_article_clusters_needs_few_roots(
    es: Elasticsearch, index_name: Callable[[str], str]
) -> None:
    index = index_name("single")
    Dedup(es).setup(index)
    actions = (
        {"_index": index, "_id": str(number), "_source": {"source": "s", "dedup": dedup}}
        for number in range(40)
        for dedup in [{"root": f"{number:02}", "seq": number, "published": number}]
    )
    helpers.bulk(es, actions, refresh=True)
    # At most the first 10 roots are requested.
    tuning = Tuning(first_roots=10, max_roots=10)
    for least, expected in ((0, ["00", "01", "02"]), (2, [])):
        page = list_tuned(es, tuning, index, sort="sources-desc", size=3, min_sources=least)
        assert ([row.root for row in page.rows], page.order_exact) == (expected, True)


def test_sort_rising_orders_clusters_by_recent_articles(
    es: Elasticsearch, read: Read, index_name: Callable[[str], str]
) -> None:
    index, now_ms, hour_ms = index_name("rising"), int(time.time() * 1_000), 3_600_000
    Dedup(es).setup(index)
    # The ages of the articles of each root, in hours.
    ages = {"large": [30] * 9 + [1], "rising": [1, 2, 3, 40], "fading": [25, 26], "new": [0, 5]}
    actions = (
        {"_index": index, "_source": {"title": "red", "source": f"s{number}", "dedup": dedup}}
        for number, (root, age) in enumerate((root, age) for root in ages for age in ages[root])
        for dedup in [{"root": root, "seq": number, "published": now_ms - age * hour_ms}]
    )
    helpers.bulk(es, actions, refresh=True)
    page = read("list", index, sort="rising")
    assert [(row.root, row.matching, row.similar) for row in page.rows] == [
        ("rising", 3, 3),
        ("new", 2, 1),
        ("large", 1, 9),
    ]
    assert (page.total_rows, page.total_articles, page.sort) == (3, 6, "rising")
    assert [row.root for row in read("list", index, sort="rising", min_similar=4).rows] == ["large"]
    query = {"term": {"source": "s9"}}
    assert [row.root for row in read("list", index, sort="rising", query=query).rows] == ["large"]
    first = read("list", index, sort="rising", size=1)
    assert read("list", index, sort="rising", size=1, after=first.next).rows[0].root == "new"


@pytest.mark.parametrize(("sort", "min_similar"), [("newest", 0), ("oldest", 1), ("newest", 3)])
def test_truncated_pages_together_contain_every_row(
    corpus: Corpus, es: Elasticsearch, sort: str, min_similar: int
) -> None:
    tuning = Tuning(read_articles=10, read_articles_per_row=1)
    query = random_query(random.Random(3))
    options: dict[str, Any] = {"sort": sort, "min_similar": min_similar}
    pages = [list_tuned(es, tuning, corpus.index, query=query.query, size=7, **options)]
    while pages[-1].next is not None:
        after = pages[-1].next
        pages.append(list_tuned(es, tuning, corpus.index, query=query.query, size=7, after=after, **options))
    expected = [row[0] for row in expected_list(corpus.documents, query, **options).rows]
    assert [row.id for page in pages for row in page.rows] == expected
    assert all(page.cut_short == (len(page.rows) < 7 and page.next is not None) for page in pages)
    assert any(page.cut_short for page in pages)
    # A numbered page that is cut short has a cursor, too.
    third = list_tuned(es, tuning, corpus.index, query=query.query, size=7, page=3, **options)
    if third.cut_short:
        assert third.next is not None
    assert [row.id for row in third.rows] == expected[14:21][: len(third.rows)]


def test_a_list_without_rows_stops_early(corpus: Corpus, es: Elasticsearch) -> None:
    sent: list[Search] = []
    scope = Scope(fields=Fields(), tuning=Tuning(read_articles=30, read_articles_per_row=1))
    page = execute(es, noting(list_rows(scope, corpus.index, min_similar=1_000, size=5), sent))
    bodies = [body for request in sent for body in request.bodies]
    assert sum(body["size"] for body in bodies if "collapse" not in body) == 36
    assert page.total_articles > 36
    assert (page.rows, page.cut_short, page.next is None) == ((), True, False)


@pytest.mark.parametrize("query", [None, {"bool": {"filter": {"exists": {"field": "source"}}}}])
@pytest.mark.parametrize("margin", [0.05, 0.5, 5.0])
def test_newest_articles_are_found_in_any_time_span(
    corpus: Corpus, es: Elasticsearch, margin: float, query: Document | None
) -> None:
    """The time spans contain too few, just enough or many articles; articles without a time come last."""
    tuning = Tuning(spanned_articles=1, span_margin=margin)
    sent: list[Search] = []
    chance = random.Random(f"{corpus.name} {margin}")
    filters: list[dict[str, Any]] = [{}, {"min_similar": 1}, *([{"dedup": False}] if query is None else [])]
    options = chance.choice(filters) | {"sort": "newest", "query": query}
    expected = [row.id for row in Reader(es).list(corpus.index, size=1_000, **options).rows]
    scope, known = Scope(fields=Fields(), tuning=tuning), ServerCache()
    for by_number in (False, True):
        found: list[str] = []
        place: dict[str, Any] = {"page": 1}
        while place:
            operation = list_rows(scope, corpus.index, size=23, **options, **place)
            page = execute(es, noting(operation, sent), known=known)
            found += [row.id for row in page.rows]
            following = {"page": page.page + 1} if by_number else {"after": page.next}
            place = following if page.next else {}
        assert found == expected, (options, by_number)
    # With a query, only pages after the first articles have a span, and the longest exceed the index.
    is_spanned = any('"gte"' in json.dumps(body) for request in sent for body in request.bodies)
    assert is_spanned or (query is not None and margin > 1)


def test_relevance_follows_the_best_match_of_each_cluster(
    corpus: Corpus, read: Read, es: Elasticsearch
) -> None:
    chance = random.Random(5)
    for word in ("red", "gold red blue"):
        query = {"match": {"title": word}}
        # Rows are in Elasticsearch's order of all articles, and each row shows the best match of its cluster.
        body = {"query": query, "size": 10_000, "sort": ["_score"], "track_scores": True}
        hits = es.search(index=corpus.index, body=body)["hits"]["hits"]
        best: dict[str, float] = {}
        for hit in hits:
            root = hit["_source"].get("dedup", {}).get("root")
            if root:
                best[root] = max(best.get(root, 0.0), hit["_score"])
        scores = {hit["_id"]: hit["_score"] for hit in hits}
        pages = all_pages(
            read, corpus.index, query=query, sort="relevance", size=chance.choice(PAGE_SIZES), by_number=False
        )
        rows = [row for page in pages for row in page.rows]
        assert len(rows) == len(best) == pages[0].total_rows
        assert {row.root for row in rows} == best.keys()
        assert [scores[row.id] for row in rows] == sorted(best.values(), reverse=True)
        filters: tuple[tuple[dict[str, Any], Callable[[Row], bool]], ...] = (
            ({"min_similar": 3}, lambda row: row.similar >= 3),
            ({"min_similar": 1, "min_sources": 2}, lambda row: row.similar > 0 and (row.sources or 0) >= 2),
        )
        for options, is_kept in filters:
            options |= {"query": query, "sort": "relevance", "size": 10}
            for by_number in (False, True):
                pages = all_pages(read, corpus.index, by_number=by_number, **options)
                assert [row for page in pages for row in page.rows] == list(filter(is_kept, rows))
                assert {page.total_rows for page in pages} == {len(list(filter(is_kept, rows)))}
        newest = read("list", corpus.index, query=query, sort="newest", head="best", size=1_000).rows
        assert [row.root for row in newest] != [row.root for row in rows]
        assert {row.root: scores[row.id] for row in newest} == best
        matches = RandomQuery(query, _has_any(word))
        numbers = {
            corpus.documents[row[0]]["dedup"]["root"]: row[1:4]
            for row in expected_list(corpus.documents, matches, sort="newest").rows
        }
        assert {row.root: (row.similar, row.matching, row.sources) for row in rows} == numbers


@pytest.mark.parametrize(
    "options", [{"sort": "similar-desc"}, {"sort": "relevance", "query": {"match_all": {}}}]
)
def test_lists_by_count_or_relevance_end_at_the_limit(
    corpus: Corpus, read: Read, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    whole = read("list", corpus.index, size=20, **options)
    assert whole.next is not None
    monkeypatch.setattr(limits, "MAX_HITS", 20)
    # The last page ends at the limit.
    pages: list[Page] = [read("list", corpus.index, size=8, **options)]
    while pages[-1].next is not None:
        pages.append(read("list", corpus.index, size=8, after=pages[-1].next, **options))
    assert [row.id for page in pages for row in page.rows] == [row.id for row in whole.rows]
    with pytest.raises(SettingError, match="numbered pages end"):
        read("list", corpus.index, size=20, page=2, **options)


@pytest.mark.parametrize(
    "query", [{"match": {"title": "red blue"}}, {"bool": {"filter": {"term": {"source": "A"}}}}]
)
def test_colocated_clusters_are_counted_by_sampling(
    corpus: Corpus, es: Elasticsearch, query: Document
) -> None:
    sent: list[Search] = []
    page = execute(es, noting(list_rows(Scope(), corpus.index, query=query, sort="newest"), sent))
    hits = helpers.scan(es, index=corpus.index, query={"query": query})
    assert page.total_rows == len(
        {hit["_source"]["dedup"]["root"] for hit in hits if "dedup" in hit["_source"]}
    )
    # Only requests for exact counts have `terminate_after`.
    by_root = [UNREAD in body["aggs"] for each in sent for body in each.bodies if "terminate_after" in body]
    # Only the first response shows whether the index has one shard. A search for words is counted by sampling
    # with the first request, and again by root if there are several shards; a filter is counted afterwards.
    ranks, is_colocated = "match" in query, corpus.is_routed or corpus.index.startswith("test-lists-1-")
    assert by_root == ([False] if is_colocated else [False, True] if ranks else [True])


def test_the_sources_of_an_index_are_listed(corpus: Corpus, read: Read) -> None:
    assert read("source_field", corpus.index) == "source"
    assert read("source_names", corpus.index) == ("A", "B", "C", "D")
    assert len(read("source_names", corpus.index, size=2)) == 2
    assert read("source_names", corpus.index, containing="b") == ("B",)


def test_sources_are_found_by_any_part_of_their_names(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("sources")
    odd = 'A.B* (C) \\ "d" [e] {1,2} <f> #&@~^$-|?+'
    names = [odd, "ÄRZTE Straße", "财新\n周刊", "x" * 200]
    with Dedup(es) as dedup:
        dedup.setup(index)
    for each in names:
        es.index(index=index, document={"source": each, "title": "a", "text": "b", "dedup": {"root": "c"}})
    es.indices.refresh(index=index)
    reader = Reader(es)
    parts = {name[at : at + size] for name in names[:3] for at in range(len(name)) for size in (1, 4, 100)}
    for part in {*parts, *map(str.swapcase, parts), "x" * 100}:
        found = reader.source_names(index, containing=part)
        assert found == tuple(sorted(each for each in names if part.lower() in each.lower())), part


def _has_any(words: str) -> Callable[[Document], bool]:
    return lambda article: bool(set(words.split()) & set(article["title"].split()))


def test_similar_articles_and_sources_equal_brute_force(corpus: Corpus, read: Read) -> None:
    documents = corpus.documents
    (root, _), *_ = Counter(each["dedup"]["root"] for each in documents.values()).most_common(1)
    of_largest = next(id_ for id_, each in documents.items() if each["dedup"]["root"] == root)
    for article_id in [of_largest, *list(documents)[::250]]:
        itself = documents[article_id]
        others = sorted(
            (
                each
                for each, article in documents.items()
                if article["dedup"]["root"] == itself["dedup"]["root"] and each != article_id
            ),
            key=lambda each: newest_first(documents[each]),
        )
        for other_sources in (False, True):
            expected = [
                each
                for each in others
                if not (other_sources and itself["source"] and documents[each]["source"] == itself["source"])
            ]
            found, after = [], None
            for number in itertools.count(1):
                page = read(
                    "similar", corpus.index, article_id, size=9, after=after, other_sources=other_sources
                )
                assert (page.total, page.page) == (len(expected), number)
                found += [article.id for article in page.rows]
                after = page.next
                if after is None:
                    break
            assert found == expected
            by_number = read("similar", corpus.index, article_id, page=2, size=9, other_sources=other_sources)
            assert [article.id for article in by_number.rows] == expected[9:18]
            sources = read("sources", corpus.index, article_id, other_sources=other_sources, size=3)
            names = {documents[each]["source"] for each in expected}
            assert (sources.total, sources.total_sources) == (len(expected), len(names))
            more = read("sources", corpus.index, article_id, other_sources=other_sources, page=2, size=3)
            groups = [*sources.sources, *more.sources]
            counts = [(each.source, each.articles) for each in groups]
            assert len(groups) == len(names)
            assert dict(counts) == {
                name: sum(documents[each]["source"] == name for each in expected) for name in names
            }
            if names - {None}:
                # Request exactly as many sources as there are named sources.
                size = len(names - {None})
                full = read("sources", corpus.index, article_id, other_sources=other_sources, size=size)
                assert {each.source for each in full.sources} == names - {None}
            for each in groups:
                times = [
                    time
                    for one in expected
                    if documents[one]["source"] == each.source
                    and (time := documents[one]["dedup"]["published"]) is not None
                ]
                assert each.first == (iso(min(times)) if times else None)
                assert each.last == (iso(max(times)) if times else None)


def test_similar_refuses_articles_without_a_cluster(corpus: Corpus, read: Read) -> None:
    index = corpus.index
    with pytest.raises(ArticleNotFound, match="no article"):
        read("similar", index, "none")
    if not corpus.is_routed:
        with pytest.raises(ArticleNotFound, match="no root"):
            read("similar", index, "without-root")
    for name in ("", "-", "a,b", "*"):
        with pytest.raises(SettingError, match="is not a valid name for an index"):
            read("similar", index, "none", in_index=name)


def test_order_by_count_is_exact_where_shards_prove_it(
    es: Elasticsearch, index_name: Callable[[str], str]
) -> None:
    """Each of five shards has more clusters than it returns; only a proven order is reported as exact."""
    index, chance = index_name("counts"), random.Random(3)
    Dedup(es).setup(index, shards=5)
    sizes = {f"root{cluster:04d}": 1 + int(chance.paretovariate(0.9)) % 90 for cluster in range(1_500)}
    arrivals = [root for root, size in sizes.items() for _ in range(size)]
    chance.shuffle(arrivals)
    helpers.bulk(
        es,
        (
            {"_index": index, "_id": f"a{seq}", "_source": {"dedup": {"root": root, "seq": seq}}}
            for seq, root in enumerate(arrivals)
        ),
        refresh=True,
        chunk_size=5_000,
    )
    expected = sorted(sizes, key=lambda root: (-sizes[root], root))
    reader = Reader(es)
    first = reader.list(index, sort="similar-desc", size=50)
    assert first.order_exact
    assert [row.root for row in first.rows] == expected[:50]
    # Lower the limit, as if there were more clusters than one response contains.
    tuning = Tuning(max_roots=500)
    again = list_tuned(es, tuning, index, sort="similar-desc", size=50)
    assert again.order_exact
    assert [row.root for row in again.rows] == expected[:50]
    # A cluster with a small count on one shard may have any count on another shard.
    assert not list_tuned(es, tuning, index, sort="similar-asc", size=50).order_exact
    # On several shards, the smallest clusters are not found by name: a deeper page could not continue.
    sent: list[Search] = []
    execute(es, noting(list_rows(Scope(), index, sort="similar-asc", min_similar=1, size=50), sent))
    assert not any("composite" in json.dumps(body) for request in sent for body in request.bodies)
    deep = list_tuned(es, tuning, index, sort="similar-desc", page=9, size=50)
    if deep.order_exact:
        assert [row.root for row in deep.rows] == expected[400:450]


def test_paging_continues_past_a_very_large_cluster(
    es: Elasticsearch, read: Read, index_name: Callable[[str], str]
) -> None:
    """The cluster has more articles than Elasticsearch can skip with `from`."""
    index, size = index_name("large"), 12_000
    Dedup(es).setup(index)
    # In order of time: a single article, the cluster, and 30 single articles.
    roots = ["early", "large", *(["large"] * size), *(f"late{number}" for number in range(30))]
    helpers.bulk(
        es,
        (
            {
                "_index": index,
                "_id": f"a{seq}",
                "_source": {
                    "source": f"S{seq % 7}",
                    "dedup": {"root": root, "seq": seq, "published": 1_790_000_000_000 + seq * 1_000},
                },
            }
            for seq, root in enumerate(roots)
        ),
        refresh=True,
        chunk_size=5_000,
    )
    for sort, expected in [
        ("newest", [*(f"late{number}" for number in range(29, -1, -1)), "large", "early"]),
        ("oldest", ["early", "large", *(f"late{number}" for number in range(30))]),
    ]:
        pages = all_pages(read, index, size=5, by_number=False, sort=sort)
        assert [row.root for page in pages for row in page.rows] == expected
        large = next(row for page in pages for row in page.rows if row.root == "large")
        assert (large.similar, large.sources) == (size, 7)
    found: list[str] = []
    after = None
    for _ in range(size):
        page = read("similar", index, "a5000", size=1_000, after=after)
        found += [article.id for article in page.rows]
        after = page.next
        if after is None:
            break
    assert found == [f"a{seq}" for seq in range(size + 1, 0, -1) if seq != 5_000]
    with pytest.raises(SettingError, match="numbered pages end"):
        read("similar", index, "a5000", page=11, size=1_000)
    # Without dedup every article is a row, and cursors reach all of them.
    assert (
        sum(len(page.rows) for page in all_pages(read, index, size=1_000, by_number=False, dedup=False))
        == size + 32
    )


def test_large_numbers_of_rows_are_estimated(es: Elasticsearch, index_name: Callable[[str], str]) -> None:
    """The number of rows is estimated from some partitions and reported as inexact."""
    index, clusters = index_name("estimated"), 4_000
    Dedup(es).setup(index)
    arrivals = [f"root{cluster:04d}" for cluster in range(clusters) for _ in range(1 + cluster % 2)]
    helpers.bulk(
        es,
        (
            {
                "_index": index,
                "_id": f"a{seq}",
                "_source": {"dedup": {"root": root, "seq": seq, "partition": partition_of(root)}},
            }
            for seq, root in enumerate(arrivals)
        ),
        refresh=True,
        chunk_size=5_000,
    )
    reader = Reader(es)
    exact = [reader.list(index, min_similar=least) for least in (0, 1)]
    assert [(page.total_rows, page.total_rows_exact) for page in exact] == [
        (clusters, True),
        (clusters // 2, True),
    ]
    for many in (1_000, 1_000_000):
        tuning = Tuning(
            exact_rows=200, few_articles=100, many_articles=many, estimate_partitions=32, inspected_roots=500
        )
        pages = [list_tuned(es, tuning, index, min_similar=least) for least in (0, 1)]
        assert not any(page.total_rows_exact for page in pages)
        for page, expected in zip(pages, exact, strict=True):
            assert page.total_rows == pytest.approx(expected.total_rows, rel=0.25)
            assert page.total_rows != expected.total_rows or page is pages[0]

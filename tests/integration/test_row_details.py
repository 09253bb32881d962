"""Details of rows, and the versions and timeline of a cluster."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Article, Dedup, Reader, Row
from esdedup.fingerprint.profile import CLASSIC
from esdedup.reading.versions import TimeOrder
from esdedup.times import time_ms
from tests import sample
from tests.support.forests import Read
from tests.support.names import Names

INDEX, FOREST = "test-versions", "test-versions-forest"


@pytest.fixture(scope="module")
def versions_of(es: Elasticsearch) -> Iterator[list[dict[str, Any]]]:
    """The stored articles of the largest cluster, earliest first."""
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
    """Return the ids of articles, grouped by fingerprint; groups are in the order of their first articles."""
    found: dict[str, list[str]] = {}
    for hit in hits:
        found.setdefault(hit["_source"]["dedup"]["fingerprint"], []).append(hit["_id"])
    return list(found.values())


@pytest.mark.parametrize("sort", ["oldest", "newest"])
@pytest.mark.parametrize("other_sources", [False, True])
def test_versions_are_the_texts_of_a_cluster_in_order(
    es: Elasticsearch, versions_of: list[dict[str, Any]], sort: TimeOrder, other_sources: bool
) -> None:
    own = versions_of[len(versions_of) // 2]
    selected = [
        hit
        for hit in (versions_of if sort == "oldest" else reversed(versions_of))
        if not other_sources or hit["_source"]["source"] != own["_source"]["source"]
    ]
    expected = texts(selected)
    assert any(len(each) > 1 for each in expected), "no text has a copy"
    reader, found, size = Reader(es), [], 7
    for page in itertools.count(1):
        got = reader.versions(INDEX, own["_id"], sort=sort, other_sources=other_sources, page=page, size=size)
        assert (got.total, got.total_versions) == (len(selected), len(expected))
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
    es: Elasticsearch, versions_of: list[dict[str, Any]]
) -> None:
    found = Reader(es).timeline(INDEX, versions_of[0]["_source"]["dedup"]["root"])
    assert found.earliest is not None
    assert found.earliest.id == versions_of[0]["_id"]
    counts = Counter(hit["_source"]["source"] for hit in versions_of)
    assert found.largest_source_articles == max(counts.values())
    assert counts[found.largest_source] == max(counts.values())
    assert sum(step.articles for step in found.steps) == len(versions_of)
    nothing = Reader(es).timeline(INDEX, "no such root")
    assert (nothing.earliest, nothing.largest_source, nothing.largest_source_articles) == (None, None, 0)


@pytest.fixture(scope="module")
def fingerprints(es: Elasticsearch, unchanged: tuple[str, str]) -> dict[str, str]:
    hits = helpers.scan(es, index=unchanged[0], _source=["dedup.fingerprint"])
    return {hit["_id"]: hit["_source"]["dedup"]["fingerprint"] for hit in hits}


def the_article(row: Article) -> Article:
    return Article(**{name: getattr(row, name) for name in Article.model_fields})


def members(read: Read, index: str, row: Row) -> list[Article]:
    """Return all articles of a row's cluster, newest first."""
    return [the_article(each) for each in read("cluster", index, row.root, size=1_000).rows]


@pytest.mark.parametrize("options", [{"sort": "similar-desc", "size": 10}, {"dedup": False, "size": 20}])
def test_row_details_describe_the_cluster(
    read: Read, unchanged: tuple[str, str], fingerprints: dict[str, str], options: dict[str, Any]
) -> None:
    index, _ = unchanged
    page = read("list", index, details=True, **options)
    for row in page.rows:
        details, articles = row.details, members(read, index, row)
        assert (details.earliest, details.latest) == (articles[-1], articles[0])
        counts: dict[object, int] = {}
        for each in articles:
            counts[each.source] = counts.get(each.source, 0) + 1
        if row.similar:
            largest = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))[:5]
            assert [(each.source, each.articles) for each in details.largest_sources] == largest
        # Find the article that resembles the shown article least; identical texts do not count.
        similar = read("similar", index, row.id, in_index=row.index, size=1_000).rows
        others = [each.resemblance for each in similar if fingerprints[each.id] != fingerprints[row.id]]
        found = details.most_different
        assert (None if found is None else found.resemblance) == min(others, default=None)
        if found is not None:
            assert found in similar
    plain = read("list", index, **options)
    assert plain.rows == tuple(row.model_copy(update={"details": None}) for row in page.rows)


def test_the_spread_counts_every_article(read: Read, unchanged: tuple[str, str]) -> None:
    index, _ = unchanged
    for row in read("list", index, details=True, size=100, sort="similar-desc").rows:
        times = [time_ms(each.published_at) for each in members(read, index, row)]
        spread = row.details.spread
        if len(set(times)) == 1:
            assert spread == ()
            continue
        assert (len(spread), sum(spread)) == (24, len(times))
        assert spread[0]
        first, last = min(filter(None, times)), max(filter(None, times))
        middle = sum(1 for each in times if each is not None and each < (first + last) / 2)
        # The middle of the time range may lie within one of the 24 steps.
        assert abs(sum(spread[:12]) - middle) <= max(spread[11:13])


def test_rows_that_exceed_one_search_have_complete_details(es: Elasticsearch, index_name: Names) -> None:
    index, long = index_name("many"), " ".join(map(str, range(2_000)))
    Dedup(es).setup(index)
    helpers.bulk(
        es,
        (
            {
                "_index": index,
                "_id": f"{root}-{copy}",
                "title": long,
                "source": f"[{copy}]>",
                "published_at": copy,
                "dedup": {"root": f"[{root}]>", "seq": 3 * root + copy, "published": 10_000 * copy},
            }
            for root in range(150)
            for copy in range(1, 3)
        ),
        refresh=True,
    )
    rows = Reader(es).list(index, details=True, size=150, sort="oldest").rows
    assert len(rows) == 150
    for row in rows:
        assert row.details is not None
        assert row.details.earliest is not None
        assert row.details.earliest.id == row.id
        assert (row.details.spread[0], row.details.spread[-1], sum(row.details.spread)) == (1, 1, 2)
        # The count is limited to 100.
        assert row.details.same_headline.stories == 100
        # Nothing can be compared without a fingerprint.
        assert row.details.most_different is None


def test_a_row_names_linked_stories(read: Read, es: Elasticsearch, index_name: Names) -> None:
    index, headline = index_name("headlines"), 'Council "votes" for a second ferry'
    Dedup(es).setup(index)
    titles = {
        "a": (headline, headline),
        "b": (f"{headline.upper()} - update", "Another view of it, by the same paper"),
        "c": ("Council votes a second time for a ferry",),
        "d": ("Weather", "渡轮码头"),
        "e": ("Weather", "渡轮码头"),
    }
    helpers.bulk(
        es,
        (
            {
                "_index": index,
                "_id": f"{root}{place}",
                "title": title,
                "dedup": {
                    "root": root,
                    "seq": place,
                    "published": place,
                    **({"part_of": "a"} if root in "cd" else {}),
                },
            }
            for root, each in titles.items()
            for place, title in enumerate(each)
        ),
        refresh=True,
    )
    rows = read("list", index, details=True, dedup=False).rows
    found = {row.id: row.details.same_headline for row in rows}
    assert {name: [each.id for each in same.rows] for name, same in found.items() if same.stories} == {
        "a0": ["b0"],
        "a1": ["b0"],
    }
    details = {row.id: row.details for row in rows}
    assert {name: each.excerpts for name, each in details.items() if each.excerpts} == {"a0": 3, "a1": 3}
    quoting = {name: each.excerpt_of.id for name, each in details.items() if each.excerpt_of}
    assert quoting == {"c0": "a0", "d0": "a0", "d1": "a0"}
    # If an index does not support phrases, headlines are not searched for.
    bare = index_name("no-phrases")
    es.indices.create(
        index=bare, mappings={"properties": {"title": {"type": "text", "index_options": "docs"}}}
    )
    Dedup(es).setup(bare)
    es.index(index=bare, id="a", document={"title": headline, "dedup": {"root": "a", "seq": 1}}, refresh=True)
    assert read("list", bare, details=True).rows[0].details.same_headline.stories == 0


def test_rows_of_other_profiles_are_compared_by_distance(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("bits")
    text = "The council of the harbour town voted on Monday evening to buy a second ferry for the islands"
    texts = {"a": f"{text}.", "b": f"{text}, it is said.", "c": f"{text}."}
    with Dedup(es, forest=index_name("forest"), profile=CLASSIC) as dedup:
        dedup.setup(index)
        actions = [{"_index": index, "_id": each, "text": text} for each, text in texts.items()]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    reader = Reader(es)
    for row in reader.list(index, details=True).rows:
        if row.similar == 2:
            assert row.details is not None
            assert row.details.most_different is not None
            assert row.details.most_different.distance_bits


def test_articles_that_arrived_since_a_time_are_counted(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("new")
    Dedup(es).setup(index)
    # Numbers with fewer digits would be parsed as years.
    before, later = 1_000_000, 2_000_000
    articles = [("a", "r", before), ("b", "r", later), ("c", "s", before), ("d", "r", later)]
    helpers.bulk(
        es,
        (
            {
                "_index": index,
                "_id": each,
                "title": "ferry" if each == "d" else "harbour",
                "dedup": {"root": root, "seq": seq, "published": seq, "seen": seen},
            }
            for seq, (each, root, seen) in enumerate(articles)
        ),
        refresh=True,
    )
    reader = Reader(es)
    page = reader.list(index, arrived_since="1970-01-01T00:16:40Z")
    assert (page.new_articles, {row.root: row.new_articles for row in page.rows}) == (2, {"r": 2, "s": 0})
    # The total counts matching articles; a row counts its whole cluster.
    harbour = reader.search_query(index, "harbour")
    for sort in ("relevance", "similar-desc"):
        page = reader.list(index, query=harbour, sort=sort, arrived_since="1970-01-01T00:16:40Z")
        assert (page.new_articles, {row.root: row.new_articles for row in page.rows}) == (
            1,
            {"r": 2, "s": 0},
        )
    page = reader.list(index)
    assert (page.new_articles, {row.new_articles for row in page.rows}) == (None, {None})


@pytest.mark.parametrize("sort", ["relevance", "newest", "similar-desc"])
def test_rows_mark_the_searched_words(read: Read, unchanged: tuple[str, str], sort: str) -> None:
    query = read("search_query", unchanged[0], "harbour")
    page = read("list", unchanged[0], query=query, sort=sort, head="earliest", details=True)
    assert page.rows
    for row in page.rows:
        marked = [
            part.text for part in (*row.details.snippet.title, *row.details.snippet.text) if part.is_match
        ]
        assert marked
        assert {each.lower() for each in marked} == {"harbour"}
        assert "".join(part.text for part in row.details.snippet.title) == row.title
        assert len("".join(part.text for part in row.details.snippet.text)) < 400


def test_without_words_a_snippet_is_the_texts_beginning(read: Read, unchanged: tuple[str, str]) -> None:
    for row in read("list", unchanged[0], details=True, size=5).rows:
        text = read("article", unchanged[0], row.id, in_index=row.index).text
        (part,) = row.details.snippet.text
        assert not part.is_match
        assert " ".join(text.split()).startswith(part.text.removesuffix("…"))


def test_a_text_of_any_length_has_a_snippet(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("long")
    texts = {"long": "word " * 300_000 + "ferry", "empty": "", "one": "ferry" * 4_000}
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        actions = [{"_index": index, "_id": each, "text": text} for each, text in texts.items()]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    found = Reader(es).list(index, details=True).rows
    rows = {row.id: row.details.snippet for row in found if row.details is not None}
    assert rows.keys() == texts.keys()
    assert rows["empty"].text == ()
    assert len(rows["long"].text[0].text) < 400

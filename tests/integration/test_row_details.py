"""What rows unfold to: snippets, and their clusters at a glance."""

from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Article, Dedup, Reader, Row
from esdedup.fingerprint.profile import CLASSIC
from esdedup.times import time_ms
from tests.support.forests import Read
from tests.support.names import Names


@pytest.fixture(scope="module")
def fingerprints(es: Elasticsearch, unchanged: tuple[str, str]) -> dict[str, str]:
    hits = helpers.scan(es, index=unchanged[0], _source=["dedup.fingerprint"])
    return {hit["_id"]: hit["_source"]["dedup"]["fingerprint"] for hit in hits}


def the_article(row: Article) -> Article:
    return Article(**{name: getattr(row, name) for name in Article.model_fields})


def members(read: Read, index: str, row: Row) -> list[Article]:
    """Return all articles of a row's cluster, newest first."""
    return [the_article(each) for each in read("cluster", index, row.root, size=1_000).rows]


@pytest.mark.parametrize("options", [{"sort": "similar-desc", "size": 15}, {"dedup": False, "size": 40}])
def test_a_row_knows_its_cluster(
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
        # The article least like the one shown, and an identical text is none.
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
        # A step may lie across the middle.
        assert abs(sum(spread[:12]) - middle) <= max(spread[11:13])


def test_more_rows_than_fit_in_a_search(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("many")
    Dedup(es).setup(index)
    helpers.bulk(
        es,
        (
            {
                "_index": index,
                "_id": f"{root}-{copy}",
                "title": f"{root}",
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
        # Nothing can be compared without a fingerprint.
        assert row.details.most_different is None


def test_in_other_profiles_bits_decide(es: Elasticsearch, index_name: Names) -> None:
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


def test_what_has_arrived_since_is_counted(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("new")
    Dedup(es).setup(index)
    # Of fewer digits they would be years.
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
    # Of what matches; a row counts its whole cluster.
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
def test_rows_say_where_the_words_are(read: Read, unchanged: tuple[str, str], sort: str) -> None:
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


def test_without_words_a_row_shows_how_its_text_begins(read: Read, unchanged: tuple[str, str]) -> None:
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

"""Overviews of searches, and articles that are not counted, because they are not enriched."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, IndexNotReady, Maintenance, Overview, Reader, SettingError
from esdedup.cli import output
from esdedup.reading.list_request import SORTS
from esdedup.times import iso
from esdedup.web.api import MAX_FACET_VALUES
from tests.support.asgi import Request, request, requests
from tests.support.forests import TEXT, Read
from tests.support.names import Names, new_names

DAY_MS = 86_400_000
SOURCES = ("Wire", "Echo", "远汀社")
LANGUAGES = ("en", "zh", "fr")


def documents() -> list[dict[str, Any]]:
    """Return articles with all combinations of sources, languages and days, and one unenriched article."""
    found = []
    for number, (source, language, day) in enumerate(itertools.product(SOURCES, LANGUAGES, range(10))):
        found.append(
            {
                "title": "ferry" if number % 2 else "harbour",
                "source": source if number % 7 else [source, "Both"],
                "language": language,
                "outlet": {"country": "no" if number % 3 else "se"},
                "number": str(number),
                "dedup": {
                    "root": f"r{number // 4}",
                    "seq": number,
                    "published": None if number % 11 == 5 else day * DAY_MS + number,
                },
            }
        )
    return [*found, {"title": "ferry", "source": "Wire", "language": "en"}]


DOCUMENTS = documents()


@pytest.fixture(scope="module", params=[1, 5], ids=["one shard", "five shards"])
def corpus(es: Elasticsearch, request: pytest.FixtureRequest) -> Iterator[str]:
    """An index of `DOCUMENTS`."""
    with new_names(es) as name:
        made = name("overview")
        Dedup(es).setup(made, shards=request.param)
        keyword = {"type": "keyword"}
        es.indices.put_mapping(
            index=made,
            properties={
                "language": keyword,
                "number": keyword,
                "outlet": {"properties": {"country": keyword, "note": {"type": "text"}}},
                "hidden": {"type": "keyword", "index": False},
                "parts": {"type": "nested", "properties": {"desk": keyword}},
            },
        )
        helpers.bulk(es, ({"_index": made, "_source": each} for each in DOCUMENTS), refresh=True)
        yield made


def values_of(document: dict[str, Any], field: str) -> set[str]:
    value: Any = document
    for part in field.split("."):
        value = value.get(part, {})
    return set(value) if isinstance(value, list) else {value}


def matches(document: dict[str, Any], form: dict[str, Any], *, but: str = "") -> bool:
    """Return whether a document is found, ignoring the values chosen in the field `but`."""
    if "dedup" not in document or not set(form.get("words", "").split()) <= {document["title"]}:
        return False
    published = document["dedup"]["published"]
    if "since" in form and (published is None or published < 3 * DAY_MS):
        return False
    chosen = {"source": form.get("source", ()), **form.get("where", {})}
    return all(
        values_of(document, field) & set([wanted] if isinstance(wanted, str) else wanted)
        for field, wanted in chosen.items()
        if wanted and field != but
    )


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"words": "ferry"},
        {"since": "1970-01-04"},
        {"source": "Wire"},
        {"source": ["Wire", "Echo"], "words": "harbour"},
        {"source": ["Both"], "where": {"language": ["en", "zh"]}},
        {"where": {"language": "fr", "outlet.country": ["se"]}, "since": "1970-01-04"},
        {"where": {"number": ["7", "8"]}},
    ],
)
def test_an_overview_equals_brute_force(es: Elasticsearch, corpus: str, form: dict[str, Any]) -> None:
    reader = Reader(es)
    found: Overview = reader.overview(corpus, **form)
    expected = [each for each in DOCUMENTS if matches(each, form)]
    assert found.total_articles == len(expected)
    page = reader.list(corpus, query=reader.search_query(corpus, **form))
    assert page.total_articles == len(expected)
    times = [each["dedup"]["published"] for each in expected if each["dedup"]["published"] is not None]
    assert sum(step.articles for step in found.timeline.steps) == len(times)
    assert found.timeline.last == (iso(max(times)) if times else None)
    # The timeline has steps for days without articles, too.
    assert len(found.timeline.steps) <= 37
    facets = {each.field: each for each in found.facets}
    assert found.sources is not None
    for field, facet in {"source": found.sources, **facets}.items():
        counts = Counter(
            value for each in DOCUMENTS if matches(each, form, but=field) for value in values_of(each, field)
        )
        wanted = form.get("source", ()) if field == "source" else form.get("where", {}).get(field, ())
        chosen = {wanted} if isinstance(wanted, str) else set(wanted)
        shown = {each.value: each.articles for each in facet.values}
        assert shown == {value: counts[value] for value in shown}
        assert sum(shown.values()) + facet.other_articles == sum(counts.values())
        assert {each.value for each in facet.values if each.is_chosen} == chosen
        assert facet.is_exact
    # Neither esdedup's own fields nor unindexed fields are facets; `number` is a facet only if it is chosen.
    country = ["outlet.country"]
    assert list(facets) == ["language", *(["number"] if "number" in form.get("where", {}) else []), *country]


def test_http_overviews_equal_the_readers_overviews(
    es: Elasticsearch, elasticsearch_url: str, corpus: str
) -> None:
    query_items = [("q", "ferry"), ("source", "Wire"), ("source", "Echo"), ("where", "language:en")]
    extras: list[list[tuple[str, str]]] = [[], [("where", "language:zh"), ("where", "outlet.country:se")]]
    for extra in extras:
        query = urlencode([*query_items, *extra])
        (got,) = requests(elasticsearch_url, corpus, [Request(path="/api/v1/overview", query=query)])
        where = {"language": ["en", "zh"], "outlet.country": ["se"]} if extra else {"language": ["en"]}
        expected = Reader(es).overview(
            corpus, "ferry", source=["Wire", "Echo"], where=where, size=MAX_FACET_VALUES
        )
        assert got.json == expected.model_dump(mode="json")
        (got,) = requests(elasticsearch_url, corpus, [Request(path="/api/v1/list", query=query)])
        assert got.json["total_articles"] == expected.total_articles
        (page,) = requests(elasticsearch_url, corpus, [Request(path="/", query=query)])
        assert (page.status, page.body.count("<strong>")) == (200, 2)


def test_chosen_values_are_always_listed(es: Elasticsearch, corpus: str) -> None:
    found = Reader(es).overview(corpus, source=["Both", "none"], size=1)
    assert found.sources is not None
    assert [(each.value, each.is_chosen) for each in found.sources.values][1:] == [
        ("Both", True),
        ("none", True),
    ]
    assert found.sources.values[-1].articles == 0


@pytest.mark.parametrize(
    ("named", "is_facet"),
    [
        # Some articles share an identifier, by accident or because it is unknown.
        (lambda number: f"a{max(number, 1)}", False),
        (lambda number: "unknown" if number < 50 else f"a{number}", False),
        # There are a few frequent values and many rare values.
        (lambda number: f"a{min(number, 20) // 10}" if number < 30 else f"a{number}", True),
        (lambda number: f"a{number // 3}", True),
    ],
)
def test_fields_with_nearly_unique_values_are_not_facets(
    es: Elasticsearch, index_name: Names, named: Callable[[int], str], is_facet: bool
) -> None:
    index = index_name("identified")
    Dedup(es).setup(index)
    es.indices.put_mapping(index=index, properties={"identifier": {"type": "keyword"}})
    articles = (
        {"source": "Wire", "identifier": named(number), "dedup": {"root": "r", "seq": number, "published": 0}}
        for number in range(3_000)
    )
    helpers.bulk(es, ({"_index": index, "_source": each} for each in articles), refresh=True)
    reader = Reader(es)
    assert [each.field for each in reader.overview(index).facets] == ["identifier"] * is_facet
    chosen = reader.overview(index, where={"identifier": named(2_000)})
    assert [each.field for each in chosen.facets] == ["identifier"]


def test_fields_that_cannot_be_chosen_are_refused(es: Elasticsearch, corpus: str, index_name: Names) -> None:
    reader = Reader(es)
    for name in ("outlet.note", "hidden", "parts.desk", "dedup.root", "title", "none"):
        with pytest.raises(SettingError, match=r"language, number, outlet.country"):
            reader.overview(corpus, where={name: "x"})
    with pytest.raises(SettingError, match="at most 32,766 bytes"):
        reader.search_query(corpus, source="x" * 40_000)
    with pytest.raises(SettingError, match="must be a string, not int"):
        reader.search_query(corpus, where={"language": [1]})  # type: ignore[list-item]
    for size in (0, 1_001, "5"):
        with pytest.raises(SettingError, match="values of each field"):
            reader.overview(corpus, size=size)  # type: ignore[arg-type]
    # An empty choice has no effect.
    assert reader.search_query(corpus, source=[], where={"language": ""}) is None
    bare = index_name("bare")
    es.indices.create(index=bare, mappings={"properties": {"source": {"type": "text"}}})
    Dedup(es).setup(bare)
    empty = reader.overview(bare)
    assert (empty.total_articles, empty.sources, empty.facets) == (0, None, ())
    with pytest.raises(SettingError, match="no further keyword fields"):
        reader.overview(bare, where={"language": "en"})
    with pytest.raises(IndexNotReady):
        reader.overview(index_name("missing"))


@pytest.fixture
def some(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    """An index with one enriched and three unenriched articles, and its forest."""
    index, forest = index_name("some"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        enriched = dedup.enrich([{"_index": index, "_id": "a", "text": TEXT, "title": "fox"}])
        plain = [{"_index": index, "_id": each, "text": TEXT, "title": title} for each, title in OTHERS]
        helpers.bulk(es, [*enriched, *plain], refresh=True)
    return index, forest


OTHERS = [("b", "fox"), ("c", "fox and dog"), ("d", "dog")]


def test_lists_count_unenriched_articles(some: tuple[str, str], read: Read) -> None:
    index, _ = some
    for sort in SORTS:
        page = read("list", index, sort=sort)
        assert (page.total_rows, page.total_articles, page.not_enriched) == (1, 1, 3)
        assert read("list", index, query={"match": {"title": "fox"}}, sort=sort).not_enriched == 2
    assert read("list", index, dedup=False).not_enriched == 3
    assert read("list", index, query={"match": {"title": "dog"}}).total_rows == 0


def test_lists_without_enriched_articles_say_so(
    es: Elasticsearch, index_name: Names, elasticsearch_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    index = index_name("none")
    dedup = Dedup(es, forest=index_name("forest"))
    dedup.setup(index)
    helpers.bulk(es, [{"_index": index, "_id": each, "text": TEXT} for each, _ in OTHERS], refresh=True)
    output.print_page(dedup.reader.list(index))
    printed = " ".join(capsys.readouterr().out.split())
    assert "0 rows for 0 articles" in printed
    assert (
        "3 more articles match, but are not shown, since they are not enriched yet: index them again"
        in printed
    )
    shown = request(elasticsearch_url, index, "/").body
    assert "3 more articles match, but are not shown, because esdedup has not enriched them yet." in shown
    assert "There are no articles yet" not in shown
    assert request(elasticsearch_url, index, "/api/v1/list").json["not_enriched"] == 3


def test_statistics_count_unenriched_articles(es: Elasticsearch, some: tuple[str, str]) -> None:
    index, forest = some
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.stats([index]).not_enriched == 3
    assert maintenance.stats().not_enriched is None


def test_a_new_forest_for_assigned_articles_logs_a_warning(
    es: Elasticsearch, some: tuple[str, str], index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    index, forest = some
    action = {"_index": index, "_id": "e", "text": TEXT}
    with Dedup(es, forest=forest) as dedup:
        list(dedup.enrich([action]))
    assert not caplog.messages
    kept = es.indices.get_mapping(index=index)[index]["mappings"]["_meta"]
    es.indices.put_mapping(index=index, meta={})  # older indices do not store their forest
    with Dedup(es, forest=index_name("other")) as dedup:
        list(dedup.enrich([action]))
        list(dedup.enrich([action]))
    es.indices.put_mapping(index=index, meta=kept)
    (warning,) = caplog.messages
    assert f"but articles in '{index}' already have roots" in warning
    assert "unless the forest is rebuilt" in warning


def test_dynamically_mapped_languages_can_be_chosen(es: Elasticsearch) -> None:
    """Dynamic mapping gives every string a keyword subfield; most of these subfields contain prose."""
    with new_names(es) as name:
        made = name("by-itself")
        es.indices.create(index=made)
        Dedup(es).setup(made)
        given = [("en", "one"), ("en", "two"), ("zh", "one")]
        for at, (language, note) in enumerate(given):
            stored = {"root": f"{at}", "seq": at, "published": at}
            article = {
                "title": "ferry",
                "text": "ferry",
                "meta": {"lang": language},
                "note": note,
                "dedup": stored,
            }
            es.index(index=made, id=f"{at}", document=article, refresh=True)
        reader = Reader(es)
        (facet,) = reader.overview(made).facets
        assert facet.field == "meta.lang.keyword"
        assert {each.value: each.articles for each in facet.values} == {"en": 2, "zh": 1}
        chosen = reader.search_query(made, None, where={"meta.lang.keyword": ["zh"]})
        assert [row.id for row in reader.list(made, query=chosen).rows] == ["2"]

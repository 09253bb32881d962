"""Reading unusual indices: aliases, mixed mappings, repeated ids, very many sources or matches."""

import html
import random
import re
from typing import Any, get_args

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, IndexNotReady, Reader
from esdedup.fields import Fields
from esdedup.reading.list_request import Sort
from esdedup.reading.scope import Tuning
from esdedup.reading.search_form import SearchForm, words
from esdedup.times import time_ms
from tests.support.asgi import request
from tests.support.brute_force import expected_list, list_tuned, random_corpus, random_query
from tests.support.forests import Read
from tests.support.names import Names

# Leave out "rising", because no article here is from the last 24 hours.
SORTS = [each for each in get_args(Sort) if each != "rising"]


def fill(es: Elasticsearch, index: str, articles: dict[str, dict[str, Any]], **mapping: Any) -> None:
    """Index articles with their given roots, and map the given fields."""
    if mapping:
        es.indices.create(index=index, mappings={"properties": mapping})
    Dedup(es).setup(index)
    numbered = enumerate(articles.items(), 1)
    actions = (
        {
            "_index": index,
            "_id": each,
            "_source": article
            | {
                "dedup": {
                    "root": article.get("root", each),
                    "seq": seq,
                    "published": time_ms(article.get("published_at")),
                }
            },
        }
        for seq, (each, article) in numbered
    )
    helpers.bulk(es, actions, refresh=True, chunk_size=5_000)


def ids(read: Read, index: str, **options: Any) -> list[str]:
    return [row.id for row in read("list", index, **options).rows]


def test_an_alias_of_several_indices_is_not_routed(es: Elasticsearch, read: Read, index_name: Names) -> None:
    routed, other = index_name("routed"), index_name("plain")
    alias = f"{routed}-alias"
    Dedup(es).setup(routed, shards=5, route_by_root=True)
    es.indices.put_alias(index=routed, name=alias)
    sizes = {f"root{number:02d}": 1 + number % 7 for number in range(60)}
    actions = [
        {"_index": routed, "routing": root, "_source": {"dedup": {"root": root, "seq": seq}}}
        for seq, root in enumerate(root for root, size in sizes.items() for _ in range(size))
    ]
    helpers.bulk(es, actions, refresh=True)
    assert read("list", alias, sort="similar-asc", size=60).order_exact
    # After a rollover, a cluster is in two indices.
    Dedup(es).setup(other, shards=5)
    es.indices.put_alias(index=other, name=alias)
    copies = [{"_index": other, "_source": action["_source"]} for action in actions]
    helpers.bulk(es, copies, refresh=True)
    page = read("list", alias, sort="similar-asc", size=60)
    assert [row.similar for row in page.rows] == sorted(2 * size - 1 for size in sizes.values())
    assert page.order_exact
    assert read("list", alias, sort="similar-desc", size=3).rows[0].similar == 13
    # If shards cannot return all their roots, only the routed index still has an exact order.
    tuning = Tuning(max_roots=20)
    assert list_tuned(es, tuning, routed, sort="similar-asc", size=5).order_exact
    assert not list_tuned(es, tuning, alias, sort="similar-asc", size=5).order_exact
    # An index that is not set up is left out and does not affect the order.
    foreign = index_name("foreign")
    es.indices.create(index=foreign, aliases={alias: {}})
    with_foreign = read("list", alias, sort="similar-asc", size=60)
    assert with_foreign == page.model_copy(update={"not_set_up": (foreign,)})


OPERATIONS: list[tuple[str, ...]] = [
    *(("list",), ("overview",), ("fields",), ("source_field",), ("source_names",), ("search_query", "fox")),
    *(("article", "a"), ("similar", "a"), ("sources", "a"), ("versions", "a"), ("explain", "a", "b")),
    *(("cluster", "r"), ("timeline", "r"), ("with_fingerprint", "f")),
]
"""All operations that read an index, with their arguments."""


def test_an_index_that_is_not_set_up_is_omitted(
    es: Elasticsearch, read: Read, elasticsearch_url: str, index_name: Names
) -> None:
    one, other, plain, tomorrow = map(index_name, ("day-a", "day-b", "day-c", "day-d"))
    alias = f"{one}-alias"
    text = {"text": "The fox crosses the harbour at night, and nobody sees it.", "source": "The Post"}
    fill(es, one, {"a": {**text, "root": "r"}, "c": {"root": "s"}})
    fill(es, other, {"b": {**text, "root": "r"}})
    # This article has the same id but no root, and its index maps a field differently.
    es.indices.create(index=plain, mappings={"properties": {"source": {"type": "text"}}})
    es.index(index=plain, id="a", document={"text": "Another fox", "source": "x"}, refresh=True)
    for each in (one, other, plain):
        es.indices.put_alias(index=each, name=alias)
    for name, *arguments in OPERATIONS:
        found, expected = read(name, alias, *arguments), read(name, f"{one},{other}", *arguments)
        changes = {"not_set_up": (plain,)} if hasattr(found, "not_set_up") else {}
        assert found == (expected.model_copy(update=changes) if changes else expected), name
    assert read("list", alias).not_set_up == (plain,)
    for sort in SORTS:
        page = read("list", alias, sort=sort, size=1, details=True, source_includes=["source"])
        assert (page.total_rows, page.not_set_up) == (2, (plain,))
    # A cursor stays valid after an index is set up and another index is added.
    after = read("list", alias, sort="newest", size=1).next
    Dedup(es).setup(plain)
    es.indices.create(index=tomorrow, aliases={alias: {}})
    assert len(read("list", alias, sort="newest", size=1, after=after).rows) == 1
    pages = [request(elasticsearch_url, alias, "/"), request(elasticsearch_url, alias, "/article", id="b")]
    assert all(f"The index {tomorrow} is not set up" in page.body for page in pages)
    single = request(elasticsearch_url, one, "/").body
    assert "not set up" not in single


def test_added_and_deleted_indices_disturb_no_search(es: Elasticsearch, index_name: Names) -> None:
    one, other, plain = map(index_name, ("come-a", "come-b", "come-c"))
    alias = f"{one}-alias"
    for index, article in ((one, "a"), (other, "b")):
        fill(es, index, {article: {"text": "fox"}})
        es.indices.put_alias(index=index, name=alias)

    def come() -> None:
        es.indices.create(index=plain, aliases={alias: {}})
        es.index(index=plain, id="c", document={"text": "fox"}, refresh=True)

    for sort in SORTS:
        reader = Reader(es)
        assert len(reader.list(alias, sort=sort).rows) == 2
        # The reader has just read the mappings.
        come()
        page = reader.list(alias, sort=sort)
        # The new index disturbs no search; it is reported once the reader re-reads the mappings.
        assert len(page.rows) == 2
        assert page.not_set_up in {(), (plain,)}
        es.indices.delete(index=plain)
        assert len(reader.list(alias, sort=sort).rows) == 2
    come()
    reader = Reader(es)
    assert reader.list(alias).not_set_up == (plain,)
    # From now on, the reader searches the other indices by name.
    es.indices.delete(index=other)
    assert [row.id for row in reader.list(alias).rows] == ["a"]
    es.indices.delete(index=[one, plain])
    with pytest.raises(IndexNotReady, match="there is no index"):
        reader.list(alias)


def test_a_filtered_alias_keeps_all_its_indices(es: Elasticsearch, read: Read, index_name: Names) -> None:
    one, plain = index_name("mine"), index_name("plain")
    alias = f"{one}-tenant"
    fill(es, one, {"a": {"source": "mine"}, "b": {"source": "theirs"}})
    es.indices.put_alias(index=one, name=alias, filter={"term": {"source": "mine"}})
    assert ids(read, alias) == ["a"]
    es.indices.create(index=plain, aliases={alias: {}})
    with pytest.raises(
        IndexNotReady, match="is not set up, and cannot be left out, since the alias has"
    ) as raised:
        read("list", alias)
    assert raised.value.index == plain


def test_dates_and_nanosecond_dates_are_ordered_together(
    es: Elasticsearch, read: Read, index_name: Names
) -> None:
    one, other = index_name("kinds-a"), index_name("kinds-b")
    fill(es, one, {"a": {"published_at": "2026-09-20"}})
    fill(es, other, {"b": {"published_at": "2026-09-21"}}, published_at={"type": "date_nanos"})
    assert ids(read, f"{one},{other}") == ["b", "a"]
    assert ids(read, f"{one},{other}", sort="oldest") == ["a", "b"]


def test_the_latest_article_with_an_id_is_read(es: Elasticsearch, read: Read, index_name: Names) -> None:
    one, other = index_name("twice-a"), index_name("twice-b")
    fill(es, one, {"x": {"text": "one", "root": "r1"}, "y": {"root": "r1"}})
    fill(es, other, {"z": {}, "x": {"text": "other", "root": "r2"}})
    both = f"{one},{other}"
    assert read("article", both, "x").text == "other"
    assert read("article", both, "x", in_index=one).text == "one"
    assert [each.id for each in read("similar", both, "x", in_index=one).rows] == ["y"]
    assert read("sources", both, "x", in_index=other).total == 0


def test_sources_are_counted_by_a_keyword_subfield(es: Elasticsearch, read: Read, index_name: Names) -> None:
    index = index_name("text")
    kinds = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    fill(
        es,
        index,
        {"a": {"source": "The Post", "root": "r"}, "b": {"source": "The Echo", "root": "r"}},
        source=kinds,
    )
    assert read("source_field", index) == "source.keyword"
    assert read("list", index).rows[0].sources == 2
    assert [each.source for each in read("sources", index, "a").sources] == ["The Echo"]
    plain = index_name("plain-text")
    fill(es, plain, {"a": {"source": "The Post"}}, source={"type": "text"})
    assert read("list", plain).rows[0].sources is None


def test_fields_that_indices_map_differently_are_reported(
    es: Elasticsearch, read: Read, elasticsearch_url: str, index_name: Names
) -> None:
    one, other = index_name("mapped"), index_name("unmapped")
    keyword = {"type": "keyword"}
    article = {"source": "The Post", "language": "en", "desk": "Sport"}
    fill(es, one, {"a": article}, source=keyword, language=keyword, desk=keyword)
    fill(es, other, {"b": article}, source={"type": "text"}, desk=keyword)
    overview = read("overview", f"{one},{other}")
    assert (overview.sources, [each.field for each in overview.facets]) == (None, ["desk"])
    assert overview.uneven_fields == ("source", "language")
    for index, is_told in {f"{one},{other}": True, one: False, other: False}.items():
        page = request(elasticsearch_url, index, "/").body
        assert ("Articles cannot be filtered by source, language: the mappings" in page) is is_told


def test_search_syntax_finds_the_expected_articles(es: Elasticsearch, read: Read, index_name: Names) -> None:
    index = index_name("words")
    titles = {
        "ferry": "A long-term contract for the new ferry",
        "harbour": "The harbour has a term, and it is long",
        "beijing": "北京大学的渡轮",
        "others": "大学在北京 ferries",
    }
    fill(es, index, {each: {"title": title} for each, title in titles.items()})
    for text, found in [
        ("long term", {"ferry", "harbour"}),
        ("long-term", {"ferry"}),
        ('"new ferry"', {"ferry"}),
        ('"ferry new"', set()),
        ("ferry | harbour", {"ferry", "harbour"}),
        ("term -ferry", {"harbour"}),
        ("term - ferry", {"ferry"}),
        ("ferr*", {"ferry", "others"}),
        ("(ferry | harbour) -contract", {"harbour"}),
        ("北京大学", {"beijing"}),
        ("北京 大学", {"beijing", "others"}),
        ("-北京大学 大学", {"others"}),
        # No query causes a syntax error.
        ('"new', {"ferry"}),
        ("((ferry", {"ferry"}),
        ("ferry |", {"ferry"}),
        ("ferry OR NOT ~ ^ / [ {", set()),
        ("ferry~5 \\", set()),
    ]:
        query = read("search_query", index, text)
        assert set(ids(read, index, query=query)) == found, text


def test_search_forms_accept_odd_words_and_times(es: Elasticsearch, read: Read, index_name: Names) -> None:
    index = index_name("times")
    fill(es, index, {"a": {"title": "ferry harbour", "published_at": 1_790_000_000_000}})
    for text in ("ferry - harbour", "ferry & harbour", "… ferry"):
        assert ids(read, index, query=words(text, Fields())) == ["a"]
    # The article was published at 2026-09-21 14:13:20 UTC.
    for since, until, found in [
        ("2026-09-21", "2026-09-21", True),
        ("20260921", None, True),
        ("2026-09-21 14:13:20", None, True),
        (" 2026-09-21T16:13:20+02:00 ", None, True),
        ("2026-09-21T14:13:21Z", None, False),
        (None, "2026-09-20", False),
        ("1790000000000", "1790000000000", True),
    ]:
        query = SearchForm(since=since, until=until).query(Fields())
        assert ids(read, index, query=query) == (["a"] if found else []), (since, until)


def test_sorting_by_count_works_with_very_many_matches(es: Elasticsearch, index_name: Names) -> None:
    """The reader tries the largest clusters first, and skips clusters without a match."""
    tuning = Tuning(few_articles=20, first_roots=10)
    index, chance = index_name("many"), random.Random(8)
    documents = random_corpus(chance, clusters=80)
    Dedup(es).setup(index)
    helpers.bulk(
        es,
        ({"_index": index, "_id": each, "_source": source} for each, source in documents.items()),
        refresh=True,
    )
    for sort in ("similar-desc", "similar-asc") * 6:
        query = random_query(chance)
        expected = expected_list(documents, query, sort=sort)
        page = list_tuned(es, tuning, index, query=query.query, sort=sort, size=30)
        assert [row.id for row in page.rows] == [row[0] for row in expected.rows[:30]]


TEXT = "The harbour council voted on Monday to move the ferry. It goes to the northern pier from May on."


def test_pages_hide_text_that_is_not_compared(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    texts = {"1": TEXT, "2": f"<style>Buy now!</style>{TEXT}<!-- Buy now! --><i title='Buy now!'></i>"}
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        actions = [{"_index": index, "_id": each, "_source": {"text": text}} for each, text in texts.items()]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
        similar = dedup.reader.similar(index, "1").rows
    assert [(each.id, each.resemblance) for each in similar] == [("2", 1.0)]
    pages: list[tuple[str, dict[str, Any]]] = [
        ("/article", {"id": "2"}),
        ("/compare", {"one": "1", "other": "2"}),
        ("/compare", {"one": "2", "other": "1"}),
    ]
    for path, options in pages:
        page = request(elasticsearch_url, index, path, **options)
        assert page.status == 200
        assert TEXT in html.unescape(re.sub("<[^>]*>", "", page.body))
        assert "Buy now" not in page.body

"""Article indices that are accepted, and indices that are refused."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import BadRequestError, Elasticsearch, helpers
from esdedup.ingest.adopt import Adoption
from esdedup.ingest.migrate import Migration

from esdedup import Dedup, Editor, EditRequest, Fields, IndexNotReady, Maintenance, Reader, SettingError
from esdedup.elastic.article_indices import Articles
from esdedup.elastic.forest.meta import Lookup
from esdedup.reading.search_form import words
from tests.support.asgi import request
from tests.support.between import Answer, Send, Sent, client_with
from tests.support.forests import ARTICLES, TEXT, feed, in_both_lookups, nodes, roots
from tests.support.names import Names
from tests.support.sidecar_process import running


def test_an_index_that_is_not_set_up_is_refused(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("plain"), index_name("forest")
    dedup = Dedup(es, forest=forest)
    with pytest.raises(IndexNotReady, match="set it up"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    es.indices.create(index=index)
    with pytest.raises(IndexNotReady, match="lacks fields"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    with pytest.raises(IndexNotReady, match="lacks fields"):
        dedup.reader.list(index)
    assert not es.indices.exists(index=forest)
    es.index(index=index, id="1", document={"text": TEXT, "dedup": {"root": "x"}}, refresh=True)
    with pytest.raises(IndexNotReady, match="root"):
        dedup.setup(index)
    with pytest.raises(IndexNotReady, match="there is no index"):
        dedup.reader.similar(index_name("none"), "1")


_UNUSABLE: dict[str, dict[str, Any]] = {
    "`enabled: false`": {"enabled": False},
    "`enabled: false`, so": {"properties": {"dedup": {"enabled": False}}},
    "`_source` leaves out dedup.root": {"_source": {"enabled": False}},
    "`_source` leaves out": {"_source": {"excludes": ["ded*"]}},
    "leaves out dedup.root": {"_source": {"includes": ["title", "dedup.seq"]}},
    "leaves out dedup.signature": {"_source": {"excludes": ["dedup.signature"]}},
    "has the type nested": {"properties": {"dedup": {"type": "nested"}}},
    "has the type flattened": {"properties": {"dedup": {"type": "flattened"}}},
    "has the type keyword": {"properties": {"dedup": {"type": "keyword"}}},
    "dedup.root also gets values": {"properties": {"by": {"type": "keyword", "copy_to": "dedup.root"}}},
    "dedup.seq also gets": {
        "properties": {"by": {"properties": {"name": {"type": "text", "copy_to": ["all", "dedup.seq"]}}}}
    },
    "dedup.page also gets": {
        "dynamic_templates": [{"by": {"match": "by", "mapping": {"type": "text", "copy_to": "dedup.page"}}}]
    },
    "by `copy_to` or a runtime field": {"runtime": {"dedup.root": {"type": "keyword"}}},
}


@pytest.mark.parametrize("says", _UNUSABLE)
def test_a_mapping_that_cannot_be_fixed_is_refused(es: Elasticsearch, index_name: Names, says: str) -> None:
    index, dedup = index_name("unusable"), Dedup(es, forest=index_name("forest"))
    es.indices.create(index=index, mappings=_UNUSABLE[says])
    for refused in (dedup.setup, dedup.require_ready, dedup.reader.list):
        with pytest.raises(IndexNotReady, match=says):
            refused(index)


def test_a_template_that_cannot_be_fixed_is_refused(es: Elasticsearch, index_name: Names) -> None:
    index, name = index_name("templated"), "esdedup-test-unusable"
    template = {"mappings": {"enabled": False}}
    es.indices.put_index_template(name=name, index_patterns=[index], template=template, priority=901)
    try:
        with pytest.raises(IndexNotReady, match="`enabled: false`"):
            Dedup(es, forest=index_name("forest")).setup(index)
        assert not es.indices.exists(index=index)
    finally:
        es.indices.delete_index_template(name=name)


def test_a_closed_index_of_an_alias_is_reported(es: Elasticsearch, index_name: Names) -> None:
    index, closed, forest = index_name("open"), index_name("closed"), index_name("forest")
    alias, pattern = f"{index}-alias", f"{index},{closed[:-1]}*"
    with Dedup(es, forest=forest) as dedup:
        for each in (index, closed):
            dedup.setup(each)
            es.indices.put_alias(index=each, name=alias)
        feed(es, dedup, index, ARTICLES[:1])
    es.indices.close(index=closed)
    operations: list[Callable[[str], object]] = [
        dedup.setup,
        Reader(es).list,
        lambda name: list(Maintenance(es, forest=forest).verify([name])),
        lambda name: Adoption(es, name),
    ]
    for refused, name in [*itertools.product(operations, (closed, alias)), (operations[-1], pattern)]:
        with pytest.raises(IndexNotReady, match=f"the index '{closed}' is closed: open it first"):
            refused(name)


def test_the_error_about_too_many_fields_names_the_limit(es: Elasticsearch, index_name: Names) -> None:
    index, dedup = index_name("full"), Dedup(es)
    settings, mappings = {"mapping.total_fields.limit": 3}, {"properties": {"a": {"type": "ip"}}}
    name, later = f"{index}-of", f"{index}-later"
    es.indices.create(index=index, settings=settings, mappings=mappings)
    made_of = {"settings": settings, "mappings": mappings}
    es.indices.put_index_template(name=name, index_patterns=[later], template=made_of)
    try:
        for refused, what in ((dedup.setup, index), (dedup.setup, later), (dedup.setup_template, name)):
            with pytest.raises(IndexNotReady, match=r"raise `index\.mapping\.total_fields\.limit`"):
                refused(what)
    finally:
        es.indices.delete_index_template(name=name)


def test_two_processes_may_create_an_index_concurrently(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    """The slower process checks the index as if it had existed before."""

    def between(request: Sent, send: Send) -> Answer:
        if request.method == "PUT" and request.path.count("/") == 1:
            Articles(es).setup(request.operation, shards=1)
        return send()

    with client_with(elasticsearch_url, between) as client:
        slow, index = Articles(client), index_name("news")
        assert not slow.setup(index)
        assert slow.check(index).fields == Fields()
        with pytest.raises(IndexNotReady, match="its number of shards is 1"):
            slow.setup(index_name("other"), shards=2)


def test_an_index_without_subobjects_can_be_used(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("flat"), index_name("forest")
    es.indices.create(index=index, mappings={"subobjects": False})
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        actions = [{"_index": index, "_id": each, "text": TEXT, "source": each} for each in "ab"]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
        (row,) = dedup.reader.list(index, sort="similar-desc").rows
        assert (row.similar, row.sources) == (1, 2)
        assert dedup.reader.similar(index, "a").total == 1
    assert not list(Maintenance(es, forest=forest).verify([index]))


def test_odd_fields_do_not_block_other_articles(es: Elasticsearch, index_name: Names) -> None:
    """There may be many other fields, nested and of any type; the fields of the dedup object stay strict."""
    index = index_name("strange")
    deep: dict[str, Any] = {"x": 1}
    for _ in range(30):
        deep = {"x": deep}
    strange: list[dict[str, Any]] = [
        {f"field{number}": number for number in range(1_000)},
        {"another": 1, "meta": {"of": "an object"}, "rating": "2026-01-01"},
        {"meta": "a word", "rating": "good", "deep": deep},
        {"published_at": "yesterday", "source": "S" * 40_000, "url": "u" * 40_000},
        {"title": "an ordinary one", "source": "A"},
    ]
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        for number, article in enumerate(strange):
            action = {"_index": index, "_id": str(number), "text": TEXT, **article}
            helpers.bulk(es, dedup.enrich([action]), refresh=True)
        (row,) = dedup.reader.list(index).rows
    assert row.similar == len(strange) - 1
    with pytest.raises(BadRequestError, match="seq"):
        es.index(index=index, document={"dedup": {"root": "r", "seq": "many"}})


def test_a_forest_cannot_be_set_up_for_articles(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        with pytest.raises(SettingError, match="is the forest, which"):
            dedup.setup(forest)
        with pytest.raises(SettingError, match="is the forest, which"):
            dedup.setup(index, forest=index)
        dedup.setup(index)
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    other = Dedup(es, forest=index_name("other"))
    for refused in (other.setup, other.require_ready):
        with pytest.raises(IndexNotReady, match="is a forest, which holds no articles"):
            refused(forest)
    assert "dedup" not in es.indices.get_mapping(index=forest)[forest]["mappings"]["properties"]


@pytest.mark.parametrize(
    ("says", "body"),
    [
        ("the alias news:", {"template": {"aliases": {"news": {}}}}),
        ("esdedup", {"template": {"mappings": {"_meta": {"esdedup": {"fields": {}, "forest": "a"}}}}}),
        ("_source", {"composed_of": ["part"]}),
        ("default_pipeline", {"template": {"settings": {"default_pipeline": "none"}}}),
        ("_data_stream_timestamp", {"data_stream": {}}),
    ],
)
def test_a_template_that_would_harm_a_forest_is_reported(
    es: Elasticsearch, index_name: Names, says: str, body: dict[str, Any]
) -> None:
    index, forest = index_name("articles"), index_name("matched")
    name, part = f"{forest}-of", f"{forest}-part"
    source = {"_source": {"enabled": False}}
    es.cluster.put_component_template(name=part, template={"mappings": source})
    body = body | ({"composed_of": [part]} if "composed_of" in body else {})
    harmless: dict[str, Any] = {
        "template": {"settings": {"number_of_replicas": 0}, "mappings": {"dynamic": False}}
    }
    actions = [{"_index": index, "_id": "1", "text": TEXT}]
    try:
        es.indices.put_index_template(name=name, index_patterns=[f"{forest}*"], priority=7, **body)
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            with pytest.raises(IndexNotReady, match=f"template '{name}' would give the forest .*{says}"):
                list(dedup.enrich(actions))
            assert not es.indices.exists(index=forest)
            es.indices.put_index_template(name=name, index_patterns=[f"{forest}*"], priority=7, **harmless)
            helpers.bulk(es, dedup.enrich(actions), refresh=True)
        # A rebuild does not replace the forest either, because the new forest could not be created.
        es.indices.put_index_template(name=name, index_patterns=[f"{forest}*"], priority=7, **body)
        maintenance = Maintenance(es, forest=forest)
        with pytest.raises(IndexNotReady, match="would give the forest"):
            maintenance.rebuild([index])
        assert not list(maintenance.verify([index]))
    finally:
        es.options(ignore_status=404).indices.delete_index_template(name=name)
        es.cluster.delete_component_template(name=part)


def test_a_forest_behind_an_alias_is_left_out(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("behind"), index_name("behind-forest")
    alias, pattern = f"{index}-alias", f"{index},{forest}*"
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:5])
    # Give the forest the metadata, fields and alias of the articles, as if their template had matched it.
    found = es.indices.get_mapping(index=f"{index},{forest}")
    meta = {
        "esdedup": {**found[forest]["mappings"]["_meta"]["esdedup"], "fields": dataclasses.asdict(Fields())}
    }
    properties = {"dedup": found[index]["mappings"]["properties"]["dedup"]}
    es.indices.put_mapping(index=forest, meta=meta, properties=properties)
    es.indices.put_alias(index=[index, forest], name=alias)
    for name in (alias, pattern):
        page = Reader(es).list(name, size=5)
        assert (page.total_articles, page.not_set_up) == (5, (forest,))
    maintenance = Maintenance(es, forest=forest)
    for refused in (lambda name: list(maintenance.verify([name])), lambda name: Adoption(es, name)):
        with pytest.raises(IndexNotReady, match=f"'{forest}' is a forest, .*exclude it, with 'a.,-{forest}'"):
            refused(pattern)
        refused(f"{pattern},-{forest}")
    with Dedup(es, forest=forest) as dedup:
        assert [*dedup.enrich([{"_index": index, "_id": "x", "text": ARTICLES[0]["text"]}])]


FOREIGN = Fields(text="body", title="headline", time="at", source="by", link="href", dedup="near")


def article(index: str, article_id: str) -> dict[str, Any]:
    """Return an action whose fields have the names of `FOREIGN`."""
    values = {"body": TEXT, "headline": "Fox", "at": "2026-01-01", "by": "A", "href": "https://a.example/1"}
    return {"_index": index, "_id": article_id, **values}


def test_an_index_stores_its_field_names(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("foreign"), index_name("forest")
    es.indices.create(index=index, mappings={"_meta": {"owner": "news desk"}})
    Dedup(es, fields=FOREIGN).setup(index)
    # Setting up again without names changes nothing.
    Dedup(es).setup(index)
    assert es.indices.get_mapping(index=index)[index]["mappings"]["_meta"]["owner"] == "news desk"
    with Dedup(es, forest=forest) as dedup:
        helpers.bulk(es, dedup.enrich([article(index, each) for each in "ab"]), refresh=True)
    reader = Reader(es)
    assert reader.fields(index) == FOREIGN
    (row,) = reader.list(index, query=words("fox", reader.fields(index))).rows
    assert (row.title, row.published_at, row.source, row.url, row.similar) == (
        *("Fox", "2026-01-01", "A", "https://a.example/1"),
        1,
    )
    assert reader.article(index, "a").text == TEXT
    assert reader.source_names(index) == ("A",)
    assert reader.sources(index, "a").sources[0].source == "A"
    maintenance = Maintenance(es, forest=forest)
    assert not list(maintenance.verify([index]))
    assert maintenance.explain(index, "a", "b").same_cluster
    # A reader's names take precedence over the stored names; a writer's names must match them.
    renamed = dataclasses.replace(FOREIGN, title="by", source="headline")
    assert Reader(es, fields=renamed).list(index).rows[0].title == "A"
    writer = Dedup(es, forest=forest, fields=renamed)
    with pytest.raises(IndexNotReady, match="title: 'headline' and 'by'"):
        writer.require_ready(index)
    writer.setup(index)
    writer.require_ready(index)
    assert reader.list(index).rows[0].title == "Fox", "the mapping is cached for a few seconds"
    assert Reader(es).list(index).rows[0].title == "A"


@pytest.mark.parametrize("dynamic", [False, "strict", True])
def test_setting_up_again_maps_newly_named_fields(
    es: Elasticsearch, index_name: Names, dynamic: object
) -> None:
    index, forest = index_name("foreign"), index_name("forest")
    if dynamic is False:
        Dedup(es, forest=forest).setup(index)
    else:
        es.indices.create(index=index, mappings={"dynamic": dynamic})
    Dedup(es, forest=forest, fields=FOREIGN).setup(index)
    with Dedup(es, forest=forest) as dedup:
        helpers.bulk(es, dedup.enrich([article(index, "a")]), refresh=True)
    reader = Reader(es)
    forms: list[dict[str, Any]] = [{"words": "fox"}, {"source": "A"}, {"source": ["B", "A"]}]
    for form in forms:
        assert reader.list(index, query=reader.search_query(index, **form)).total_rows == 1, form


def test_setting_up_keeps_existing_mappings(es: Elasticsearch, index_name: Names) -> None:
    index, dedup = index_name("own"), Dedup(es, fields=Fields(source="outlet.name", time="at"))
    own = {
        "title": {"type": "keyword"},
        "at": {"type": "keyword"},
        "outlet": {"properties": {"country": {"type": "keyword"}}},
    }
    es.indices.create(index=index, mappings={"dynamic": "strict", "properties": own})
    dedup.setup(index)
    properties = es.indices.get_mapping(index=index)[index]["mappings"]["properties"]
    assert (properties["title"], properties["at"]) == (own["title"], own["at"])
    assert sorted(properties["outlet"]["properties"]) == ["country", "name"]


@pytest.mark.parametrize(
    ("name", "mapping"),
    [
        ("source", {"properties": {"name": {"type": "keyword"}}}),
        ("title", {"type": "long"}),
        ("url", {"type": "nested"}),
    ],
)
def test_a_field_of_an_unsuitable_type_is_refused(
    es: Elasticsearch, index_name: Names, name: str, mapping: dict[str, Any]
) -> None:
    index = index_name("own")
    es.indices.create(index=index, mappings={"properties": {name: mapping}})
    with pytest.raises(IndexNotReady, match=f"the field '{name}' of the index .* has the type"):
        Dedup(es).setup(index)
    assert "dedup" not in es.indices.get_mapping(index=index)[index]["mappings"]["properties"]


def test_a_search_by_an_unmapped_field_is_refused(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    index = index_name("wrong-names")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index)
        helpers.bulk(es, dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]), refresh=True)
    wrong = Reader(es, fields=Fields(text="body", title="headline", source="outlet"))
    forms: list[tuple[dict[str, Any], str]] = [
        ({"words": "fox"}, "'headline' or 'body'"),
        ({"source": "A"}, "'outlet'"),
    ]
    for form, names in forms:
        with pytest.raises(IndexNotReady, match=f"does not map the field {names}, so it cannot be searched"):
            wrong.search_query(index, **form)
    assert wrong.search_query(index, since="2026-01-01") is not None
    # A search for words needs only one of the fields for the title and the text.
    Reader(es, fields=Fields(title="headline")).search_query(index, "fox")
    page = request(elasticsearch_url, index, "/", of={"fields": Fields(source="outlet")}, source="A")
    assert "does not map the field" in page.body


def test_indices_with_different_field_names_cannot_be_read_together(
    es: Elasticsearch, index_name: Names
) -> None:
    usual, foreign, forest = index_name("usual"), index_name("foreign"), index_name("forest")
    Dedup(es).setup(usual)
    Dedup(es, fields=FOREIGN).setup(foreign)
    with Dedup(es, forest=forest) as dedup:
        # One call may write to both indices.
        actions = [article(foreign, "a"), {"_index": usual, "_id": "b", "text": TEXT, "title": "Dog"}]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    assert [Reader(es).list(index).rows[0].title for index in (foreign, usual)] == ["Fox", "Dog"]
    for read in (Reader(es).list, Reader(es).fields):
        with pytest.raises(IndexNotReady, match="name their fields differently"):
            read(f"{usual},{foreign}")
    with pytest.raises(IndexNotReady, match="name their fields differently"):
        list(Maintenance(es, forest=forest).verify([usual, foreign]))


def test_writing_to_an_alias_requires_a_write_index(es: Elasticsearch, index_name: Names) -> None:
    one, other, alias = index_name("behind-a"), index_name("behind-b"), index_name("alias")
    dedup = Dedup(es, forest=index_name("forest"))
    for index in (one, other):
        dedup.setup(index)
        es.indices.put_alias(index=index, name=alias)
    with pytest.raises(IndexNotReady, match="none of them is its write index"):
        dedup.require_ready(alias)
    es.indices.put_alias(index=other, name=alias, is_write_index=True)
    dedup.require_ready(alias)


@pytest.mark.parametrize("routed", [True, False])
def test_an_alias_routes_as_its_write_index_does(es: Elasticsearch, index_name: Names, routed: bool) -> None:
    plain, by_root, alias = index_name("plain"), index_name("by-root"), index_name("alias")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(plain)
        dedup.setup(by_root, route_by_root=True)
        for name, is_written in ((plain, not routed), (by_root, routed)):
            es.indices.put_alias(index=name, name=alias, is_write_index=is_written)
        (action,) = dedup.enrich([{"_index": alias, "_id": "1", "text": TEXT}])
    assert ("routing" in action) is routed


@in_both_lookups
def test_an_index_with_articles_keeps_its_forest(
    es: Elasticsearch, index_name: Names, lookup: Lookup
) -> None:
    index, forest, other = index_name("articles"), index_name("forest"), index_name("other")
    for name, where, articles in (
        (forest, index, ARTICLES[:50]),
        (other, index_name("others"), ARTICLES[50:60]),
    ):
        with Dedup(es, forest=name, lookup=lookup) as dedup:
            dedup.setup(where)
            feed(es, dedup, where, articles)
    dedup = Dedup(es)
    for wrong in (other, index_name("missing")):
        with pytest.raises(IndexNotReady, match=f"{index!r} are not in the forest {wrong!r}"):
            dedup.setup(index, forest=wrong)
    with Dedup(es, forest=forest) as feeding:
        # Setting up works even before the fed articles are visible to searches.
        feed(es, feeding, index, ARTICLES[100:200])
        dedup.setup(index, forest=forest)
    with pytest.raises(IndexNotReady, match="are not in the forest"):
        dedup.setup(index, forest=other)
    renamed = index_name("renamed")
    maintenance = Maintenance(es, forest=renamed)
    with pytest.raises(
        IndexNotReady, match=f"{index!r} belongs to the forest {forest!r}, not to {renamed!r}"
    ):
        maintenance.rebuild([index])
    assert not es.indices.get(index=f"{renamed}*")
    maintenance.rebuild([index], rename=True)
    dedup.setup(index, forest=renamed)
    with Dedup(es, forest=forest) as feeding, pytest.raises(IndexNotReady, match=f"belongs to .*{renamed!r}"):
        feeding.require_ready(index)


def test_only_the_forest_of_an_index_accepts_its_articles(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    own, others, anyones = index_name("own"), index_name("others"), index_name("anyones")
    forest, other = index_name("forest"), index_name("other")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(own, forest=forest)
        dedup.setup(others)
        dedup.setup(anyones)
        # An existing index can be assigned to a forest, too, and stays assigned.
        dedup.setup(others, forest=other)
        dedup.setup(others)
        with pytest.raises(IndexNotReady, match=f"{others!r} belongs to the forest {other!r}, not to"):
            list(dedup.enrich([{"_index": others, **ARTICLES[0]}]))
    actions = [
        {"_index": index, **article, "_id": f"{at}-{index}"}
        for at, article in enumerate(ARTICLES[:4])
        for index in (own, others, anyones)
    ]
    with running(elasticsearch_url, forest=forest) as sidecar:
        with Elasticsearch(sidecar.url) as client:
            written, refused = helpers.bulk(client, actions, raise_on_error=False, refresh=True)
        assert isinstance(refused, list)
        assert (written, len(refused)) == (8, 4)
        for each in refused:
            assert each["index"]["status"] == 400
            assert f"belongs to the forest {other!r}" in each["index"]["error"]["reason"]
        answers = sidecar.enrich(*ARTICLES[:2], index=others)
    assert [each["error"]["status"] for each in answers] == [400, 400]
    assert [len(roots(es, index)) for index in (own, others, anyones)] == [4, 0, 4]
    # The index that had no forest now belongs to `forest`.
    assert es.indices.get_mapping(index=anyones)[anyones]["mappings"]["_meta"]["esdedup"]["forest"] == forest
    with Dedup(es, forest=other) as dedup:
        assert len(list(dedup.enrich([{"_index": others, **ARTICLES[0]}]))) == 1


def test_every_operation_uses_the_forest_of_the_index(es: Elasticsearch, index_name: Names) -> None:
    """The index was set up without a forest, and records the forest that accepted its first article."""
    (index, forest), (small, other) = (
        [index_name(name) for name in pair] for pair in (("news", "forest"), ("small", "other"))
    )
    for each, name, articles in ((index, forest, ARTICLES[:60]), (small, other, ARTICLES[60:62])):
        with Dedup(es, forest=name) as dedup:
            dedup.setup(each, editorial=True)
            feed(es, dedup, each, articles)
    ids = tuple(str(each["_id"]) for each in ARTICLES[:2])
    merge = EditRequest(kind="merge", to=ids[0], ids=ids[1:])
    before = nodes(es, forest)

    def uses(name: str | None, of: str) -> dict[str, Callable[[], Any]]:
        maintenance, reader = Maintenance(es, forest=name), Reader(es, forest=name)
        return {
            "verify": lambda: list(maintenance.verify([of])),
            "repair": lambda: maintenance.repair([of]),
            "stats": lambda: maintenance.stats([of]).nodes,
            "boilerplate": lambda: maintenance.boilerplate([of]),
            "texts": lambda: len(list(maintenance.texts([of]))),
            "explain": lambda: maintenance.explain(of, *ids).forest,
            "similar": lambda: reader.similar_to_text(of, str(ARTICLES[0]["text"])).root,
            "reader's explain": lambda: reader.explain(of, *ids).forest,
            "edit": lambda: Editor(es, forest=name).edit(of, merge, by="A. Chen").edit.number,
            "history": lambda: Editor(es, forest=name).history(of),
            "migrate": lambda: Migration(es, of, forest=name, to="elsewhere").forest,
            "rebuild": lambda: maintenance.rebuild([of]),
        }

    for use in uses(forest, small).values():
        with pytest.raises(IndexNotReady, match=f"{small!r} belongs to the forest {other!r}, not to"):
            use()
    with pytest.raises(IndexNotReady, match="belong to several forests"):
        Maintenance(es).rebuild([index, small])
    assert nodes(es, forest) == before
    found = {name: use() for name, use in uses(None, index).items()}
    assert (found["verify"], found["stats"], found["texts"], found["edit"]) == ([], len(before), 60, 1)
    assert found["explain"] == found["reader's explain"] == found["migrate"] == forest
    assert (found["similar"] is None, found["rebuild"]) == (False, len(before))
    # Articles of an index that does not name its forest cannot be edited: they may be in another forest.
    es.indices.put_mapping(index=index, meta={"esdedup": {"editorial": True}})
    with pytest.raises(IndexNotReady, match="belongs to no forest"):
        Editor(es, forest=other).edit(index, merge, by="A. Chen")
    with pytest.raises(IndexNotReady, match="are not in the forest"):
        Dedup(es, forest=other).setup(index, editorial=True)
    Dedup(es, forest=forest).setup(index, editorial=True)
    assert Maintenance(es).forest_of([index]) == forest

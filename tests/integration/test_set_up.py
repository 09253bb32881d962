"""Indices that are set up with routing by root, for a language, or by a template."""

import collections
from typing import Any

import pytest
from elasticsearch import BadRequestError, Elasticsearch, helpers

from esdedup import ArticleRejected, Dedup, FieldsNotFound, IndexNotReady, Maintenance, Reader, SettingError
from esdedup.fields import Fields
from esdedup.maintenance.records import Records
from tests.support.forests import ARTICLES, feed, kinds
from tests.support.names import Names


@pytest.mark.parametrize("route_by_root", [True, False])
def test_an_article_without_a_fingerprint_keeps_its_root(
    es: Elasticsearch, index_name: Names, route_by_root: bool
) -> None:
    index, other, alias = index_name("roots"), index_name("other"), index_name("alias")
    with Dedup(es, forest=index_name("forest")) as dedup:
        for each in (index, other):
            dedup.setup(each, shards=3, route_by_root=route_by_root)
        es.indices.put_alias(index=index, name=alias)
        roots = {
            name: {
                action["_source"]["dedup"]["root"]
                for action in dedup.enrich({"_index": name, "_id": each, "text": "ok."} for each in "ab")
            }
            for name in (index, alias, other)
        }
    assert roots[index] == roots[alias]
    assert len(roots[index] | roots[other]) == 4


FEW = ARTICLES[:100]


@pytest.fixture
def routed(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    index, forest = index_name("routed"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        assert dedup.setup(index, shards=5, route_by_root=True)
        assert not dedup.setup(index, route_by_root=True)
        feed(es, dedup, index, FEW)
    return index, forest


def test_each_cluster_lies_on_one_shard(es: Elasticsearch, routed: tuple[str, str]) -> None:
    index, forest = routed
    hits = list(helpers.scan(es, index=index, _source=["dedup.root"]))
    assert len(hits) == len(FEW)
    assert all(hit["_routing"] == hit["_source"]["dedup"]["root"] for hit in hits)
    page = Reader(es).list(index, sort="similar-desc", size=5)
    assert page.order_exact
    sizes = collections.Counter(hit["_routing"] for hit in hits)
    assert [row.similar + 1 for row in page.rows] == [count for _, count in sizes.most_common(5)]
    assert not kinds(Maintenance(es, forest=forest), index)


def test_an_article_moves_to_its_new_roots_shard(es: Elasticsearch, routed: tuple[str, str]) -> None:
    index, _ = routed
    records = Records(es, indices=[index], fields=Fields())
    found = [record for batch in records.batches() for record in batch]
    record, other = found[0], next(each for each in found if each.root != found[0].root)
    assert records.update([(record, {"root": other.root})]) == 1
    # A second call changes nothing, because the article is no longer on the record's shard.
    assert records.update([(record, {"root": other.root})]) == 0
    es.indices.refresh(index=index)
    assert es.count(index=index)["count"] == len(FEW)
    (hit,) = es.search(index=index, query={"ids": {"values": [record.id]}})["hits"]["hits"]
    assert hit["_routing"] == hit["_source"]["dedup"]["root"] == other.root
    assert hit["_source"]["text"]


def test_an_earlier_copy_does_not_replace_a_later_text(es: Elasticsearch, routed: tuple[str, str]) -> None:
    index, forest = routed
    records = Records(es, indices=[index], fields=Fields())
    old = next(record for batch in records.batches() for record in batch)
    with Dedup(es, forest=forest) as dedup:
        for number in range(50):
            # If the new text's root is on the same shard, the new text has replaced the old copy.
            stored = (record for batch in records.batches() for record in batch)
            old = next(record for record in stored if record.id == old.id)
            feed(es, dedup, index, [{"_id": old.id, "text": f"The {number} words of a text that came later"}])
            copies = es.search(index=index, query={"ids": {"values": [old.id]}})["hits"]["hits"]
            if len(copies) == 2:
                break
    later = next(copy for copy in copies if copy["_routing"] != old.routing)
    assert records.update([(old, {"root": later["_routing"]})]) == 1
    es.indices.refresh(index=index)
    (kept,) = es.search(index=index, query={"ids": {"values": [old.id]}})["hits"]["hits"]
    assert kept == later


def test_an_update_of_a_text_is_refused(es: Elasticsearch, routed: tuple[str, str]) -> None:
    """The new root may be on another shard: the update would miss the article or create a second article."""
    index, forest = routed
    (hit,) = es.search(index=index, size=1, source_includes="dedup.root")["hits"]["hits"]
    update = {"_op_type": "update", "_index": index, "_id": hit["_id"], "routing": hit["_routing"]}
    texts: list[dict[str, Any]] = [
        {"doc": {"text": f"Another text, number {n}"}, "doc_as_upsert": True} for n in range(8)
    ]
    rejected: list[ArticleRejected] = []
    with Dedup(es, forest=forest) as dedup:
        run = [{**update, **each} for each in (*texts, {"doc": {"title": "Another title"}})]
        assert helpers.bulk(es, dedup.enrich(run, on_rejected=rejected.append), refresh=True) == (1, [])
    copies = es.search(index=index, query={"ids": {"values": [hit["_id"]]}})["hits"]["hits"]
    assert [copy["_source"]["title"] for copy in copies] == ["Another title"]
    assert {each.article for each in rejected} == {hit["_id"]}
    assert all("routed by root" in each.reason for each in rejected)


TEXTS_BY_LANGUAGE = {
    "en": {
        "one": "Election day: the voters of the harbour town chose a new council on Monday morning.",
        "two": "The elections were close, and every vote in the harbour counted until late at night.",
        "three": "A ferry that runs aground is no news here, said the captain who had been running it.",
    },
    "zh": {
        "one": "港口城市的选民星期一上午选举了新的市议会。",
        "two": "选举结果非常接近，港口的每一票都算到了深夜。",
        "three": "渡轮搁浅在这里不是新闻，开了多年船的船长说。",
    },
}


def fed(es: Elasticsearch, index_name: Names, articles: str, *, language: str | None = None) -> str:
    index = index_name(f"language-{articles}")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(index, language=language)
        actions = [
            {"_index": index, "_id": each, "text": text} for each, text in TEXTS_BY_LANGUAGE[articles].items()
        ]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    return index


def found(reader: Reader, index: str, words: str) -> dict[str, str]:
    """Return the marked words of each article that is found."""
    page = reader.list(index, query=reader.search_query(index, words), details=True)
    rows = {row.id: row.details for row in page.rows}
    return {
        each: " ".join(part.text for part in details.snippet.text if part.is_match)
        for each, details in rows.items()
        if details is not None
    }


def test_english_words_are_found_in_all_their_forms(es: Elasticsearch, index_name: Names) -> None:
    reader = Reader(es)
    index = fed(es, index_name, "en", language="en")
    assert found(reader, index, "election") == {"one": "Election", "two": "elections"}
    assert found(reader, index, "voted") == {"two": "vote"}
    assert found(reader, index, '"ferries run"') == {}
    assert found(reader, index, "run -aground") == {}
    assert found(reader, index, "the captain") == {"three": "captain"}
    plain = fed(es, index_name, "en")
    assert found(reader, plain, "election") == {"one": "Election"}


def test_chinese_is_found_by_pairs_of_characters(es: Elasticsearch, index_name: Names) -> None:
    reader = Reader(es)
    index = fed(es, index_name, "zh", language="zh-CN")
    for words, expected in {"选举": {"one", "two"}, "港口 选举": {"one", "two"}, "新闻": {"three"}}.items():
        assert found(reader, index, words).keys() == expected
    # A text contains both pairs, but not next to each other in this order.
    assert found(reader, index, "选举港口") == {}
    # A single character is found only where it begins a pair, so not at the end of a clause.
    assert found(reader, index, "港").keys() == {"one", "two"}
    assert found(reader, index, "选举 -票").keys() == {"one"}
    assert found(reader, fed(es, index_name, "zh"), "港").keys() == {"one", "two"}
    assert "选举" in found(reader, index, "选举")["two"]


def test_an_index_keeps_its_language(es: Elasticsearch, index_name: Names) -> None:
    index, other = index_name("kept"), index_name("other")
    fields = Fields(text="body")
    with Dedup(es, forest=index_name("forest"), fields=fields) as dedup:
        assert dedup.setup(index, language="en")
        meta = es.indices.get_mapping(index=index)[index]["mappings"]["_meta"]["esdedup"]
        assert (meta["language"], meta["fields"]["text"]) == ("en", "body")
        assert not dedup.setup(index)
        assert not dedup.setup(index, language="en")
        with pytest.raises(IndexNotReady, match=r"set up for the language 'en', which is fixed when"):
            dedup.setup(index, language="zh")
        dedup.setup(other, route_by_root=True)
        with pytest.raises(IndexNotReady, match="set up for no language in particular"):
            dedup.setup(other, language="en")
    # A field that a later set-up names is analysed in the same way.
    with Dedup(es, forest=index_name("forest"), fields=Fields(text="body", title="headline")) as dedup:
        dedup.setup(index)
    properties = es.indices.get_mapping(index=index)[index]["mappings"]["properties"]
    assert {properties[name]["analyzer"] for name in ("body", "title", "headline")} == {"english"}


def test_missing_server_features_are_reported_before_creating_the_index(
    es: Elasticsearch, index_name: Names
) -> None:
    index = index_name("lacking")
    with Dedup(es, forest=index_name("forest")) as dedup:
        # A server with all modules has every analyzer.
        try:
            es.indices.analyze(analyzer="thai", text="a")
        except BadRequestError:
            with pytest.raises(
                SettingError, match="lacks the analyzer 'thai', which the language 'th' needs"
            ):
                dedup.setup(index, language="th")
        with pytest.raises(SettingError, match="unknown language 'klingon'; choose from ar, "):
            dedup.setup(index, language="klingon")
    assert not es.indices.exists(index=index)


@pytest.mark.parametrize("kind", ["index", "component"])
def test_a_template_adds_the_fields_to_new_indices(es: Elasticsearch, index_name: Names, kind: str) -> None:
    index = index_name("from-template")
    name, pattern = f"{index}-of", f"{index}*"
    own = {"properties": {"body": {"type": "text"}, "desk": {"type": "keyword"}}, "_meta": {"ours": 1}}
    made_of: dict[str, Any] = {"template": {"mappings": own, "settings": {"number_of_shards": 1}}}
    if kind == "index":
        es.indices.put_index_template(name=name, index_patterns=[pattern], priority=7, **made_of)
    else:
        es.cluster.put_component_template(name=name, **made_of)
        es.indices.put_index_template(
            name=f"{name}-using", index_patterns=[pattern], composed_of=[name], priority=7
        )
    try:
        dedup = Dedup(es, fields=Fields(text="body", time="date"), forest="a-forest")
        for _ in range(2):
            dedup.setup_template(name, forest="a-forest")
        # A call without field names changes nothing, and a call with other names is refused.
        Dedup(es).setup_template(name)
        with pytest.raises(IndexNotReady, match="set up with other field names"):
            Dedup(es, fields=Fields(text="content")).setup_template(name)
        es.index(index=index, id="1", document={"body": "A fox", "date": "2026-11-01", "desk": "Sport"})
        found = es.indices.get(index=index)[index]
        assert found["settings"]["index"]["number_of_shards"] == "1"
        mapping = found["mappings"]
        assert mapping["properties"]["desk"] == {"type": "keyword"}
        assert mapping["properties"]["date"]["type"] == "date"
        assert mapping["properties"]["dedup"]["properties"]["root"]["type"] == "keyword"
        assert mapping["_meta"]["ours"] == 1
        assert dedup.require_ready(index) == Fields(text="body", time="date")
        with pytest.raises(IndexNotReady, match="belongs to the forest 'a-forest'"):
            Dedup(es, forest="another").require_ready(index)
        with pytest.raises(IndexNotReady, match="there is no index template or component template"):
            dedup.setup_template(f"{name}-missing")
    finally:
        for each in (f"{name}-using", name):
            es.options(ignore_status=404).indices.delete_index_template(name=each)
        es.options(ignore_status=404).cluster.delete_component_template(name=name)


@pytest.mark.parametrize("of", ["settings", "aliases", "component", "missing component", "nothing"])
def test_a_template_may_have_no_mapping(es: Elasticsearch, index_name: Names, of: str) -> None:
    index, later = index_name("unmapped"), index_name("unmapped-later")
    name, component = f"{index}-of", f"{index}-part"
    bodies: dict[str, dict[str, Any]] = {
        "settings": {"template": {"settings": {"number_of_replicas": 0}}},
        "aliases": {"template": {"aliases": {f"{index}-alias": {}}}},
        "component": {"composed_of": [component]},
        "missing component": {"composed_of": ["none"], "ignore_missing_component_templates": ["none"]},
        "nothing": {},
    }
    es.cluster.put_component_template(name=component, template={"settings": {"number_of_replicas": 0}})
    es.indices.put_index_template(name=name, index_patterns=[index, later], **bodies[of])
    try:
        with Dedup(es, forest=index_name("forest")) as dedup:
            with pytest.raises(IndexNotReady, match="Set the index up"):
                dedup.require_ready(index)
            assert dedup.setup(index)
            feed(es, dedup, index, ARTICLES[:1])
            dedup.setup_template(name)
            assert dedup.require_ready(later) == Fields()
    finally:
        es.indices.delete_index_template(name=name)
        es.cluster.delete_component_template(name=component)


def test_an_unsuitable_template_stays_unchanged(es: Elasticsearch, index_name: Names) -> None:
    name = f"{index_name('unfit')}-of"
    own = {"properties": {"dedup": {"type": "keyword"}}}
    es.cluster.put_component_template(name=name, template={"mappings": own})
    try:
        with pytest.raises(IndexNotReady, match="but must be an object"):
            Dedup(es).setup_template(name)
        (found,) = es.cluster.get_component_template(name=name)["component_templates"]
        assert found["component_template"]["template"]["mappings"] == own
    finally:
        es.cluster.delete_component_template(name=name)


def test_an_index_with_other_field_names_stays_unchanged(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("full")
    article = {"headline": "Ferry", "body": "The ferry goes on Monday.", "when": "now", "date": "2026-11-01"}
    es.index(index=index, id="1", document=article, refresh=True)
    before = es.indices.get_mapping(index=index)
    for given in (None, Fields(text="body"), Fields(text="body", title="headline")):
        with pytest.raises(FieldsNotFound) as raised:
            Dedup(es, fields=given).setup(index)
        assert raised.value.likely["time"] == "date"
    assert es.indices.get_mapping(index=index) == before
    own = Fields(text="body", title="headline", time="date")
    # Set-up succeeds without fields for the source and the address, if no field looks like one.
    Dedup(es, fields=own).setup(index)
    assert Dedup(es).require_ready(index) == own
    # Articles are not sampled again after the first set-up.
    Dedup(es).setup(index)

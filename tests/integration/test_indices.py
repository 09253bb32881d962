"""Article indices: which are ready, and which are refused."""

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Fields, IndexNotReady, SettingError
from tests.support.forests import TEXT, Names


def test_an_index_that_is_not_ready(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("plain"), index_name("forest")
    dedup = Dedup(es, forest=forest)
    with pytest.raises(IndexNotReady, match="set it up"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    es.indices.create(index=index)
    with pytest.raises(IndexNotReady, match="lacks fields"):
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
    with pytest.raises(IndexNotReady, match="lacks fields"):
        dedup.list(index)
    assert not es.indices.exists(index=forest)
    es.index(index=index, id="1", document={"text": TEXT, "dedup": {"root": "x"}}, refresh=True)
    with pytest.raises(IndexNotReady, match="root"):
        dedup.setup(index)
    with pytest.raises(IndexNotReady, match="there is no index"):
        dedup.similar(index_name("none"), "1")


def test_an_index_that_exists_gets_the_fields(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("old")
    es.indices.create(index=index, mappings={"properties": {"headline": {"type": "text"}}})
    dedup = Dedup(es, forest=index_name("forest"))
    assert not dedup.setup(index)
    assert not dedup.setup(index)
    dedup.require_ready(index)


def test_a_forest_is_not_set_up_for_articles(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        list(dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
        for refused in (dedup.setup, dedup.require_ready):
            with pytest.raises(IndexNotReady, match="is a forest, which holds no articles"):
                refused(forest)
    assert "dedup" not in es.indices.get_mapping(index=forest)[forest]["mappings"]["properties"]


def test_an_index_made_by_a_template(es: Elasticsearch, index_name: Names) -> None:
    import json
    from pathlib import Path

    index, name = index_name("daily"), "esdedup-test-articles"
    body = json.loads((Path(__file__).parents[2] / "mappings" / "articles.json").read_text())
    es.cluster.put_component_template(name=name, **{key.lstrip("_"): value for key, value in body.items()})
    es.indices.put_index_template(
        name=name, index_patterns=["test-daily-*"], composed_of=[name], priority=900
    )
    try:
        with Dedup(es, forest=index_name("forest")) as dedup:
            dedup.require_ready(index)
            helpers.bulk(es, dedup.enrich([{"_index": index, "_id": "1", "text": TEXT}]))
            es.indices.refresh(index=index)
            assert dedup.list(index).total_rows == 1
    finally:
        es.indices.delete_index_template(name=name)
        es.cluster.delete_component_template(name=name)


def test_other_field_names(es: Elasticsearch, index_name: Names) -> None:
    index = index_name("other-names")
    fields = Fields(text="body", title="headline", time="at", source="by", link="href", dedup="near")
    with Dedup(es, forest=index_name("forest"), fields=fields) as dedup:
        dedup.setup(index)
        article = {
            "body": TEXT,
            "headline": "Fox",
            "at": "2026-01-01",
            "by": "A",
            "href": "https://a.example/1",
        }
        helpers.bulk(es, dedup.enrich([{"_index": index, "_id": "1", **article}]))
        es.indices.refresh(index=index)
        (row,) = dedup.list(index).rows
    assert (row.title, row.published_at, row.source, row.url) == (
        "Fox",
        "2026-01-01",
        "A",
        "https://a.example/1",
    )


def test_several_indices_at_once(es: Elasticsearch, index_name: Names) -> None:
    one, other = index_name("several-a"), index_name("several-b")
    with Dedup(es, forest=index_name("forest")) as dedup:
        for index in (one, other):
            dedup.setup(index)
            run = [{"_index": index, "_id": str(number), "text": TEXT} for number in range(3)]
            helpers.bulk(es, dedup.enrich(run))
            es.indices.refresh(index=index)
        both = f"{one},{other}"
        (row,) = dedup.list(both).rows
        assert row.similar == dedup.similar(both, "0").total == 5
        assert {article.index for article in dedup.similar(both, "0", size=10).articles} == {one, other}
        plain = index_name("several-plain")
        es.indices.create(index=plain)
        for sort in ("newest", "similar-desc"):
            with pytest.raises(IndexNotReady, match="lacks fields"):
                dedup.list(f"{one},{plain}", sort=sort)
        with pytest.raises(IndexNotReady, match="there is no index"):
            dedup.list("test-no-such-*")
        with pytest.raises(SettingError, match="empty"):
            dedup.list("")
        with pytest.raises(SettingError, match="one index"):
            dedup.require_ready("test-several-*")


def test_an_alias_to_write_to(es: Elasticsearch, index_name: Names) -> None:
    one, other, alias = index_name("behind-a"), index_name("behind-b"), index_name("alias")
    dedup = Dedup(es, forest=index_name("forest"))
    for index in (one, other):
        dedup.setup(index)
        es.indices.put_alias(index=index, name=alias)
    with pytest.raises(IndexNotReady, match="none of them is its write index"):
        dedup.require_ready(alias)
    es.indices.put_alias(index=other, name=alias, is_write_index=True)
    dedup.require_ready(alias)

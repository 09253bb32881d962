"""A forest made anew from its articles."""

from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, Dedup, ForestError, ForestIncomplete, Maintenance, Profile, sample
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import Meta
from esdedup.elastic.forest.writer import ForestWriter
from tests.support import stream
from tests.support.forests import (
    ARTICLES,
    a_leaf,
    all_nodes,
    assert_rearrivals_are_known,
    feed,
    nodes,
    pages,
    roots,
    without_pages,
)
from tests.support.names import Names


@pytest.mark.parametrize("profile", [CLASSIC, VERIFIED], ids=lambda profile: profile.name)
def test_rebuilding_keeps_every_root(es: Elasticsearch, fed: tuple[str, str], profile: Profile) -> None:
    index, forest = fed
    before, nodes_before, pages_before = roots(es, index), nodes(es, forest), pages(es, forest)
    es.indices.delete(index=forest)
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.rebuild([index]) == len(nodes_before)
    assert without_pages(nodes(es, forest)) == without_pages(nodes_before)
    assert pages(es, forest) == pages_before
    assert list(maintenance.verify([index])) == []
    assert roots(es, index) == before
    assert_rearrivals_are_known(es, index, forest, profile)


def test_a_rebuilt_forest_keeps_boilerplate_if_its_articles_did(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    profile = VERIFIED.with_changes(keep_boilerplate=True)
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:40])
    es.indices.delete(index=forest)
    Maintenance(es, forest=forest).rebuild([index])
    with Dedup(es, forest=forest, profile=profile) as dedup:
        feed(es, dedup, index, ARTICLES[40:60])
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_rebuilt_in_the_middle_of_a_stream_it_goes_on_as_if_nothing_had_been(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=VERIFIED) as dedup:
        dedup.setup(index)
    middle = len(ARTICLES) // 2
    for part in (ARTICLES[:middle], ARTICLES[middle:]):
        with Dedup(es, forest=forest, profile=VERIFIED, batch_size=50) as dedup:
            feed(es, dedup, index, part)
        es.indices.delete(index=forest)
        Maintenance(es, forest=forest).rebuild([index])
    found = stream.indexed(es, index), stream.nodes(es, forest)
    assert found == stream.expected(sample.articles(len(ARTICLES)), VERIFIED)
    assert list(Maintenance(es, forest=forest).verify([index])) == []


def test_a_root_whose_article_was_deleted_is_made_again(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    leaf = a_leaf(nodes(es, forest))
    for hit in es.search(index=index, query={"term": {"dedup.fingerprint": leaf.root}}, size=100)["hits"][
        "hits"
    ]:
        es.delete(index=index, id=hit["_id"], refresh=True)
    es.indices.delete(index=forest)
    maintenance = Maintenance(es, forest=forest)
    maintenance.rebuild([index])
    found = nodes(es, forest)
    assert found[leaf.root].is_root
    assert found[leaf.id].root == leaf.root
    assert list(maintenance.verify([index])) == []


def test_a_rebuild_that_was_interrupted(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = fed
    before = nodes(es, forest)
    with pytest.raises(ForestError, match="there is a forest"):
        Maintenance(es, forest=forest).rebuild([index])

    def fail(self: ForestWriter, found: list[bytes], **how: Any) -> None:
        if found:
            write_whole(self, found[: len(found) // 2])
            raise ForestError("interrupted on purpose", forest=forest)
        write_whole(self, found, **how)

    write_whole = ForestWriter.write
    with monkeypatch.context() as patch:
        patch.setattr(ForestWriter, "write", fail)
        with pytest.raises(ForestError, match="interrupted on purpose"):
            Maintenance(es, forest=forest).rebuild([index], replace=True)
    made = ForestIndex(es, name=forest, meta=Meta.of(VERIFIED))
    assert 0 < len(list(all_nodes(made))) < len(before)
    with Dedup(es, forest=forest) as dedup, pytest.raises(ForestIncomplete, match="is being rebuilt"):
        list(dedup.enrich([{"_index": index, **ARTICLES[0]}]))
    with pytest.raises(ForestIncomplete, match="is being rebuilt"):
        list(Maintenance(es, forest=forest).verify([index]))
    Maintenance(es, forest=forest).rebuild([index])
    assert without_pages(nodes(es, forest)) == without_pages(before)

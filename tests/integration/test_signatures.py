"""Signatures of nodes and articles under `verified` that are lost, exchanged, or of another text."""

import base64
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import VERIFIED, Dedup, Maintenance, Profile
from esdedup.elastic.forest.stored import StoredNode
from esdedup.maintenance import ViolationKind
from tests.support.forests import (
    ARTICLES,
    a_leaf,
    document,
    feed_sample,
    kinds,
    nodes,
    pages,
    remove,
    roots,
    without_pages,
    write,
)
from tests.support.names import Names

pytestmark = pytest.mark.parametrize("profile", [VERIFIED], ids=lambda profile: profile.name)


def of_another_tree(found: dict[str, StoredNode], node: StoredNode) -> StoredNode:
    return next(other for other in found.values() if other.root != node.root)


def text_of(node: StoredNode) -> dict[str, Any]:
    """Return the query for the articles of a node's text."""
    return {"term": {"dedup.fingerprint": node.id}}


def lose_roots(es: Elasticsearch, forest: str, found: dict[str, StoredNode]) -> set[str]:
    """Delete every root that has leaves; return their ids."""
    lost = {node.root for node in found.values() if not node.is_root}
    remove(es, forest, *lost)
    return lost


def test_recreated_roots_take_a_leafs_signature_at_first(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = nodes(es, forest)
    lost = lose_roots(es, forest, before)
    maintenance = Maintenance(es, forest=forest)
    assert kinds(maintenance, index) >= {ViolationKind.ROOT_GONE, ViolationKind.NODE_GONE}
    repaired = maintenance.repair()
    assert repaired[ViolationKind.ROOT_GONE] == len(lost)
    # Other pages of the lost roots, which their articles bring back.
    assert set(repaired) <= {ViolationKind.ROOT_GONE, ViolationKind.STRAY_PAGE}
    made = nodes(es, forest)
    assert {each: node.root for each, node in made.items()} == {
        each: node.root for each, node in before.items()
    }
    for root in lost:
        leaves = {node.signature for node in before.values() if node.root == root != node.id}
        assert made[root].signature in leaves - {before[root].signature}
    # Nobody can tell from these what they were near, and no tree is taken for another's.
    assert maintenance.repair().total() == 0
    assert kinds(maintenance, index) == {ViolationKind.NODE_BEHIND}
    assert maintenance.repair([index])
    assert without_pages(nodes(es, forest)) == without_pages(before)
    assert list(maintenance.verify([index])) == []


def test_roots_are_recreated_from_articles_read_latest_first(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf's article comes before its root's, on the same page or on an earlier one."""
    index, forest = fed
    before, pages_before = nodes(es, forest), pages(es, forest)
    lost = lose_roots(es, forest, before)
    maintenance = Maintenance(es, forest=forest)
    with monkeypatch.context() as patch:
        patch.setattr("esdedup.elastic.limits.MAX_HITS", len(ARTICLES) // 3)
        repaired = maintenance.repair([index])
    assert repaired[ViolationKind.NODE_GONE] + repaired[ViolationKind.ARTICLE_ROOT_GONE] >= len(lost)
    assert without_pages(nodes(es, forest)) == without_pages(before)
    assert pages(es, forest) == pages_before
    assert list(maintenance.verify([index])) == []


def test_a_leaf_with_another_texts_signature(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = nodes(es, forest)
    leaf = a_leaf(before)
    write(es, forest, leaf._replace(signature=of_another_tree(before, leaf).signature))
    maintenance = Maintenance(es, forest=forest)
    found = {violation.kind: violation for violation in maintenance.verify()}
    assert found.keys() == {ViolationKind.UNLIKE_ROOT, ViolationKind.NOTHING_NEAR}
    assert found[ViolationKind.UNLIKE_ROOT].subject == leaf.id
    # The forest alone does not know better; its articles do.
    assert maintenance.repair().total() == 0
    assert kinds(maintenance, index) == found.keys() | {ViolationKind.NODE_BEHIND}
    assert maintenance.repair([index]) == {ViolationKind.NODE_BEHIND: 1}
    assert nodes(es, forest) == before
    assert list(maintenance.verify([index])) == []


def test_nodes_whose_documents_have_another_length(
    es: Elasticsearch, index_name: Names, profile: Profile
) -> None:
    """They stop neither articles nor a repair."""
    index, forest = feed_sample(es, index_name, profile, lookup="search")
    before = nodes(es, forest)
    one = a_leaf(before)
    other = next(node for node in before.values() if not node.is_root and node.root != one.root)
    for leaf, length in ((one, 8), (other, 105)):
        body = document(es, forest, leaf) | {"packed": base64.b64encode(bytes(length)).decode()}
        es.index(index=forest, id=leaf.id, document=body, refresh=True)
    maintenance = Maintenance(es, forest=forest)
    found = list(maintenance.verify([index]))
    assert {each.kind for each in found} == {ViolationKind.DAMAGED_NODE, ViolationKind.NODE_GONE}
    damaged = {each.subject for each in found if each.kind is ViolationKind.DAMAGED_NODE}
    assert damaged == {one.id, other.id}
    with Dedup(es, forest=forest) as dedup:
        for leaf in (one, other):
            query = {"bool": {"filter": {"term": {"dedup.root": leaf.root}}, "must_not": text_of(leaf)}}
            others = {hit["_id"] for hit in helpers.scan(es, index=index, query={"query": query})}
            again = dedup.enrich({"_index": index, **each} for each in ARTICLES if each["_id"] in others)
            assert {each["_source"]["dedup"]["root"] for each in again} == {leaf.root}
    assert not damaged & nodes(es, forest).keys()
    maintenance.repair([index])
    after = nodes(es, forest)
    assert [after[leaf.id] for leaf in (one, other)] == [one, other]
    assert list(maintenance.verify([index])) == []


def test_articles_whose_signature_is_not_their_fingerprints_stop_nothing(
    es: Elasticsearch, fed: tuple[str, str]
) -> None:
    index, forest = fed
    before, roots_before = nodes(es, forest), roots(es, index)
    leaf = a_leaf(before)
    wrong = {
        ARTICLES[0]["_id"]: of_another_tree(before, leaf).signature,
        ARTICLES[1]["_id"]: bytes(8),
        ARTICLES[2]["_id"]: b"",
    }
    for article, signature in wrong.items():
        change = {"dedup": {"signature": base64.b64encode(signature).decode()}}
        es.update(index=index, id=article, doc=change, refresh=True)
    maintenance = Maintenance(es, forest=forest)
    found = list(maintenance.verify([index]))
    assert {violation.subject for violation in found} == wrong.keys()
    assert {violation.kind for violation in found} == {ViolationKind.INVALID_RECORD}
    assert maintenance.repair([index]).total() == 0
    es.indices.delete(index=forest)
    maintenance.rebuild([index])
    assert kinds(maintenance, index) == {ViolationKind.INVALID_RECORD}
    # What other articles tell is there as it was.
    rebuilt = nodes(es, forest)
    told = {
        hit["_source"]["dedup"]["fingerprint"]
        for hit in helpers.scan(es, index=index, _source=["dedup.fingerprint"])
        if hit["_id"] not in wrong
    }
    assert {each: rebuilt[each].root for each in told} == {each: before[each].root for each in told}
    assert roots(es, index) == roots_before

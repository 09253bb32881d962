"""Damage to a forest and its articles: it is found, and repaired where that can be done."""

from collections.abc import Callable
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, ArticleNotFound, Dedup, Maintenance, Profile, Reader, ViolationKind
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.stored import StoredNode, StoredPage
from esdedup.times import DAY_MS
from tests.support.forests import (
    ARTICLES,
    TEXT,
    a_leaf,
    assert_rearrivals_are_known,
    classic_node,
    document,
    feed,
    kinds,
    nodes,
    pages,
    roots,
    write,
)
from tests.support.names import Names


def root_gone(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    es.delete(index=forest, id=a_leaf(found).root, refresh=True)


def leaf_gone(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    es.delete(index=forest, id=a_leaf(found).id, refresh=True)


def root_seen_too_low(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    root = found[a_leaf(found).root]
    write(es, forest, root._replace(seen_ms=root.seen_ms - DAY_MS))


def leaf_before_root(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    root = found[a_leaf(found).root]
    write(es, forest, root._replace(seq=10_000))


def wrong_keys(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    one, other = list(found.values())[:2]
    # The keys of two nodes exchanged, as a slip by one would.
    for node, wrong in ((one, other), (other, one)):
        keys = document(es, forest, wrong)["keys"]
        es.index(index=forest, id=node.id, document=document(es, forest, node) | {"keys": keys}, refresh=True)


def wrong_mark(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    leaf = a_leaf(found)
    body = document(es, forest, leaf) | {"leaf": False}
    es.index(index=forest, id=leaf.id, document=body, refresh=True)


def without(name: str) -> Callable[..., None]:
    def damage(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
        leaf = a_leaf(found)
        body = document(es, forest, leaf)
        del body[name]
        es.index(index=forest, id=leaf.id, document=body, refresh=True)

    damage.__name__ = f"no_{name}"
    return damage


no_number, no_root, no_content = without("seq"), without("root"), without("packed")


def no_hex(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    body = document(es, forest, a_leaf(found))
    es.index(index=forest, id="what is this", document=body, refresh=True)


def root_hung_under_another(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    root = found[a_leaf(found).root]
    other = next(node for node in found.values() if node.is_root and node.seq < root.seq)
    write(es, forest, root._replace(root=other.id))


def two_things_at_once(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    root = found[a_leaf(found).root]
    write(es, forest, root._replace(seen_ms=root.seen_ms - DAY_MS, seq=10_000))


def tree_torn_apart(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    leaf = a_leaf(found)
    write(es, forest, leaf._replace(root=leaf.id))


def article_misplaced(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    one, other = (node for node in list(found.values())[:2])
    article = es.search(index=index, query={"term": {"dedup.fingerprint": one.id}})["hits"]["hits"][0]
    assert article["_source"]["dedup"]["root"] == one.root != other.root
    es.update(index=index, id=article["_id"], doc={"dedup": {"root": other.root}}, refresh=True)


def page_forgotten(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    write(es, forest, a_leaf(found)._replace(page=""))


def page_without_node(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    leaf = a_leaf(found)
    page = StoredPage(leaf.page, "0" * len(leaf.id), leaf.page_seen_ms)
    write(es, forest, leaf._replace(page=""), page)


def page_under_another_root(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    leaf = a_leaf(found)
    other = next(node for node in found.values() if node.root != leaf.root)
    write(es, forest, leaf._replace(page=""), StoredPage(leaf.page, other.id, leaf.page_seen_ms))


def page_of_another_node(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    leaf = a_leaf(found)
    other = next(node for node in found.values() if node.root != leaf.root)
    write(es, forest, leaf._replace(page=""), other._replace(page=leaf.page))


DAMAGES = {
    root_gone: {
        *(ViolationKind.ROOT_GONE, ViolationKind.ARTICLE_ROOT_GONE, ViolationKind.NODE_GONE),
        # If the root had several.
        ViolationKind.STRAY_PAGE,
    },
    page_forgotten: {ViolationKind.PAGE_BEHIND},
    page_without_node: {ViolationKind.PAGE_BEHIND, ViolationKind.STRAY_PAGE},
    page_under_another_root: {ViolationKind.PAGE_BEHIND},
    page_of_another_node: {ViolationKind.PAGE_BEHIND},
    leaf_gone: {ViolationKind.NODE_GONE},
    root_seen_too_low: {ViolationKind.ROOT_SEEN_TOO_LOW, ViolationKind.NODE_BEHIND},
    leaf_before_root: {ViolationKind.LEAF_BEFORE_ROOT, ViolationKind.NODE_BEHIND},
    wrong_keys: {ViolationKind.UNFINDABLE},
    wrong_mark: {ViolationKind.UNFINDABLE},
    no_number: {ViolationKind.UNFINDABLE},
    no_root: {ViolationKind.UNFINDABLE},
    no_content: {ViolationKind.DAMAGED_NODE, ViolationKind.NODE_GONE},
    no_hex: {ViolationKind.DAMAGED_NODE},
    root_hung_under_another: {ViolationKind.ROOT_IS_LEAF, ViolationKind.TWO_ROOTS},
    two_things_at_once: {
        *(ViolationKind.ROOT_SEEN_TOO_LOW, ViolationKind.LEAF_BEFORE_ROOT, ViolationKind.NODE_BEHIND)
    },
    tree_torn_apart: {ViolationKind.NEAR_ROOTS, ViolationKind.TWO_ROOTS},
    article_misplaced: {ViolationKind.TWO_ROOTS},
}


@pytest.mark.parametrize(
    ("damage", "profile"),
    [
        *((damage, CLASSIC) for damage in DAMAGES),
        *((damage, VERIFIED) for damage in (root_gone, wrong_keys, tree_torn_apart)),
    ],
    ids=lambda each: each.name if isinstance(each, Profile) else each.__name__,
)
def test_damage_is_found_and_repaired(
    es: Elasticsearch, fed: tuple[str, str], profile: Profile, damage: Callable[..., None]
) -> None:
    index, forest = fed
    before, pages_before = roots(es, index), pages(es, forest)
    damage(es, index, forest, nodes(es, forest))
    maintenance = Maintenance(es, forest=forest)
    found = list(maintenance.verify([index]))
    assert {violation.kind for violation in found} & DAMAGES[damage]
    assert {violation.kind for violation in found} <= DAMAGES[damage] | {ViolationKind.NOTHING_NEAR}
    # Feeding goes on meanwhile.
    with Dedup(es, forest=forest, profile=profile) as dedup:
        list(dedup.enrich({"_index": index, **article} for article in ARTICLES[:5]))
    assert maintenance.repair([index]).total()
    assert list(maintenance.verify([index])) == []
    assert roots(es, index) == before
    assert_rearrivals_are_known(es, index, forest, profile)
    assert pages(es, forest) == pages_before


def test_what_was_repaired_once_is_looked_at_again(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = roots(es, index)
    maintenance = Maintenance(es, forest=forest)
    for damage in (leaf_gone, tree_torn_apart, leaf_gone, root_gone, tree_torn_apart):
        damage(es, index, forest, nodes(es, forest))
        assert maintenance.repair([index]).total()
        assert list(maintenance.verify([index])) == []
        assert roots(es, index) == before


def test_a_fingerprint_that_an_earlier_text_left_is_removed(es: Elasticsearch, fed: tuple[str, str]) -> None:
    """An update merges objects: without nulls, the fields of the earlier text stay."""
    index, forest = fed
    (hit,) = es.search(index=index, size=1, query={"exists": {"field": "dedup.signature"}})["hits"]["hits"]
    lone = "~" + hit["_source"]["dedup"]["root"]
    es.update(index=index, id=hit["_id"], doc={"dedup": {"root": lone}}, refresh=True)
    maintenance = Maintenance(es, forest=forest)
    (found,) = maintenance.verify([index])
    assert (found.kind, found.subject) == (ViolationKind.INVALID_RECORD, hit["_id"])
    assert maintenance.repair([index]) == {ViolationKind.INVALID_RECORD: 1}
    assert list(maintenance.verify([index])) == []
    stored = es.get(index=index, id=hit["_id"])["_source"]["dedup"]
    assert [stored[name] for name in ("root", "fingerprint", "signature", "bands")] == [
        lone,
        None,
        None,
        None,
    ]


# A page of which nothing but a short text is left, so it has no fingerprint.
BARE, FED = {"_id": "bare", "text": "Ok"}, {"_id": "fed", "text": TEXT}


def bare_page_forgotten(es: Elasticsearch, forest: str, bare: StoredPage, other: StoredNode) -> None:
    es.delete(index=forest, id=bare.document_id, refresh=True)


def bare_page_damaged(es: Elasticsearch, forest: str, bare: StoredPage, other: StoredNode) -> None:
    body = {name: value for name, value in document(es, forest, bare).items() if name != "page"}
    es.index(index=forest, id=bare.document_id, document=body, refresh=True)


def bare_page_seen_too_low(es: Elasticsearch, forest: str, bare: StoredPage, other: StoredNode) -> None:
    write(es, forest, bare._replace(seen_ms=bare.seen_ms - DAY_MS))


def bare_page_with_a_node(es: Elasticsearch, forest: str, bare: StoredPage, other: StoredNode) -> None:
    write(es, forest, bare._replace(node=other.id))


def bare_page_of_a_node(es: Elasticsearch, forest: str, bare: StoredPage, other: StoredNode) -> None:
    es.delete(index=forest, id=bare.document_id)
    write(es, forest, other._replace(page=bare.page), StoredPage(other.page, other.id, other.seen_ms))


def page_without_its_node(es: Elasticsearch, forest: str, bare: StoredPage, other: StoredNode) -> None:
    write(es, forest, other._replace(page=""), StoredPage(other.page, None, other.seen_ms))


@pytest.mark.parametrize(
    "damage",
    [
        *(bare_page_forgotten, bare_page_damaged, bare_page_seen_too_low),
        *(bare_page_with_a_node, bare_page_of_a_node, page_without_its_node),
    ],
)
def test_damage_to_pages_without_a_fingerprint_is_found_and_repaired(
    es: Elasticsearch, index_name: Names, damage: Callable[..., None]
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [BARE, FED])
    maintenance = Maintenance(es, forest=forest)
    assert list(maintenance.verify([index])) == []
    remembered = pages(es, forest)
    ((page, seen_ms),) = ((page, seen_ms) for page, node, seen_ms in remembered if node is None)
    (other,) = nodes(es, forest).values()
    damage(es, forest, StoredPage(f"{page:016x}", None, seen_ms), other)
    (found,) = maintenance.verify([index])
    assert found.kind is ViolationKind.PAGE_BEHIND
    assert maintenance.repair([index]) == {ViolationKind.PAGE_BEHIND: 1}
    assert list(maintenance.verify([index])) == []
    assert pages(es, forest) == remembered


def test_invalid_records_stop_no_repair(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    for article, change in (
        (ARTICLES[-1], {"fingerprint": "no hex"}),
        (ARTICLES[-2], {"root": "what is this"}),
    ):
        es.update(index=index, id=article["_id"], doc={"dedup": change}, refresh=True)
    leaf_gone(es, index, forest, nodes(es, forest))
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.repair([index])[ViolationKind.NODE_GONE]
    assert [violation.kind for violation in maintenance.verify([index])] == [ViolationKind.INVALID_RECORD] * 2


@pytest.mark.parametrize("profile", [VERIFIED])
def test_one_article_with_values_of_other_types_ends_nothing(
    es: Elasticsearch, fed: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    index, forest = fed
    damaged, other = (article["_id"] for article in ARTICLES[:2])
    source = es.get(index=index, id=damaged)["_source"]
    maintenance, reader = Maintenance(es, forest=forest), Reader(es)
    odd: dict[str, list[Any]] = {
        "root": ["", 5, ["a", "b"], []],
        "seq": [1.5, [1, 2], "1e3"],
        "fingerprint": ["", ["a", "b"]],
        "page": ["", "no hex", ["a", "b"]],
    }
    for name, value in ((name, value) for name, values in odd.items() for value in values):
        changed = source | {"dedup": source["dedup"] | {name: value}}
        es.index(index=index, id=damaged, document=changed, refresh=True)
        # Elasticsearch cannot collapse articles with two roots.
        for sort in ("oldest", "similar-asc") if (name, value) != ("root", ["a", "b"]) else ():
            assert len(reader.list(index, sort=sort, size=50).rows) == 50, (name, value, sort)
        assert maintenance.explain(index, damaged, other).one.id == damaged
        if value not in (1.5, "1e3"):
            # These are the whole numbers 1 and 1,000 in the index.
            found = [(each.kind, each.subject) for each in maintenance.verify([index])]
            expected = (ViolationKind.INVALID_RECORD, damaged)
            if (name, value) == ("root", []):
                expected = (ViolationKind.NO_ROOT, "1 articles")
            assert found == [expected], (name, value, found)
        if name == "root" and not value:
            with pytest.raises(ArticleNotFound, match="has no root"):
                reader.article(index, damaged)
        else:
            assert reader.timeline(index, reader.article(index, damaged).root or "").steps
    changed = source | {"dedup": source["dedup"] | {"root": ""}}
    es.index(index=index, id=damaged, document=changed, refresh=True)
    assert not maintenance.repair([index])
    maintenance.rebuild([index], replace=True)
    assert f"without 1 articles with invalid records, such as '{damaged}'" in caplog.text


def test_what_cannot_be_repaired_is_reported(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    es.index(index=index, id="plain", document={"text": "没有经过任何处理的文章"}, refresh=True)
    article = next(iter(roots(es, index)))
    es.update(index=index, id=article, doc={"dedup": {"profile": "keywords-2"}}, refresh=True)
    other = ARTICLES[5]["_id"]
    es.update(index=index, id=other, doc={"dedup": {"bands": ["000000000"]}}, refresh=True)
    maintenance = Maintenance(es, forest=forest)
    expected = {ViolationKind.NO_ROOT, ViolationKind.OTHER_PROFILE, ViolationKind.WRONG_BANDS}
    assert kinds(maintenance, index) == expected
    assert maintenance.repair([index]).total() == 0
    assert kinds(maintenance, index) == expected


@pytest.mark.parametrize("profile", [CLASSIC])
def test_a_leaf_far_from_all_of_its_tree(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    found = nodes(es, forest)
    root, other = [node for node in found.values() if node.is_root][:2]
    write(es, forest, classic_node("0123456789abcdef", root.id, seq=20_000, ms=root.seen_ms))
    assert kinds(Maintenance(es, forest=forest), index) == {ViolationKind.NOTHING_NEAR}
    assert other.is_root


def test_a_root_made_again_of_a_leaf_is_not_taken_for_near_to_others(
    es: Elasticsearch, index_name: Names
) -> None:
    """The leaf lay between two roots, and had chosen the earlier one."""
    forest = index_name("forest")
    ForestIndex.open(es, forest, profile=CLASSIC)
    lost, other, leaf = (f"{simhash:016x}" for simhash in (0b111, 0b111 << 16, 0))
    tree = [(other, other, 2), (leaf, lost, 3)]
    write(es, forest, *(classic_node(node_id, root, seq=seq, ms=DAY_MS) for node_id, root, seq in tree))
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.repair() == {ViolationKind.ROOT_GONE: 1}
    assert list(maintenance.verify()) == []
    assert maintenance.repair().total() == 0
    assert {node.id: node.root for node in nodes(es, forest).values()} == {
        lost: lost,
        other: other,
        leaf: lost,
    }

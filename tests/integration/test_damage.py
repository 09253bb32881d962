"""Damage to a forest and its articles: it is found, and mended where that can be done."""

from collections.abc import Callable

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, BreachKind, Dedup, Profile, Upkeep
from esdedup.elastic.forest_index import ForestIndex
from esdedup.elastic.nodes import StoredNode
from tests.forests import (
    ARTICLES,
    DAY_MS,
    Names,
    a_leaf,
    assert_rearrivals_are_known,
    classic_node,
    document,
    kinds,
    nodes,
    roots,
    write,
)


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


no_number, no_root, no_signature = without("seq"), without("root"), without("signature")


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


def article_relabelled(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    one, other = (node for node in list(found.values())[:2])
    article = es.search(index=index, query={"term": {"dedup.fingerprint": one.id}})["hits"]["hits"][0]
    assert article["_source"]["dedup"]["root"] == one.root != other.root
    es.update(index=index, id=article["_id"], doc={"dedup": {"root": other.root}}, refresh=True)


DAMAGES = {
    root_gone: {BreachKind.ROOT_GONE, BreachKind.ARTICLE_ROOT_GONE, BreachKind.NODE_GONE},
    leaf_gone: {BreachKind.NODE_GONE},
    root_seen_too_low: {BreachKind.ROOT_SEEN_TOO_LOW, BreachKind.NODE_BEHIND},
    leaf_before_root: {BreachKind.LEAF_BEFORE_ROOT, BreachKind.NODE_BEHIND},
    wrong_keys: {BreachKind.NOT_TO_BE_FOUND},
    wrong_mark: {BreachKind.NOT_TO_BE_FOUND},
    no_number: {BreachKind.NO_NODE, BreachKind.NODE_GONE},
    no_root: {BreachKind.NO_NODE, BreachKind.NODE_GONE},
    no_signature: {BreachKind.NO_NODE, BreachKind.NODE_GONE},
    no_hex: {BreachKind.NO_NODE},
    root_hung_under_another: {BreachKind.ROOT_IS_LEAF, BreachKind.TWO_ROOTS},
    two_things_at_once: {
        *(BreachKind.ROOT_SEEN_TOO_LOW, BreachKind.LEAF_BEFORE_ROOT, BreachKind.NODE_BEHIND)
    },
    tree_torn_apart: {BreachKind.NEAR_ROOTS, BreachKind.TWO_ROOTS},
    article_relabelled: {BreachKind.TWO_ROOTS},
}


@pytest.mark.parametrize(
    ("damage", "profile"),
    [
        *((damage, CLASSIC) for damage in DAMAGES),
        *((damage, VERIFIED) for damage in (root_gone, wrong_keys, tree_torn_apart)),
    ],
    ids=lambda each: each.name if isinstance(each, Profile) else each.__name__,
)
def test_damage_is_found_and_mended(
    es: Elasticsearch, fed: tuple[str, str], profile: Profile, damage: Callable[..., None]
) -> None:
    index, forest = fed
    before = roots(es, index)
    damage(es, index, forest, nodes(es, forest))
    upkeep = Upkeep(es, forest=forest)
    found = list(upkeep.verify([index]))
    assert {breach.kind for breach in found} & DAMAGES[damage]
    assert {breach.kind for breach in found} <= DAMAGES[damage] | {BreachKind.NOTHING_NEAR}
    # Whoever feeds meanwhile is not thrown out.
    with Dedup(es, forest=forest, profile=profile) as dedup:
        list(dedup.enrich({"_index": index, **article} for article in ARTICLES[:5]))
    assert upkeep.repair([index]).total()
    # What a damaged document was, its articles tell the next time.
    if BreachKind.NO_NODE in DAMAGES[damage]:
        upkeep.repair([index])
    assert list(upkeep.verify([index])) == []
    assert roots(es, index) == before
    assert_rearrivals_are_known(es, index, forest, profile)


def test_what_was_mended_once_is_looked_at_again(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = roots(es, index)
    upkeep = Upkeep(es, forest=forest)
    for damage in (leaf_gone, tree_torn_apart, leaf_gone, root_gone, tree_torn_apart):
        damage(es, index, forest, nodes(es, forest))
        assert upkeep.repair([index]).total()
        assert list(upkeep.verify([index])) == []
        assert roots(es, index) == before


def test_labels_that_make_no_sense_stop_nothing(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    for article, change in (
        (ARTICLES[-1], {"fingerprint": "no hex"}),
        (ARTICLES[-2], {"root": "what is this"}),
    ):
        es.update(index=index, id=article["_id"], doc={"dedup": change}, refresh=True)
    leaf_gone(es, index, forest, nodes(es, forest))
    upkeep = Upkeep(es, forest=forest)
    assert upkeep.repair([index])[BreachKind.NODE_GONE]
    assert [breach.kind for breach in upkeep.verify([index])] == [BreachKind.NO_LABEL] * 2


def test_what_nobody_can_mend_is_said(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    es.index(index=index, id="plain", document={"text": "没有经过任何处理的文章"}, refresh=True)
    article = next(iter(roots(es, index)))
    es.update(index=index, id=article, doc={"dedup": {"profile": "keywords-1"}}, refresh=True)
    other = ARTICLES[5]["_id"]
    es.update(index=index, id=other, doc={"dedup": {"bands": ["000000000"]}}, refresh=True)
    upkeep = Upkeep(es, forest=forest)
    expected = {BreachKind.NO_ROOT, BreachKind.OTHER_PROFILE, BreachKind.WRONG_BANDS}
    assert kinds(upkeep, index) == expected
    assert upkeep.repair([index]).total() == 0
    assert kinds(upkeep, index) == expected


@pytest.mark.parametrize("profile", [CLASSIC])
def test_a_leaf_far_from_all_of_its_tree(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    found = nodes(es, forest)
    root, other = [node for node in found.values() if node.is_root][:2]
    write(es, forest, classic_node("0123456789abcdef", root.id, seq=20_000, ms=root.seen_ms))
    assert kinds(Upkeep(es, forest=forest), index) == {BreachKind.NOTHING_NEAR}
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
    upkeep = Upkeep(es, forest=forest)
    assert upkeep.repair() == {BreachKind.ROOT_GONE: 1}
    assert list(upkeep.verify()) == []
    assert upkeep.repair().total() == 0
    assert {node.id: node.root for node in nodes(es, forest).values()} == {
        lost: lost,
        other: other,
        leaf: lost,
    }

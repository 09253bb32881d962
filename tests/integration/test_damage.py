"""Damage to a forest and its articles is found and, where possible, repaired."""

import base64
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, VERIFIED, ArticleNotFound, Dedup, Maintenance, Profile, Reader
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.forest.stored import StoredHash, StoredNode
from esdedup.maintenance import ViolationKind
from esdedup.times import DAY_MS
from tests.support.forests import (
    ARTICLES,
    assert_rearrivals_are_known,
    classic_node,
    document,
    feed,
    hashes,
    in_both_lookups,
    kinds,
    nodes,
    remove,
    roots,
    write,
)
from tests.support.names import Names

Damage = Callable[[Elasticsearch, str, str, "Tree"], None]
Damages = dict[Damage, set[ViolationKind]]


class Tree(NamedTuple):
    """A tree to be damaged, and an unrelated root."""

    root: StoredNode
    leaf: StoredNode
    # The unrelated root, which is older than `root`.
    other: StoredNode


def trees(found: dict[str, StoredNode]) -> Iterator[Tree]:
    """Yield trees without common nodes."""
    leaves: dict[str, StoredNode] = {}
    for node in found.values():
        if not node.is_root:
            leaves.setdefault(node.root, node)
    alone = sorted((node for node in found.values() if node.is_root and node.id not in leaves), key=by_seq)
    latest_first = sorted((found[root] for root in leaves), key=by_seq, reverse=True)
    for root, other in zip(latest_first, alone, strict=False):
        assert other.seq < root.seq
        yield Tree(root, leaves[root.id], other)


def by_seq(node: StoredNode) -> int:
    return node.seq


def root_gone(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    remove(es, forest, tree.root.id)


def leaf_gone(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    remove(es, forest, tree.leaf.id)


def root_seen_too_low(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    write(es, forest, tree.root._replace(seen_ms=tree.root.seen_ms - DAY_MS))


def leaf_before_root(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    write(es, forest, tree.root._replace(seq=10_000))


def wrong_keys(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    # Exchange the keys of two nodes, as an off-by-one error would.
    for node, wrong in ((tree.leaf, tree.root), (tree.root, tree.leaf)):
        keys = document(es, forest, wrong)["keys"]
        es.index(index=forest, id=node.id, document=document(es, forest, node) | {"keys": keys}, refresh=True)


def wrong_leaf_flag(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    body = document(es, forest, tree.leaf) | {"leaf": False}
    es.index(index=forest, id=tree.leaf.id, document=body, refresh=True)


def without(name: str) -> Damage:
    def damage(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
        body = document(es, forest, tree.leaf)
        del body[name]
        es.index(index=forest, id=tree.leaf.id, document=body, refresh=True)

    return damage


no_seq, no_root, no_packed = without("seq"), without("root"), without("packed")


def id_not_hex(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    es.index(index=forest, id="what is this", document=document(es, forest, tree.leaf), refresh=True)


def root_moved_to_another_tree(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    write(es, forest, tree.root._replace(root=tree.other.id))


def two_errors_at_once(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    write(es, forest, tree.root._replace(seen_ms=tree.root.seen_ms - DAY_MS, seq=10_000))


def tree_split(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    write(es, forest, tree.leaf._replace(root=tree.leaf.id))


def article_misplaced(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    query = {"term": {"dedup.fingerprint": tree.leaf.id}}
    article = es.search(index=index, query=query)["hits"]["hits"][0]
    es.update(index=index, id=article["_id"], doc={"dedup": {"root": tree.other.root}}, refresh=True)


def hash_missing(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    write(es, forest, tree.leaf._replace(content_hash=""))


def hash_without_node(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    stored = StoredHash(tree.leaf.content_hash, "0" * len(tree.leaf.id), tree.leaf.hash_seen_ms)
    write(es, forest, tree.leaf._replace(content_hash=""), stored)


def hash_under_another_root(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    stored = StoredHash(tree.leaf.content_hash, tree.other.id, tree.leaf.hash_seen_ms)
    write(es, forest, tree.leaf._replace(content_hash=""), stored)


def hash_of_another_node(es: Elasticsearch, index: str, forest: str, tree: Tree) -> None:
    without = tree.leaf._replace(content_hash="")
    write(es, forest, without, tree.other._replace(content_hash=tree.leaf.content_hash))


# In each table: the kinds of violations that may be reported for each kind of damage.
NODES_GONE: Damages = {
    root_gone: {
        *(ViolationKind.ROOT_GONE, ViolationKind.ARTICLE_ROOT_GONE, ViolationKind.NODE_GONE),
        # This kind is reported if the root had several content hashes.
        ViolationKind.STRAY_PAGE,
    },
    leaf_gone: {ViolationKind.NODE_GONE},
    no_packed: {ViolationKind.DAMAGED_NODE, ViolationKind.NODE_GONE},
    id_not_hex: {ViolationKind.DAMAGED_NODE},
}
NODES_CHANGED: Damages = {
    root_seen_too_low: {ViolationKind.ROOT_SEEN_TOO_LOW, ViolationKind.NODE_BEHIND},
    leaf_before_root: {ViolationKind.LEAF_BEFORE_ROOT, ViolationKind.NODE_BEHIND},
    two_errors_at_once: {
        *(ViolationKind.ROOT_SEEN_TOO_LOW, ViolationKind.LEAF_BEFORE_ROOT, ViolationKind.NODE_BEHIND)
    },
    wrong_keys: {ViolationKind.UNFINDABLE},
    wrong_leaf_flag: {ViolationKind.UNFINDABLE},
    no_seq: {ViolationKind.UNFINDABLE},
    no_root: {ViolationKind.UNFINDABLE},
}
TREES_AND_HASHES: Damages = {
    root_moved_to_another_tree: {ViolationKind.ROOT_IS_LEAF, ViolationKind.TWO_ROOTS},
    tree_split: {ViolationKind.NEAR_ROOTS, ViolationKind.TWO_ROOTS},
    article_misplaced: {ViolationKind.TWO_ROOTS},
    hash_missing: {ViolationKind.PAGE_BEHIND},
    hash_without_node: {ViolationKind.PAGE_BEHIND, ViolationKind.STRAY_PAGE},
    hash_under_another_root: {ViolationKind.PAGE_BEHIND},
    hash_of_another_node: {ViolationKind.PAGE_BEHIND},
}
ONE_OF_EACH: Damages = {
    root_gone: NODES_GONE[root_gone],
    wrong_keys: NODES_CHANGED[wrong_keys],
    tree_split: TREES_AND_HASHES[tree_split],
}


# Damage that is possible only if each node has its own document.
DOCUMENT_DAMAGE = {wrong_keys, wrong_leaf_flag, no_seq, no_root, no_packed, id_not_hex}


@pytest.mark.parametrize(
    ("damages", "profile"),
    [(NODES_GONE, CLASSIC), (NODES_CHANGED, CLASSIC), (TREES_AND_HASHES, CLASSIC), (ONE_OF_EACH, VERIFIED)],
    ids=["nodes gone", "nodes changed", "trees and content hashes", "verified"],
)
@in_both_lookups
def test_damage_is_found_and_repaired(
    es: Elasticsearch, fed: tuple[str, str], profile: Profile, damages: Damages, lookup: Lookup
) -> None:
    """Each damage is done to a different tree."""
    index, forest = fed
    if lookup == "memory":
        damages = {damage: shown for damage, shown in damages.items() if damage not in DOCUMENT_DAMAGE}
    before, hashes_before, found = roots(es, index), hashes(es, forest), nodes(es, forest)
    # The damage done to each node, content hash or article, by its id.
    damage_of: dict[str, Damage] = {"what is this": id_not_hex}
    for damage, tree in zip(damages, trees(found), strict=False):
        damage(es, index, forest, tree)
        damage_of |= dict.fromkeys([tree.root.id, tree.other.id], damage)
    assert len(set(damage_of.values()) | {id_not_hex}) == len({*damages, id_not_hex})
    damage_of |= {node.id: damage_of[node.root] for node in found.values() if node.root in damage_of}
    damage_of |= {f"page-{n:016x}": damage_of[node] for n, node, _ in hashes_before if node in damage_of}
    damage_of |= {article: damage_of[root] for article, root in before.items() if root in damage_of}
    maintenance = Maintenance(es, forest=forest)
    shown: dict[Damage, set[ViolationKind]] = {damage: set() for damage in damages}
    for violation in maintenance.verify([index]):
        shown[damage_of[violation.subject]].add(violation.kind)
    for damage, kinds_shown in shown.items():
        assert kinds_shown & damages[damage], damage
        assert kinds_shown <= damages[damage] | {ViolationKind.NOTHING_NEAR}, damage
    # The damaged forest still accepts articles.
    with Dedup(es, forest=forest, profile=profile) as dedup:
        list(dedup.enrich({"_index": index, **article} for article in ARTICLES[:5]))
    assert maintenance.repair([index]).total()
    assert list(maintenance.verify([index])) == []
    assert roots(es, index) == before
    assert_rearrivals_are_known(es, index, forest, profile)
    # Articles have arrived again, so their content hashes may have been seen later than before.
    after, earlier = (
        {(name, node): seen for name, node, seen in each} for each in (hashes(es, forest), hashes_before)
    )
    assert after.keys() == earlier.keys()
    assert all(after[each] >= seen_ms for each, seen_ms in earlier.items())


def bare_hash_missing(es: Elasticsearch, forest: str, bare: StoredHash, other: StoredNode) -> None:
    remove(es, forest, bare.document_id)


def bare_hash_damaged(es: Elasticsearch, forest: str, bare: StoredHash, other: StoredNode) -> None:
    body = {name: value for name, value in document(es, forest, bare).items() if name != "page"}
    es.index(index=forest, id=bare.document_id, document=body, refresh=True)


def bare_hash_seen_too_low(es: Elasticsearch, forest: str, bare: StoredHash, other: StoredNode) -> None:
    write(es, forest, bare._replace(seen_ms=bare.seen_ms - DAY_MS))


def bare_hash_with_a_node(es: Elasticsearch, forest: str, bare: StoredHash, other: StoredNode) -> None:
    write(es, forest, bare._replace(node=other.id))


def bare_hash_of_a_node(es: Elasticsearch, forest: str, bare: StoredHash, other: StoredNode) -> None:
    remove(es, forest, bare.document_id)
    extra = StoredHash(other.content_hash, other.id, other.seen_ms)
    write(es, forest, other._replace(content_hash=bare.content_hash), extra)


def hash_without_its_node(es: Elasticsearch, forest: str, bare: StoredHash, other: StoredNode) -> None:
    write(es, forest, other._replace(content_hash=""), StoredHash(other.content_hash, None, other.seen_ms))


@in_both_lookups
def test_damaged_hashes_without_a_fingerprint_are_repaired(
    es: Elasticsearch, index_name: Names, lookup: Lookup
) -> None:
    """Each kind of damage is done to two content hashes, one of a text too short for a fingerprint."""
    damages = {
        "Ok": bare_hash_missing,
        "No": bare_hash_damaged,
        "Ah": bare_hash_seen_too_low,
        "Oh": bare_hash_with_a_node,
        "So": bare_hash_of_a_node,
        "Hm": hash_without_its_node,
    }
    if lookup == "memory":
        del damages["No"]
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, lookup=lookup) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": text, "text": text} for text in damages])
        feed(es, dedup, index, ARTICLES[: len(damages)])
    maintenance = Maintenance(es, forest=forest)
    assert list(maintenance.verify([index])) == []
    remembered, found = hashes(es, forest), nodes(es, forest)
    seen_ms = {name: seen_ms for name, node, seen_ms in remembered if node is None}
    expected = set()
    for (text, damage), article in zip(damages.items(), ARTICLES, strict=False):
        bare, other = (es.get(index=index, id=each)["_source"]["dedup"] for each in (text, article["_id"]))
        stored = StoredHash(bare["page"], None, seen_ms[int(bare["page"], 16)])
        damage(es, forest, stored, found[other["fingerprint"]])
        expected.add(article["_id"] if damage is hash_without_its_node else text)
    violations = list(maintenance.verify([index]))
    assert {violation.subject for violation in violations} == expected
    assert [violation.kind for violation in violations] == [ViolationKind.PAGE_BEHIND] * len(damages)
    assert maintenance.repair([index]) == {ViolationKind.PAGE_BEHIND: len(damages)}
    assert list(maintenance.verify([index])) == []
    assert hashes(es, forest) == remembered


def test_invalid_records_do_not_prevent_a_repair(es: Elasticsearch, fed: tuple[str, str]) -> None:
    """Violations that cannot be repaired are reported before and after the repair."""
    index, forest = fed
    tree = next(trees(nodes(es, forest)))
    leaf_gone(es, index, forest, tree)
    others = (name for name, root in roots(es, index).items() if root not in (tree.root.id, tree.other.id))
    bad_fingerprint, bad_root, other_profile, wrong_bands, outdated = itertools.islice(others, 5)
    # An update merges objects, so fields of the earlier text stay unless they are set to null.
    lone = "~" + es.get(index=index, id=outdated)["_source"]["dedup"]["root"]
    for article, change in {
        bad_fingerprint: {"fingerprint": "not hex"},
        bad_root: {"root": "what is this"},
        other_profile: {"profile": "keywords-4"},
        wrong_bands: {"bands": ["000000000"]},
        outdated: {"root": lone},
    }.items():
        es.update(index=index, id=article, doc={"dedup": change}, refresh=True)
    es.index(index=index, id="plain", document={"text": "没有经过任何处理的文章"}, refresh=True)
    beyond_repair = {
        (ViolationKind.INVALID_RECORD, bad_fingerprint),
        (ViolationKind.INVALID_RECORD, bad_root),
        (ViolationKind.OTHER_PROFILE, other_profile),
        (ViolationKind.WRONG_BANDS, wrong_bands),
        (ViolationKind.NO_ROOT, "1 articles"),
    }
    maintenance = Maintenance(es, forest=forest)
    found = [(each.kind, each.subject) for each in maintenance.verify([index])]
    gone = [(kind, article) for kind, article in found if kind is ViolationKind.NODE_GONE]
    assert gone
    assert len(found) == len(gone) + 1 + len(beyond_repair)
    assert {*found} == {*gone, (ViolationKind.INVALID_RECORD, outdated), *beyond_repair}
    repaired = maintenance.repair([index])
    assert repaired == {ViolationKind.NODE_GONE: len(gone), ViolationKind.INVALID_RECORD: 1}
    assert {(each.kind, each.subject) for each in maintenance.verify([index])} == beyond_repair
    stored = es.get(index=index, id=outdated)["_source"]["dedup"]
    names = ("root", "fingerprint", "signature", "bands")
    assert [stored[name] for name in names] == [lone, None, None, None]


@pytest.mark.parametrize("profile", [VERIFIED])
def test_wrongly_typed_values_break_neither_reading_nor_maintenance(
    es: Elasticsearch, fed: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    index, forest = fed
    maintenance, reader = Maintenance(es, forest=forest), Reader(es)
    other = ARTICLES[-1]["_id"]
    sources: dict[str, Any] = {}

    def damage(number: int, name: str, value: Any) -> str:
        article = str(ARTICLES[number]["_id"])
        source = sources.setdefault(article, es.get(index=index, id=article)["_source"])
        changed = source | {"dedup": source["dedup"] | {name: value}}
        es.index(index=index, id=article, document=changed, refresh=True)
        return article

    def assert_listed() -> None:
        for sort in ("oldest", "similar-asc"):
            assert len(reader.list(index, sort=sort, size=50).rows) == 50

    def assert_shown(article: str) -> None:
        assert maintenance.explain(index, article, other).one.id == article
        if article in without_root:
            with pytest.raises(ArticleNotFound, match="has no root"):
                reader.article(index, article)
        else:
            assert reader.timeline(index, reader.article(index, article).root or "").steps

    without_root: list[str] = []
    # Elasticsearch indexes these values as the whole numbers 1 and 1,000.
    for value in (1.5, "1e3"):
        article = damage(0, "seq", value)
        assert_listed()
        assert_shown(article)
    es.index(index=index, id=article, document=sources[article], refresh=True)

    without_root = [damage(0, "root", ""), damage(1, "root", [])]
    odd: dict[str, list[Any]] = {
        "root": [5],
        "seq": [[1, 2]],
        "fingerprint": ["", ["a", "b"]],
        "page": ["", "not hex", ["a", "b"]],
        "signature": ["", base64.b64encode(bytes(8)).decode()],
    }
    values = [(name, value) for name, values in odd.items() for value in values]
    damaged = [damage(number, name, value) for number, (name, value) in enumerate(values, 2)]
    assert_listed()
    # Elasticsearch cannot collapse articles with two roots.
    damaged.append(damage(len(values) + 2, "root", ["a", "b"]))
    for article in (*without_root, *damaged):
        assert_shown(article)
    invalid = {without_root[0], *damaged}
    found = [(each.kind, each.subject) for each in maintenance.verify([index])]
    assert len(found) == len(invalid) + 1
    assert {*found} == {
        *((ViolationKind.INVALID_RECORD, article) for article in invalid),
        (ViolationKind.NO_ROOT, "1 articles"),
    }
    flaws = {each.subject: each.detail for each in maintenance.verify([index])}
    assert "signature of 0 bytes instead of " in flaws[damaged[-3]]
    assert "signature of 8 bytes instead of " in flaws[damaged[-2]]
    assert not maintenance.repair([index])
    maintenance.rebuild([index], articles_only=True)
    assert f"lacks {len(invalid)} articles with invalid records, such as " in caplog.text


@in_both_lookups
@pytest.mark.parametrize("profile", [CLASSIC])
def test_a_leaf_far_from_its_tree_is_reported(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    found = nodes(es, forest)
    root, other = [node for node in found.values() if node.is_root][:2]
    write(es, forest, classic_node("0123456789abcdef", root.id, seq=20_000, ms=root.seen_ms))
    assert kinds(Maintenance(es, forest=forest), index) == {ViolationKind.NOTHING_NEAR}
    assert other.is_root


@in_both_lookups
def test_a_root_recreated_from_a_leaf_has_no_neighbours(
    es: Elasticsearch, index_name: Names, lookup: Lookup
) -> None:
    """The leaf was near two roots and had joined the earlier root."""
    forest = index_name("forest")
    ForestIndex.open(es, forest, profile=CLASSIC, lookup=lookup)
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

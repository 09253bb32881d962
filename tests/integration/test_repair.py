"""Repairs of split trees and of random damage: one repair fixes all damage that can be repaired."""

import base64
import itertools
import secrets
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import CLASSIC, VERIFIED, Dedup, ForestError, Maintenance, Profile
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.forest.stored import StoredNode
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.maintenance import ViolationKind
from esdedup.times import DAY_MS
from tests.soak.feeders import articles as soak_articles
from tests.support.forests import (
    ARTICLES,
    a_leaf,
    document,
    feed,
    hashes,
    in_both_lookups,
    kinds,
    nodes,
    remove,
    roots,
    stories,
    without_hashes,
    write,
)
from tests.support.names import Names


def test_a_repair_killed_while_joining_trees_can_continue(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        dedup.setup(index)
        texts = itertools.chain.from_iterable(stories(3))
        feed(es, dedup, index, [{"_id": str(number), "text": text} for number, text in enumerate(texts)])
    before = roots(es, index)
    found = nodes(es, forest)
    leaf = a_leaf(found)
    # Split a tree in two: a leaf becomes the root of all other leaves.
    split = [node._replace(root=leaf.id) for node in found.values() if node.root == leaf.root != node.id]
    write(es, forest, *split)
    whole = ForestWriter.write
    for allowed in itertools.count(1):
        left = allowed

        def fail(self: ForestWriter, written: list[bytes], **how: Any) -> None:
            nonlocal left
            left -= len(written)
            if left < 0:
                raise ForestError("killed on purpose", forest=forest)
            whole(self, written, **how)

        with monkeypatch.context() as patch:
            patch.setattr(ForestWriter, "write", fail)
            patch.setattr("esdedup.maintenance.rebuild.WRITE_BATCH", 1)
            try:
                Maintenance(es, forest=forest).repair([index])
            except ForestError:
                continue
        break
    assert allowed > 2
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    assert roots(es, index) == before
    assert {node.root for node in nodes(es, forest).values() if node.id in {each.id for each in split}} == {
        leaf.root
    }


def test_two_trees_join_a_third_in_one_repair(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": str(at), "text": text} for at, text in enumerate(stories(1)[0])])
    leaves = [node for node in nodes(es, forest).values() if not node.is_root]
    split = [
        leaf._replace(root=leaf.id, seen_ms=leaf.seen_ms + hours * 3_600_000)
        for leaf, hours in zip(leaves, (20, 1), strict=True)
    ]
    for order in (split, split[::-1]):
        write(es, forest, *order)
        assert Maintenance(es, forest=forest).repair()[ViolationKind.NEAR_ROOTS] == 2
        assert list(Maintenance(es, forest=forest).verify([index])) == []


@pytest.fixture
def repository(es: Elasticsearch) -> Iterator[str]:
    """A snapshot repository, if the server allows one to be created."""
    name = f"test-{secrets.token_hex(4)}"
    locations = es.nodes.info(metric="settings")["nodes"].values()
    path = next(iter(locations))["settings"].get("path", {}).get("repo")
    if not path:
        pytest.skip("this server has no path.repo for snapshots")
    location = f"{path if isinstance(path, str) else path[0]}/{name}"
    es.snapshot.create_repository(name=name, repository={"type": "fs", "settings": {"location": location}})
    yield name
    es.snapshot.delete(repository=name, snapshot="*")
    es.snapshot.delete_repository(name=name)


def test_a_restored_older_snapshot_is_repaired(es: Elasticsearch, index_name: Names, repository: str) -> None:
    """The forest is restored unnoticed, and feeding continues before the repair."""
    index, forest = index_name("articles"), index_name("forest")
    stream = [
        {"_id": str(number), "text": text}
        for number, text in enumerate(itertools.chain.from_iterable(zip(*stories(40), strict=True)))
    ]
    # Most first versions arrive before the snapshot; most second versions arrive before the forest is lost.
    first, second, third = stream[:30], stream[30:70], stream[60:]
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, first)
    es.snapshot.create(repository=repository, snapshot="before", indices=forest, wait_for_completion=True)
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        feed(es, dedup, index, second)
    es.indices.delete(index=forest)
    es.snapshot.restore(
        repository=repository,
        snapshot="before",
        indices=forest,
        include_aliases=True,
        wait_for_completion=True,
    )
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        feed(es, dedup, index, third)
    maintenance = Maintenance(es, forest=forest)
    plain, plain_forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=plain_forest, profile=CLASSIC) as dedup:
        dedup.setup(plain)
        feed(es, dedup, plain, stream)
    assert roots(es, index) != roots(es, plain)
    assert kinds(maintenance, index) == {ViolationKind.NODE_GONE}
    repaired = maintenance.repair([index])
    assert repaired.keys() >= {ViolationKind.NODE_GONE, ViolationKind.NEAR_ROOTS, ViolationKind.TWO_ROOTS}
    assert list(maintenance.verify([index])) == []
    # The clusters are the same as without a failure.
    assert roots(es, index) == roots(es, plain)


def test_nodes_of_articles_indexed_twice_regain_their_roots(es: Elasticsearch, index_name: Names) -> None:
    """The articles, and the nodes recreated from the articles, have the `seq` of the second indexing."""
    index, forest = index_name("articles"), index_name("forest")
    twice = list(soak_articles(300, seed=1))
    with Dedup(es, forest=forest, lookup="search") as dedup:
        dedup.setup(index)
        for _ in range(2):
            feed(es, dedup, index, twice)
    before = roots(es, index)
    remove(es, forest, *Random(1).sample(sorted(nodes(es, forest)), 60))
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.repair([index])[ViolationKind.NODE_GONE] >= 60
    assert list(maintenance.verify([index])) == []
    assert roots(es, index) == before


ARTICLES_FED = 120
# Shifts that make a time too low or too high.
SHIFTS_MS = (-40 * DAY_MS, -DAY_MS, DAY_MS // 24, 400 * DAY_MS)

Damaged = Callable[[Random, list[StoredNode], StoredNode], StoredNode]
CHANGES: list[Damaged] = [
    lambda random, found, node: node._replace(root=random.choice(found).id),
    lambda random, found, node: node._replace(root=node.id[::-1]),
    lambda random, found, node: node._replace(root=node.id),
    lambda random, found, node: node._replace(seq=random.randrange(1, 2 * ARTICLES_FED)),
    lambda random, found, node: node._replace(seen_ms=node.seen_ms + random.choice(SHIFTS_MS)),
    lambda random, found, node: node._replace(made_ms=node.made_ms + random.choice(SHIFTS_MS)),
    lambda random, found, node: node._replace(signature=random.choice(found).signature),
]


def damaged(es: Elasticsearch, forest: str, random: Random, found: list[StoredNode]) -> dict[str, Any]:
    """Return a bulk action that damages one node."""
    node = random.choice(found)
    action: dict[str, Any] = {"_index": forest, "_id": node.id}
    what = random.randrange(len(CHANGES) + 4)
    if what == 0:
        return action | {"_op_type": "delete"}
    if what == 1:
        body = document(es, forest, node)
        del body[random.choice(["seq", "root", "packed", "seen"])]
    elif what == 2:
        body = document(es, forest, node) | {"keys": document(es, forest, random.choice(found))["keys"]}
    elif what == 3:
        body = document(es, forest, node)
        body["packed"] = base64.b64encode(base64.b64decode(body["packed"])[:-1]).decode()
    else:
        body = document(es, forest, CHANGES[what - 4](random, found, node))
    return action | {"_source": body}


def damage_log(es: Elasticsearch, forest: str, random: Random, found: list[StoredNode]) -> None:
    """Damage one node of a forest whose nodes are in a log."""
    node, what = random.choice(found), random.randrange(len(CHANGES) + 1)
    if what == 0:
        remove(es, forest, node.id)
    else:
        write(es, forest, CHANGES[what - 1](random, found, node))


# With these seeds, the first pass of a repair leaves violations.
@pytest.mark.parametrize(("profile", "seed"), [(CLASSIC, 4), (VERIFIED, 4)])
@in_both_lookups
def test_one_repair_fixes_random_damage(
    es: Elasticsearch, index_name: Names, profile: Profile, seed: int, lookup: Lookup
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    random = Random(seed)
    with Dedup(es, forest=forest, profile=profile, lookup=lookup) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:ARTICLES_FED])
    found = sorted(nodes(es, forest).values())
    changes: list[dict[str, Any]] = []
    for _ in range(len(found) // 3):
        if lookup == "memory":
            damage_log(es, forest, random, found)
        else:
            changes.append(damaged(es, forest, random, found))
    for article in random.sample(ARTICLES[:ARTICLES_FED], 8):
        root = {"dedup": {"root": random.choice(found).root}}
        changes.append({"_op_type": "update", "_index": index, "_id": article["_id"], "doc": root})
    changes += (
        {"_op_type": "delete", "_index": index, "_id": article["_id"]}
        for article in random.sample(ARTICLES[:ARTICLES_FED], 8)
    )
    # A change fails if its document has already been deleted.
    helpers.bulk(es, changes, refresh=True, raise_on_error=False)
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.repair([index]).total()
    assert [str(each) for each in maintenance.verify([index]) if each.can_be_repaired] == []
    assert maintenance.repair([index]).total() == 0


def test_an_endless_repair_is_reported(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = fed
    remove(es, forest, next(iter(nodes(es, forest))))
    monkeypatch.setattr("esdedup.maintenance.rebuild._MAX_PASSES", 0)
    with pytest.raises(ForestError, match=r"after 0 passes, a repair .* still finds .* repair it again"):
        Maintenance(es, forest=forest).repair([index])


def of_another_tree(found: dict[str, StoredNode], node: StoredNode) -> StoredNode:
    return next(other for other in found.values() if other.root != node.root)


def lose_roots(es: Elasticsearch, forest: str, found: dict[str, StoredNode]) -> set[str]:
    """Delete every root that has leaves; return their ids."""
    lost = {node.root for node in found.values() if not node.is_root}
    remove(es, forest, *lost)
    return lost


def test_recreated_roots_first_get_a_leafs_signature(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = nodes(es, forest)
    lost = lose_roots(es, forest, before)
    maintenance = Maintenance(es, forest=forest)
    assert kinds(maintenance, index) >= {ViolationKind.ROOT_GONE, ViolationKind.NODE_GONE}
    repaired = maintenance.repair()
    assert repaired[ViolationKind.ROOT_GONE] == len(lost)
    # Stray content hashes are further content hashes of the lost roots; a repair with articles restores them.
    assert set(repaired) <= {ViolationKind.ROOT_GONE, ViolationKind.STRAY_PAGE}
    made = nodes(es, forest)
    assert {each: node.root for each, node in made.items()} == {
        each: node.root for each, node in before.items()
    }
    for root in lost:
        leaves = {node.signature for node in before.values() if node.root == root != node.id}
        assert made[root].signature in leaves - {before[root].signature}
    # A leaf's signature does not show which nodes were near the root, so the repair joins no trees.
    assert maintenance.repair().total() == 0
    assert kinds(maintenance, index) == {ViolationKind.NODE_BEHIND}
    assert maintenance.repair([index])
    assert without_hashes(nodes(es, forest)) == without_hashes(before)
    assert list(maintenance.verify([index])) == []


def test_roots_are_recreated_from_articles_read_latest_first(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf's article is read before its root's article, in the same page of results or an earlier one."""
    index, forest = fed
    before, hashes_before = nodes(es, forest), hashes(es, forest)
    lost = lose_roots(es, forest, before)
    maintenance = Maintenance(es, forest=forest)
    with monkeypatch.context() as patch:
        patch.setattr("esdedup.elastic.limits.MAX_HITS", len(ARTICLES) // 3)
        repaired = maintenance.repair([index])
    assert repaired[ViolationKind.NODE_GONE] + repaired[ViolationKind.ARTICLE_ROOT_GONE] >= len(lost)
    assert without_hashes(nodes(es, forest)) == without_hashes(before)
    assert hashes(es, forest) == hashes_before
    assert list(maintenance.verify([index])) == []


def test_a_leaf_with_another_texts_signature_is_repaired(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = nodes(es, forest)
    leaf = a_leaf(before)
    write(es, forest, leaf._replace(signature=of_another_tree(before, leaf).signature))
    maintenance = Maintenance(es, forest=forest)
    found = {violation.kind: violation for violation in maintenance.verify()}
    assert found.keys() == {ViolationKind.UNLIKE_ROOT, ViolationKind.NOTHING_NEAR}
    assert found[ViolationKind.UNLIKE_ROOT].subject == leaf.id
    # The right signature is not in the forest, only in its articles.
    assert maintenance.repair().total() == 0
    assert kinds(maintenance, index) == found.keys() | {ViolationKind.NODE_BEHIND}
    assert maintenance.repair([index]) == {ViolationKind.NODE_BEHIND: 1}
    assert nodes(es, forest) == before
    assert list(maintenance.verify([index])) == []

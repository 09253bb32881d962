"""Random damage to many nodes at once: one repair ends what can be repaired."""

import base64
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import CLASSIC, VERIFIED, Dedup, ForestError, Maintenance, Profile
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.forest.stored import StoredNode
from esdedup.times import DAY_MS
from tests.support.forests import ARTICLES, document, feed, in_both_lookups, nodes, remove, write
from tests.support.names import Names

ARTICLES_FED = 120
# Too high and too low.
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


# With each of these seeds the first pass leaves something behind.
@pytest.mark.parametrize(("profile", "seed"), [(CLASSIC, 4), (VERIFIED, 4)])
@in_both_lookups
def test_one_repair_ends_random_damage(
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
    # What is deleted may be damaged before or after.
    helpers.bulk(es, changes, refresh=True, raise_on_error=False)
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.repair([index]).total()
    assert [str(each) for each in maintenance.verify([index]) if each.can_be_repaired] == []
    assert maintenance.repair([index]).total() == 0


def test_a_repair_without_an_end_says_so(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = fed
    remove(es, forest, next(iter(nodes(es, forest))))
    monkeypatch.setattr("esdedup.maintenance.maintenance._MOST_PASSES", 1)
    with pytest.raises(ForestError, match=r"after 1 passes, a repair .* still finds .* repair it again"):
        Maintenance(es, forest=forest).repair([index])

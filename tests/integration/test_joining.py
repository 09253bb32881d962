"""Trees of which one should not have been made become one; and what damages a forest so."""

import itertools
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, Dedup, ForestError, Maintenance
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.maintenance import ViolationKind
from tests.support.forests import a_leaf, feed, kinds, nodes, roots, stories, write
from tests.support.names import Names


def test_a_repair_killed_while_trees_are_joined_goes_on(
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
    # The tree of one root falls into two: the leaf is a root, and has all the other leaves.
    torn = [node._replace(root=leaf.id) for node in found.values() if node.root == leaf.root != node.id]
    write(es, forest, *torn)
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
            try:
                Maintenance(es, forest=forest, write_batch=1).repair([index])
            except ForestError:
                continue
        break
    assert allowed > 2
    assert list(Maintenance(es, forest=forest).verify([index])) == []
    assert roots(es, index) == before
    assert {node.root for node in nodes(es, forest).values() if node.id in {each.id for each in torn}} == {
        leaf.root
    }


def test_two_trees_join_a_third_in_one_repair(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": str(at), "text": text} for at, text in enumerate(stories(1)[0])])
    leaves = [node for node in nodes(es, forest).values() if not node.is_root]
    torn = [
        leaf._replace(root=leaf.id, seen_ms=leaf.seen_ms + hours * 3_600_000)
        for leaf, hours in zip(leaves, (20, 1), strict=True)
    ]
    for order in (torn, torn[::-1]):
        write(es, forest, *order)
        assert Maintenance(es, forest=forest).repair()[ViolationKind.NEAR_ROOTS] == 2
        assert list(Maintenance(es, forest=forest).verify([index])) == []


@pytest.fixture
def repository(es: Elasticsearch) -> Iterator[str]:
    """A repository of snapshots, on a server that lets one be made."""
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


@pytest.mark.parametrize("older", ["forest", "articles"])
def test_a_snapshot_out_of_step(es: Elasticsearch, index_name: Names, repository: str, older: str) -> None:
    """One of the two indices comes back as it was; then the stream goes on before anybody notices."""
    index, forest = index_name("articles"), index_name("forest")
    stream = [
        {"_id": str(number), "text": text}
        for number, text in enumerate(itertools.chain.from_iterable(zip(*stories(40), strict=True)))
    ]
    # The failure falls into the second versions; most stories' first ones are there before it.
    first, second, third = stream[:30], stream[30:70], stream[60:]
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, first)
    lost = forest if older == "forest" else index
    es.snapshot.create(repository=repository, snapshot="before", indices=lost, wait_for_completion=True)
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        feed(es, dedup, index, second)
    es.indices.delete(index=lost)
    es.snapshot.restore(
        repository=repository, snapshot="before", indices=lost, include_aliases=True, wait_for_completion=True
    )
    with Dedup(es, forest=forest, profile=CLASSIC) as dedup:
        feed(es, dedup, index, third)
    maintenance = Maintenance(es, forest=forest)
    if older == "articles":
        # Nodes without articles harm nobody.
        assert list(maintenance.verify([index])) == []
        return
    plain, plain_forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=plain_forest, profile=CLASSIC) as dedup:
        dedup.setup(plain)
        feed(es, dedup, plain, stream)
    assert roots(es, index) != roots(es, plain)
    assert kinds(maintenance, index) == {ViolationKind.NODE_GONE}
    repaired = maintenance.repair([index])
    assert repaired.keys() >= {ViolationKind.NODE_GONE, ViolationKind.NEAR_ROOTS, ViolationKind.TWO_ROOTS}
    assert list(maintenance.verify([index])) == []
    # As if nothing had happened: the same clusters as without a failure.
    assert roots(es, index) == roots(es, plain)

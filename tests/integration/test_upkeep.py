"""Expiry, verification, repair and rebuilding, on a real server."""

import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import BreachKind, Dedup, Fields, ForestBusy, ForestError, ForestLost, ForestMismatch, Upkeep
from esdedup.elastic import expiry
from esdedup.elastic.expiry import expire
from esdedup.elastic.forest_index import STATE_ID, ForestIndex
from esdedup.elastic.nodes import StoredNode, documents
from esdedup.elastic.owned import OwnedForest
from esdedup.fingerprint import Fingerprinter
from esdedup.forest import Aging
from esdedup.profile import CLASSIC
from esdedup.sample import articles as sample_articles
from esdedup.simhash import from_hex

Names = Callable[[str], str]
DAY_MS = 86_400_000
ARTICLES = [
    {"_id": article["id"], **{name: value for name, value in article.items() if name != "id"}}
    for article in sample_articles()
]


@pytest.fixture
def fed(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    """An index of the sample's articles, and its forest."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES)
    return index, forest


def feed(es: Elasticsearch, dedup: Dedup, index: str, articles: list[dict[str, Any]], **how: Any) -> None:
    actions = [{"_index": index, **article} for article in articles]
    helpers.bulk(es, dedup.enrich(actions, **how), refresh=True)


def roots(es: Elasticsearch, index: str) -> dict[str, str]:
    es.indices.refresh(index=index)
    hits = helpers.scan(es, index=index, _source=["dedup.root"])
    return {hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits if "dedup" in hit["_source"]}


def nodes(es: Elasticsearch, forest: str) -> dict[str, StoredNode]:
    es.indices.refresh(index=forest)
    search = ForestIndex.find(es, forest).search
    return {node.id: node for node in search.scan({"exists": {"field": "root"}})}


def write(es: Elasticsearch, forest: str, *changed: StoredNode) -> None:
    """Behind the back of every law."""
    for node_id, document in documents(changed, CLASSIC.layout):
        es.index(index=forest, id=node_id, document=document, refresh=True)


def kinds(upkeep: Upkeep, index: str) -> set[BreachKind]:
    return {breach.kind for breach in upkeep.verify([index])}


def assert_rearrivals_are_known(es: Elasticsearch, index: str, forest: str) -> None:
    """Every article, come again, gets the root it has."""
    before = roots(es, index)
    with Dedup(es, forest=forest) as dedup:
        again = dedup.enrich({"_index": index, **article} for article in ARTICLES)
        assert {each["_id"]: each["_source"]["dedup"]["root"] for each in again} == before


def test_a_sound_forest_has_no_breaches(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    seen: list[int] = []
    upkeep = Upkeep(es, forest=forest)
    assert list(upkeep.verify([index], on_progress=seen.append)) == []
    assert sum(seen) == upkeep.count([index]) == len(ARTICLES) + len(nodes(es, forest))
    assert upkeep.repair([index]).total() == 0


def test_what_has_expired_is_excused(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, retention=timedelta(days=2)) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES, backfill=True)
        assert dedup.expire().leaves
        assert dedup.expire() == expiry.Expired()
    assert list(Upkeep(es, forest=forest).verify([index])) == []
    assert Upkeep(es, forest=forest).stats().expired == 0


def a_leaf(found: dict[str, StoredNode]) -> StoredNode:
    return next(node for node in found.values() if not node.is_root)


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
    (_, one_document), (_, other_document) = documents([one, other], CLASSIC.layout)
    for node, document, keys in ((one, one_document, other_document), (other, other_document, one_document)):
        es.index(index=forest, id=node.id, document=document | {"keys": keys["keys"]}, refresh=True)


def wrong_mark(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    ((node_id, document),) = documents([a_leaf(found)], CLASSIC.layout)
    es.index(index=forest, id=node_id, document=document | {"leaf": False}, refresh=True)


def without(name: str) -> Callable[..., None]:
    def damage(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
        ((node_id, document),) = documents([a_leaf(found)], CLASSIC.layout)
        del document[name]
        es.index(index=forest, id=node_id, document=document, refresh=True)

    return damage


no_number, no_root = without("seq"), without("root")
no_number.__name__, no_root.__name__ = "no_number", "no_root"


def no_hex(es: Elasticsearch, index: str, forest: str, found: dict[str, StoredNode]) -> None:
    ((_, document),) = documents([a_leaf(found)], CLASSIC.layout)
    es.index(index=forest, id="what is this", document=document, refresh=True)


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
    no_hex: {BreachKind.NO_NODE},
    root_hung_under_another: {BreachKind.ROOT_IS_LEAF, BreachKind.TWO_ROOTS},
    two_things_at_once: {
        *(BreachKind.ROOT_SEEN_TOO_LOW, BreachKind.LEAF_BEFORE_ROOT, BreachKind.NODE_BEHIND)
    },
    tree_torn_apart: {BreachKind.NEAR_ROOTS, BreachKind.TWO_ROOTS},
    article_relabelled: {BreachKind.TWO_ROOTS},
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_found_and_mended(
    es: Elasticsearch, fed: tuple[str, str], damage: Callable[..., None]
) -> None:
    index, forest = fed
    before = roots(es, index)
    damage(es, index, forest, nodes(es, forest))
    upkeep = Upkeep(es, forest=forest)
    found = list(upkeep.verify([index]))
    assert {breach.kind for breach in found} & DAMAGES[damage]
    assert {breach.kind for breach in found} <= DAMAGES[damage] | {BreachKind.NOTHING_NEAR}
    # Whoever feeds meanwhile is not thrown out.
    with Dedup(es, forest=forest) as dedup:
        list(dedup.enrich({"_index": index, **article} for article in ARTICLES[:5]))
    assert upkeep.repair([index]).total()
    # What a damaged document was, its articles tell the next time.
    if BreachKind.NO_NODE in DAMAGES[damage]:
        upkeep.repair([index])
    assert list(upkeep.verify([index])) == []
    assert roots(es, index) == before
    assert_rearrivals_are_known(es, index, forest)


def test_a_repair_killed_while_trees_are_joined_goes_on(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        texts = itertools.chain.from_iterable(stories(3))
        feed(es, dedup, index, [{"_id": str(number), "text": text} for number, text in enumerate(texts)])
    before = roots(es, index)
    found = nodes(es, forest)
    leaf = a_leaf(found)
    # The tree of one root falls into two: the leaf is a root, and has all the other leaves.
    torn = [node._replace(root=leaf.id) for node in found.values() if node.root == leaf.root != node.id]
    write(es, forest, *torn)
    whole = OwnedForest.write
    for allowed in itertools.count(1):
        left = allowed

        def fail(self: OwnedForest, written: list[StoredNode], **how: Any) -> None:
            nonlocal left
            left -= len(written)
            if left < 0:
                raise ForestError("killed on purpose")
            whole(self, written, **how)

        with monkeypatch.context() as patch:
            patch.setattr(OwnedForest, "write", fail)
            patch.setattr("esdedup.upkeep.repair._WRITTEN_AT_ONCE", 1)
            try:
                Upkeep(es, forest=forest).repair([index])
            except ForestError:
                continue
        break
    assert allowed > 2
    assert list(Upkeep(es, forest=forest).verify([index])) == []
    assert roots(es, index) == before
    assert {node.root for node in nodes(es, forest).values() if node.id in {each.id for each in torn}} == {
        leaf.root
    }


def test_what_was_mended_once_is_looked_at_again(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = roots(es, index)
    upkeep = Upkeep(es, forest=forest)
    for damage in (leaf_gone, tree_torn_apart, leaf_gone, root_gone, tree_torn_apart):
        damage(es, index, forest, nodes(es, forest))
        assert upkeep.repair([index]).total()
        assert list(upkeep.verify([index])) == []
        assert roots(es, index) == before


def test_a_text_that_came_back_after_it_had_expired(es: Elasticsearch, index_name: Names) -> None:
    """Its leaves of old are there still, made before the root that it is now."""
    index, forest = index_name("articles"), index_name("forest")
    one, near = next((each[0], each[1]) for each in stories(1))
    with Dedup(es, forest=forest, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        days = [(one, 1), (near, 1), (one, 20)]
        articles = [
            {"_id": str(number), "text": text, "published_at": f"2026-01-{day:02}"}
            for number, (text, day) in enumerate(days)
        ]
        feed(es, dedup, index, articles, backfill=True)
    upkeep = Upkeep(es, forest=forest)
    assert list(upkeep.verify([index])) == []
    assert upkeep.repair([index]).total() == 0


def test_what_has_expired_stays_so_when_nodes_live_longer_from_now_on(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    one, near, other = stories(1)[0]

    def article(number: int, text: str, day: int) -> dict[str, Any]:
        return {"_id": str(number), "text": text, "published_at": f"2026-01-{day:02}"}

    with Dedup(es, forest=forest, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        # The first text comes again as a leaf, while its own leaf of old has expired.
        old = [article(0, one, 1), article(1, near, 1), article(2, other, 5), article(3, one, 5)]
        feed(es, dedup, index, old, backfill=True)
    with Dedup(es, forest=forest, retention=timedelta(days=30)) as dedup:
        feed(es, dedup, index, [article(4, near, 5)], backfill=True)
    upkeep = Upkeep(es, forest=forest)
    assert upkeep.stats().retention_days == 30
    assert list(upkeep.verify([index])) == []
    found = roots(es, index)
    assert found["4"] == found["3"] == found["2"] != found["1"]
    # Whoever says nothing leaves it as it is.
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [article(5, near, 6)], backfill=True)
    assert upkeep.stats().retention_days == 30
    assert upkeep.rebuild([index], replace=True)
    assert upkeep.stats().retention_days == 30


def test_what_has_expired_stays_so_when_a_forest_is_rebuilt_for_longer(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    one, near, _ = stories(1)[0]
    with Dedup(es, forest=forest, retention=timedelta(days=1)) as dedup:
        dedup.setup(index)
        articles = [
            {"_id": str(day), "text": text, "published_at": f"2026-01-{day:02}"}
            for text, day in ((one, 1), (near, 5))
        ]
        feed(es, dedup, index, articles, backfill=True)
    before = roots(es, index)
    upkeep = Upkeep(es, forest=forest)
    assert upkeep.rebuild([index], replace=True, retention=timedelta(days=30)) == 1
    assert list(upkeep.verify([index])) == []
    assert upkeep.repair([index]).total() == upkeep.repair().total() == 0
    assert roots(es, index) == before


def test_two_trees_join_a_third_in_one_repair(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [{"_id": str(at), "text": text} for at, text in enumerate(stories(1)[0])])
    leaves = [node for node in nodes(es, forest).values() if not node.is_root]
    torn = [
        leaf._replace(root=leaf.id, seen_ms=leaf.seen_ms + hours * 3_600_000)
        for leaf, hours in zip(leaves, (20, 1), strict=True)
    ]
    for order in (torn, torn[::-1]):
        write(es, forest, *order)
        assert Upkeep(es, forest=forest).repair()[BreachKind.NEAR_ROOTS] == 2
        assert list(Upkeep(es, forest=forest).verify([index])) == []


def test_a_state_that_is_gone_is_read_from_the_nodes(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before = ForestIndex.find(es, forest).state()
    es.delete(index=forest, id=STATE_ID, refresh=True)
    after = ForestIndex.find(es, forest).state()
    made = [node.made_ms for node in nodes(es, forest).values()]
    assert after.time_ms == max(made) <= before.time_ms
    assert after.origin_ms == min(made) == before.origin_ms
    Upkeep(es, forest=forest).repair([index])
    assert ForestIndex.find(es, forest).state().seq == before.seq


def test_equal_ids_in_two_indices(es: Elasticsearch, index_name: Names) -> None:
    one, other, forest = index_name("articles"), index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        for index, text in zip((one, other), stories(2), strict=True):
            dedup.setup(index)
            feed(es, dedup, index, [{"_id": "1", "text": text[0]}])
    upkeep = Upkeep(es, forest=forest)
    assert list(upkeep.verify([one, other])) == []
    bands = es.get(index=other, id="1")["_source"]["dedup"]["bands"]
    es.update(index=one, id="1", doc={"dedup": {"bands": bands}}, refresh=True)
    assert {breach.kind for breach in upkeep.verify([one, other])} == {BreachKind.WRONG_BANDS}


def test_verifying_while_articles_arrive_and_expire(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, retention=timedelta(days=1), batch_size=20) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:100], backfill=True)
        rest = iter(ARTICLES[100:])

        def feed_on(_: int) -> None:
            feed(es, dedup, index, list(itertools.islice(rest, 40)), backfill=True)
            dedup.expire()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("esdedup.elastic.nodes.MAX_HITS", 20)
            patch.setattr("esdedup.upkeep.forest_audit._NODES_AT_ONCE", 10)
            assert list(Upkeep(es, forest=forest).verify([index], on_progress=feed_on)) == []


def test_a_forest_that_is_deleted_while_it_is_fed_does_not_come_back(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, lease_ttl_s=1) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES[:50])
        es.indices.delete(index=forest)
        time.sleep(1.5)
        with pytest.raises(ForestLost):
            feed(es, dedup, index, ARTICLES[50:60])
        assert not es.indices.exists(index=forest)
        Upkeep(es, forest=forest).rebuild([index])
    assert list(Upkeep(es, forest=forest).verify([index])) == []


def test_labels_that_make_no_sense_stop_nothing(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    for article, change in (
        (ARTICLES[0], {"fingerprint": "no hex"}),
        (ARTICLES[1], {"root": "what is this"}),
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


def test_a_leaf_far_from_all_of_its_tree(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    found = nodes(es, forest)
    root, other = [node for node in found.values() if node.is_root][:2]
    write(es, forest, StoredNode("0123456789abcdef", root.id, 20_000, root.made_ms, root.seen_ms))
    assert kinds(Upkeep(es, forest=forest), index) == {BreachKind.NOTHING_NEAR}
    assert other.is_root


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


def stories(count: int) -> list[list[str]]:
    """Sentences in three versions, each near the others but another text."""
    random = Random(1)
    fingerprinter = Fingerprinter(CLASSIC)
    words = ["会议", "公司", "市场", "经济", "发展", "政府", "研究", "技术", "项目", "企业", "合作", "投资"]
    found: list[list[str]] = []
    while len(found) < count:
        sentence = [random.choice(words) + str(random.randrange(10**6)) for _ in range(40)]
        versions = ["".join(sentence)]
        for at in range(40):
            edited = "".join([*sentence[:at], random.choice(words), *sentence[at:]])
            bits = fingerprinter.fingerprint([*versions, edited]).bits
            distances = np.bitwise_count(bits[:-1] ^ bits[-1])
            if (distances > 0).all() and (distances <= 3).all():
                versions.append(edited)
            if len(versions) == 3:
                found.append(versions)
                break
    return found


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
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, first)
    lost = forest if older == "forest" else index
    es.snapshot.create(repository=repository, snapshot="before", indices=lost, wait_for_completion=True)
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, second)
    es.indices.delete(index=lost)
    es.snapshot.restore(
        repository=repository, snapshot="before", indices=lost, include_aliases=True, wait_for_completion=True
    )
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, third)
    upkeep = Upkeep(es, forest=forest)
    if older == "articles":
        # Nodes without articles harm nobody.
        assert list(upkeep.verify([index])) == []
        return
    plain, plain_forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=plain_forest) as dedup:
        dedup.setup(plain)
        feed(es, dedup, plain, stream)
    assert roots(es, index) != roots(es, plain)
    assert kinds(upkeep, index) == {BreachKind.NODE_GONE}
    mended = upkeep.repair([index])
    assert mended.keys() >= {BreachKind.NODE_GONE, BreachKind.NEAR_ROOTS, BreachKind.TWO_ROOTS}
    assert list(upkeep.verify([index])) == []
    # As if nothing had happened: the same clusters as without a failure.
    assert roots(es, index) == roots(es, plain)


def test_rebuilding_keeps_every_root(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    before, nodes_before = roots(es, index), nodes(es, forest)
    es.indices.delete(index=forest)
    upkeep = Upkeep(es, forest=forest)
    assert upkeep.rebuild([index]) == len(nodes_before)
    assert nodes(es, forest) == nodes_before
    assert list(upkeep.verify([index])) == []
    assert roots(es, index) == before
    assert_rearrivals_are_known(es, index, forest)


def test_a_root_whose_article_was_deleted_is_made_again(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    leaf = a_leaf(nodes(es, forest))
    for hit in es.search(index=index, query={"term": {"dedup.fingerprint": leaf.root}}, size=100)["hits"][
        "hits"
    ]:
        es.delete(index=index, id=hit["_id"], refresh=True)
    es.indices.delete(index=forest)
    upkeep = Upkeep(es, forest=forest)
    upkeep.rebuild([index])
    found = nodes(es, forest)
    assert found[leaf.root].is_root
    assert found[leaf.id].root == leaf.root
    assert list(upkeep.verify([index])) == []


def test_a_rebuild_that_was_interrupted(
    es: Elasticsearch, fed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, forest = fed
    before = nodes(es, forest)
    with pytest.raises(ForestError, match="there is a forest"):
        Upkeep(es, forest=forest).rebuild([index])

    def fail(self: OwnedForest, found: list[StoredNode], **how: Any) -> None:
        if found:
            write_whole(self, found[: len(found) // 2])
            raise ForestError("interrupted on purpose")
        write_whole(self, found, **how)

    write_whole = OwnedForest.write
    with monkeypatch.context() as patch:
        patch.setattr(OwnedForest, "write", fail)
        with pytest.raises(ForestError, match="interrupted on purpose"):
            Upkeep(es, forest=forest).rebuild([index], replace=True)
    assert 0 < es.count(index=forest, query={"exists": {"field": "root"}})["count"] < len(before)
    with Dedup(es, forest=forest) as dedup, pytest.raises(ForestMismatch, match="is being made anew"):
        list(dedup.enrich([{"_index": index, **ARTICLES[0]}]))
    with pytest.raises(ForestMismatch, match="is being made anew"):
        list(Upkeep(es, forest=forest).verify([index]))
    Upkeep(es, forest=forest).rebuild([index])
    assert nodes(es, forest) == before


def test_a_forest_in_use_is_not_replaced(es: Elasticsearch, fed: tuple[str, str]) -> None:
    index, forest = fed
    with Dedup(es, forest=forest) as dedup:
        list(dedup.enrich([{"_index": index, **ARTICLES[0]}]))
        for change in (
            lambda: Upkeep(es, forest=forest).rebuild([index], replace=True),
            lambda: Upkeep(es, forest=forest).repair([index]),
            lambda: Upkeep(es, forest=forest).expire(),
        ):
            with pytest.raises(ForestBusy, match=r"process \d+ on .* owns it since"):
                change()
        # What only reads does not mind.
        assert list(Upkeep(es, forest=forest).verify([index])) == []
        assert Upkeep(es, forest=forest).expire(dry_run=True) == expiry.Expired()


@pytest.fixture
def ageing(es: Elasticsearch, index_name: Names) -> tuple[ForestIndex, Aging]:
    """A forest of two old trees, with a leaf each, and a live one; its time has gone on."""
    forest = index_name("forest")
    aging = Aging.of(retention=timedelta(days=10))
    index = ForestIndex.open(es, forest, profile=CLASSIC)
    now = 1_000 * DAY_MS
    write(
        es,
        forest,
        *(
            StoredNode(f"{name}{leaf:015x}", f"{name}{0:015x}", seq, seen, seen)
            for name, first, seen in (("a", 1, now - 20 * DAY_MS), ("b", 3, now - 11 * DAY_MS), ("c", 5, now))
            for seq, leaf in enumerate((0, 1), first)
        ),
    )
    state = {"seq": 6, "time_ms": now, "origin_ms": now - 20 * DAY_MS}
    es.index(index=forest, id=STATE_ID, document={"state": state}, refresh=True)
    return index, aging


def test_only_what_has_expired_is_deleted(es: Elasticsearch, ageing: tuple[ForestIndex, Aging]) -> None:
    index, aging = ageing
    assert expiry.count_expired(index, aging) == expiry.Expired(leaves=2, roots=2)
    with OwnedForest(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=2, roots=2)
    assert {node[0] for node in nodes(es, index.name)} == {"c"}


def test_a_node_that_is_needed_again_meanwhile_stays(
    es: Elasticsearch, ageing: tuple[ForestIndex, Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, aging = ageing
    delete = OwnedForest.delete
    reborn = StoredNode(f"a{1:015x}", f"a{1:015x}", 7, 1_000 * DAY_MS, 1_000 * DAY_MS)

    def late(self: OwnedForest, hits: Any) -> int:
        found = list(hits)
        if any(hit["_id"] == reborn.id for hit in found):
            write(es, index.name, reborn)
        return delete(self, found)

    monkeypatch.setattr(OwnedForest, "delete", late)
    with OwnedForest(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=2, kept=1)
    assert nodes(es, index.name)[reborn.id] == reborn


def test_no_root_goes_before_its_leaves(
    es: Elasticsearch, ageing: tuple[ForestIndex, Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, aging = ageing
    delete = OwnedForest.delete
    # As after a crash in the middle of the leaves: one of them stays.
    monkeypatch.setattr(
        OwnedForest,
        "delete",
        lambda self, hits: delete(self, [hit for hit in hits if hit["_id"] != f"b{1:015x}"]),
    )
    with OwnedForest(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=1, kept=2)
    assert Counter(node[0] for node in nodes(es, index.name)) == {"b": 2, "c": 2}
    monkeypatch.undo()
    with OwnedForest(index) as owned:
        assert expire(owned, aging) == expiry.Expired(leaves=1, roots=1)


def test_figures(es: Elasticsearch, fed: tuple[str, str]) -> None:
    _, forest = fed
    found = nodes(es, forest)
    stats = Upkeep(es, forest=forest).stats()
    trees = Counter(node.root for node in found.values())
    assert (stats.nodes, stats.trees, stats.seq) == (len(found), len(trees), len(ARTICLES))
    assert sum(stats.trees_by_leaves.values()) == len(trees)
    assert stats.trees_by_leaves["0"] == sum(size == 1 for size in trees.values())
    assert [each.leaves for each in stats.largest] == sorted(
        (size - 1 for size in trees.values() if size > 1), reverse=True
    )[:10]
    terms = Counter(term for own in CLASSIC.layout.terms(from_hex(found)) for term in own)
    assert stats.fullest_keys[0].nodes == max(terms.values())
    assert all(terms[each.key] == each.nodes for each in stats.fullest_keys)
    assert sum(day.made for day in stats.days) == len(found)
    assert stats.expired == 0
    assert stats.growth_7_days is None


def test_indices_without_a_forest(es: Elasticsearch, index_name: Names) -> None:
    for call in (Upkeep.stats, Upkeep.expire, lambda each: list(each.verify()), lambda each: each.repair()):
        with pytest.raises(ForestError, match="there is no forest"):
            call(Upkeep(es, forest=index_name("none")))
    empty = index_name("articles")
    with Dedup(es, fields=Fields()) as dedup:
        dedup.setup(empty)
    with pytest.raises(ForestMismatch, match="none of the articles was fingerprinted"):
        Upkeep(es, forest=index_name("forest")).rebuild([empty])

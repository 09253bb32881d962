"""A forest with several shards: batches that only some shards received, and torn views of searches."""

from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import (
    CLASSIC,
    Dedup,
    ForestMismatch,
    Maintenance,
    Profile,
    ServerBusy,
    ServerError,
    SettingError,
)
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import FIELD
from esdedup.elastic.forest.meta import FORMAT, SHARDED_FORMAT
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import StoredHash, StoredNode
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.stories import edit_document, read_edits
from esdedup.forest import NO_TIME, State
from esdedup.forest.stories import Edit
from esdedup.maintenance import ViolationKind
from tests.support import exploring
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign
from tests.support.between import Answer, Send, Sent, client_with, failure
from tests.support.forests import (
    ARTICLES,
    SHARDED,
    Read,
    assert_rearrivals_are_known,
    classic_node,
    document,
    feed,
    hashes,
    nodes,
    remove,
    roots,
    without_hashes,
    write,
)
from tests.support.learned import Pace
from tests.support.names import Names
from tests.support.pages import pages

FIRST = [Arrival(f"{0x1111_2222_3333_4444:016x}", 0, hash=1)]
# A leaf of the first text, a root with a leaf, and a known text with a new content hash.
SECOND = [
    Arrival(f"{0x1111_2222_3333_4445:016x}", 50, hash=2),
    Arrival(f"{0x00FF_00FF_00FF_00FF:016x}", 50, hash=3),
    Arrival(f"{0x00FF_00FF_00FF_00FE:016x}", 50, hash=4),
    Arrival(f"{0x1111_2222_3333_4444:016x}", 50, hash=5),
]
THIRD = [Arrival(f"{0x00FF_00FF_00FF_00FC:016x}", 60, hash=6), *SECOND]
in_shards = pytest.mark.parametrize("how", SHARDED.values(), ids=SHARDED)


def opened(client: Elasticsearch, forest: str, **how: Any) -> ElasticStore:
    return ElasticStore(client, forest=forest, profile=CLASSIC, aging=AGING, **how)


def without_seq(found: dict[str, StoredNode]) -> list[StoredNode]:
    return sorted(node._replace(seq=0) for node in found.values())


def assigned(store: ElasticStore, arrivals: list[Arrival]) -> list[tuple[str | None, str | None]]:
    return [(each.node, each.root) for each in assign(store, as_batch(arrivals), now_ms=NOW_MS)]


# The state, a refreshed node, three new nodes and a content hash.
OPERATIONS = 6
# Each number selects the operations that were performed.
SELECTIONS = range(2**OPERATIONS)


def some_of(items: list[bytes], selection: int) -> bytes:
    return b"".join(each for at, each in enumerate(items) if selection >> at & 1)


@in_shards
@pytest.mark.parametrize("is_next_owner", [False, True], ids=["same owner", "next owner"])
def test_a_batch_on_some_shards_is_completed(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, how: dict[str, Any], is_next_owner: bool
) -> None:
    """By the same owner after an error, or by the next owner; until then, by readers."""
    failing: list[int] = []

    def between(request: Sent, send: Send) -> Answer:
        if not failing or request.operation != "_bulk" or b"~batch" in request.body[:40]:
            return send()
        assert len(request.items) == OPERATIONS
        if some := some_of(request.items, failing[0]):
            send(some)
        return failure()

    whole = index_name("forest")
    with opened(es, whole, **how) as store:
        answers = [assigned(store, each) for each in (FIRST, SECOND, THIRD)]
    expected = nodes(es, whole), hashes(es, whole)
    drawn = exploring.new_random(f"selections {how} {is_next_owner}").sample(SELECTIONS, 2)
    for selection in SELECTIONS if exploring.EFFORT > 1 else [0, *drawn, SELECTIONS[-1]]:
        forest = index_name("forest")
        with client_with(elasticsearch_url, between) as client:
            store = opened(client, forest, **how)
            assert assigned(store, FIRST) == answers[0]
            failing.append(selection)
            with pytest.raises(ServerError, match="failed on purpose"):
                assigned(store, SECOND)
            failing.clear()
            # A deletion must not forget a batch that is incomplete.
            store.writer.delete([])
            assert list(Maintenance(es, forest=forest).verify()) == []
            if is_next_owner:
                store.writer.lease.release()
                store = opened(client, forest, **how)
            store.begin()
            assert store.state.seq == len(FIRST) + len(SECOND)
            assert assigned(store, THIRD) == answers[2]
            store.close()
        assert without_seq(nodes(es, forest)) == without_seq(expected[0])
        assert hashes(es, forest) == expected[1]
        assert list(Maintenance(es, forest=forest).verify()) == []
        es.indices.delete(index=forest)


@in_shards
def test_a_batch_that_was_not_recorded_leaves_nothing(
    elasticsearch_url: str, index_name: Names, how: dict[str, Any]
) -> None:
    fails = False

    def between(request: Sent, send: Send) -> Answer:
        return failure() if fails and request.operation == "_bulk" else send()

    with (
        client_with(elasticsearch_url, between) as client,
        opened(client, index_name("forest"), **how) as store,
    ):
        assigned(store, FIRST)
        fails = True
        with pytest.raises(ServerError, match="failed on purpose"):
            assigned(store, SECOND)
        fails = False
        assert assigned(store, SECOND[1:2]) == [(SECOND[1].id, SECOND[1].id)]
        assert store.state.seq == 2


@in_shards
def test_a_batch_is_not_written_again_after_later_changes(
    es: Elasticsearch, index_name: Names, how: dict[str, Any]
) -> None:
    """Neither expired nodes nor damage that was repaired may return."""
    forest, far = index_name("forest"), f"{0xFFFF << 40:016x}"
    store = opened(es, forest, **how)
    assigned(store, [*FIRST, Arrival(far, 10 * AGING.retention_ms, hash=9)])
    assert sum(each.leaves + each.roots for each in list(store.expiring())[-1:]) == 1
    store.writer.lease.release()
    with ForestWriter(ForestIndex.find(es, forest)) as writer:
        assert nodes(es, forest).keys() == {far}
        changed = nodes(es, forest)[far]._replace(content_hash="", hash_seen_ms=NO_TIME)
        writer.write([], state=State(seq=7, time_ms=10 * AGING.retention_ms, origin_ms=0))
        writer.write([writer.index.relation.core.pack(changed)])
        writer.lease.release()
    with opened(es, forest, **how) as store:
        assert store.state.seq == 7
    assert nodes(es, forest)[far] == changed


@in_shards
def test_look_ups_and_verification_see_an_incomplete_batch(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, read: Read, how: dict[str, Any]
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    text, fails = ARTICLES[0]["text"], False

    def between(request: Sent, send: Send) -> Answer:
        is_nodes = request.operation == "_bulk" and b"~batch" not in request.body[:40]
        return failure() if fails and is_nodes else send()

    with client_with(elasticsearch_url, between) as client:
        dedup = Dedup(client, forest=forest, **how)
        dedup.setup(index)
        feed(client, dedup, index, ARTICLES[100:120])
        fails = True
        with pytest.raises(ServerError, match="failed on purpose"):
            feed(client, dedup, index, [ARTICLES[0]])
        assert not [node for node in nodes(es, forest).values() if node.seq == 21]
        assert list(Maintenance(es, forest=forest).verify([index])) == []
        found = read("similar_to_text", index, text, of={"forest": forest})
        fails = False
        dedup.close()
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [ARTICLES[0]])
    assert found.root == roots(es, index)[ARTICLES[0]["_id"]]
    assert nodes(es, forest)[found.root].seq == 21


def test_verify_waits_for_a_moment_without_a_new_batch(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards are refreshed one after the other, so nodes of the batches written meanwhile may be missing."""
    forest = index_name("forest")
    store, left = opened(es, forest, **SHARDED["3 shards"]), 3

    def between(request: Sent, send: Send) -> Answer:
        nonlocal left
        answer = send()
        if request.operation == "_refresh" and left:
            left -= 1
            assigned(store, [Arrival(f"{left * 0x9E3779B97F4A7C15 % 2**64:016x}", 0)])
        return answer

    with client_with(elasticsearch_url, between) as client, store:
        maintenance = Maintenance(client, forest=forest)
        assert list(maintenance.verify()) == []
        assert left == 0
        monkeypatch.setattr("esdedup.maintenance.forest_audit._SNAPSHOTS", 2)
        left = 10
        with pytest.raises(ServerBusy, match="verify it later"):
            list(maintenance.verify())


def test_a_node_on_another_shard_is_no_violation(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    """A refresh in the middle of a batch shows a content hash, but not its node."""
    forest, node = index_name("forest"), classic_node("0f" * 8, "0f" * 8, seq=1, ms=50)
    opened(es, forest, **SHARDED["5 shards"]).close()
    write(es, forest, StoredHash(f"{77:016x}", node.id, 50))
    is_late = True

    def between(request: Sent, send: Send) -> Answer:
        nonlocal is_late
        if (
            request.operation == "_search"
            and b"exists" in request.body
            and b"page" in request.body
            and is_late
        ):
            is_late = False
            answer = send()
            es.index(index=forest, id=node.id, document=document(es, forest, node))
            return answer
        return send()

    with client_with(elasticsearch_url, between) as client:
        assert list(Maintenance(client, forest=forest).verify()) == []
        assert not is_late
    remove(es, forest, node.id)
    (violation,) = Maintenance(es, forest=forest).verify()
    assert violation.kind is ViolationKind.STRAY_PAGE


def test_learned_boilerplate_stays_on_one_shard(es: Elasticsearch, index_name: Names) -> None:
    forest = index_name("forest")
    with (
        Pace(document_bytes=500).kept(),
        Dedup(es, forest=forest, batch_size=5, **SHARDED["3 shards"]) as dedup,
    ):
        list(dedup.enrich({"_id": each["id"], **each} for each in pages(40)))
    es.indices.refresh(index=forest)
    documents = {"bool": {"should": [{"exists": {"field": FIELD}}, {"ids": {"values": ["~learned"]}}]}}
    hits = es.search(index=forest, query=documents, size=100, explain=True)["hits"]["hits"]
    assert len(hits) > 3
    assert len({hit["_shard"] for hit in hits}) == 1
    with Pace(document_bytes=500).kept(), Dedup(es, forest=forest) as dedup:
        list(dedup.enrich({"_id": each["id"], **each} for each in pages(80)))
    assert list(Maintenance(es, forest=forest).verify()) == []


def test_a_later_edit_may_be_visible_first(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    forest = index_name("forest")
    opened(es, forest, **SHARDED["5 shards"]).close()
    edits = [Edit(number=number, kind="merge", by="x", at_ms=0, into="r") for number in range(1, 5)]
    for edit in edits:
        document_id, source = edit_document(edit)
        es.index(index=forest, id=document_id, document=source)

    def between(request: Sent, send: Send) -> Answer:
        # The second edit is not visible yet.
        return send(request.body.replace(b'"~edit-2"', b'"none"') if request.body else None)

    with client_with(elasticsearch_url, between) as client:
        assert execute(client, read_edits(forest)).edits == tuple(edits)


def test_shards_are_fixed_when_a_forest_is_made(es: Elasticsearch, index_name: Names) -> None:
    forest, log = index_name("forest"), index_name("forest")
    for shards, lookup in ((3, "memory"), (0, None), (1_025, "search")):
        with pytest.raises(SettingError, match="forest_shards"):
            opened(es, forest, lookup=lookup, forest_shards=shards)
    opened(es, forest, forest_shards=3).close()
    opened(es, log).close()
    metas = {name: ForestIndex.find(es, name).meta for name in (forest, log)}
    assert (metas[forest].format, metas[forest].shards, metas[forest].lookup) == (SHARDED_FORMAT, 3, "search")
    assert (metas[log].format, metas[log].shards, metas[log].lookup) == (FORMAT, 1, "memory")
    settings = es.indices.get_settings(index=forest)[forest]["settings"]["index"]
    assert settings["number_of_shards"] == "3"
    opened(es, forest).close()
    for name, shards in ((forest, 1), (log, 3)):
        with pytest.raises(ForestMismatch, match="its number of shards is"):
            opened(es, name, forest_shards=shards)


def test_an_index_that_was_split_is_refused(es: Elasticsearch, index_name: Names) -> None:
    whole, forest = index_name("forest"), index_name("forest")
    opened(es, whole, lookup="search").close()
    es.indices.add_block(index=whole, block="write")
    split = {"index.number_of_shards": 2, "index.blocks.write": None}
    es.indices.split(index=whole, target=forest, settings=split)
    with pytest.raises(ForestMismatch, match="was 1, and is now 2"):
        opened(es, forest)


@pytest.mark.parametrize("profile", exploring.PROFILES, ids=lambda profile: profile.name)
def test_a_rebuild_changes_the_number_of_shards(
    es: Elasticsearch, index_name: Names, profile: Profile
) -> None:
    """Statistics, roots and content hashes stay the same."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, profile=profile, lookup="search") as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES)
    maintenance = Maintenance(es, forest=forest)
    before, remembered, found = nodes(es, forest), hashes(es, forest), maintenance.stats()
    for how, shards, lookup in (
        ({"forest_shards": 3}, 3, "search"),
        ({}, 3, "search"),
        ({"forest_shards": 1}, 1, "search"),
        ({"forest_shards": 5, "lookup": "search"}, 5, "search"),
        ({"lookup": "memory"}, 1, "memory"),
        ({"forest_shards": 2}, 2, "search"),
    ):
        maintenance.rebuild([index], **how)
        meta = ForestIndex.find(es, forest).meta
        assert (meta.shards, meta.lookup) == (shards, lookup)
        assert without_hashes(nodes(es, forest)) == without_hashes(before)
        assert {each[0] for each in hashes(es, forest)} == {each[0] for each in remembered}
        again = maintenance.stats()
        assert (again.nodes, again.trees, again.seq) == (found.nodes, found.trees, found.seq)
        assert list(maintenance.verify([index])) == []
    assert_rearrivals_are_known(es, index, forest, profile)


@in_shards
def test_damage_on_any_shard_is_repaired(es: Elasticsearch, index_name: Names, how: dict[str, Any]) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, **how) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES)
    before, maintenance = nodes(es, forest), Maintenance(es, forest=forest)
    chance = exploring.new_random("damaged nodes")
    remove(es, forest, *chance.sample(sorted(before), 20))
    assert {each.kind for each in maintenance.verify([index])} >= {ViolationKind.NODE_GONE}
    assert maintenance.repair([index])[ViolationKind.NODE_GONE] >= 15
    assert list(maintenance.verify([index])) == []
    assert {node.id: node.root for node in nodes(es, forest).values()} == {
        node.id: node.root for node in before.values()
    }
    assert maintenance.expire().checked == 0

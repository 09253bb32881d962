"""If very many nodes share a key, no neighbour is missed, and only few of these nodes are read."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from elasticsearch import Elasticsearch, helpers

from benchmarks.signatures import as_nodes, documents
from esdedup import VERIFIED, Dedup, ForestMismatch, Maintenance, Reader
from esdedup.elastic.execute import execute
from esdedup.elastic.forest import meta
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lookup import look_up
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import StoredNode, keys_of, signatures_of
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.limits import Limits
from esdedup.fields import Fields
from esdedup.fingerprint.bands import PAIRS, TRIPLES, Layout
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, Profile
from esdedup.fingerprint.signature import MINHASH, SIGNATURE
from esdedup.forest import NO_TIME, Arrivals, Assignment
from esdedup.maintenance import ViolationKind
from esdedup.neighbours.relation import relation_of
from tests.support import stream
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch
from tests.support.assign import assign
from tests.support.between import Answer, Send, Sent, client_with
from tests.support.exploring import PROFILES
from tests.support.forests import ARTICLES, LOOKUPS, feed, kinds, nodes
from tests.support.names import Names

SEARCHED: dict[str, Any] = LOOKUPS["searched"]
# The value of the first three of a simhash's six blocks. The three blocks form one key.
SHARED = np.uint64(0x12345678) << np.uint64(31)
TEXT = "The harbour council voted on Monday to move the ferry to the northern pier from May on."
# Masks for the bits of the frequent keys: the first three blocks form one key, and the others form another.
FREQUENT = {
    "one key": [~(2**31 - 1) & 2**64 - 1],
    "two keys": [~(2**31 - 1) & 2**64 - 1, 2**31 - 1],
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrequentKeyForest:
    """A forest of roots that share one key but are otherwise far apart."""

    name: str
    profile: Profile
    ids: list[str]
    signatures: np.ndarray


@pytest.fixture(params=PROFILES, ids=lambda profile: profile.name)
def frequent_key_forest(
    request: pytest.FixtureRequest, es: Elasticsearch, index_name: Callable[[str], str]
) -> FrequentKeyForest:
    profile, count = request.param, 12_000
    forest = index_name("forest")
    ElasticStore(es, forest=forest, profile=profile, aging=AGING, **SEARCHED).close()
    random = np.random.default_rng(3)
    held = np.unique(SHARED | random.integers(0, 2**31, count, np.uint64) & ~MINHASH)
    relation = relation_of(profile)
    signatures = held if profile == CLASSIC else verified_signatures(held, random)
    put(es, forest, profile, signatures)
    return FrequentKeyForest(
        name=forest, profile=profile, ids=relation.ids(signatures), signatures=signatures
    )


def put(es: Elasticsearch, forest: str, profile: Profile, signatures: np.ndarray) -> None:
    """Write a root for each signature."""
    relation = relation_of(profile)
    nodes = [
        StoredNode(name, name, signature.tobytes(), seq, NO_TIME, NO_TIME)
        for seq, (name, signature) in enumerate(zip(relation.ids(signatures), signatures, strict=True), 1)
    ]
    written = documents(nodes, relation)
    helpers.bulk(es, ({"_index": forest, "_id": name, "_source": body} for name, body in written))
    es.indices.refresh(index=forest)


@pytest.fixture
def counted(elasticsearch_url: str) -> Iterator[tuple[Elasticsearch, list[int]]]:
    """Yield a client, and a list to which each of its searches adds its number of hits."""
    read: list[int] = []

    def between(request: Sent, send: Send) -> Answer:
        answer = send()
        if request.operation == "_search":
            read.append(len(json.loads(answer.body)["hits"]["hits"]))
        return answer

    with client_with(elasticsearch_url, between) as client:
        yield client, read


def verified_signatures(simhashes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return signatures that have `simhashes` as their first representatives and are otherwise random."""
    made = np.zeros(len(simhashes), SIGNATURE)
    made["representatives"] = random.integers(0, 2**64, made["representatives"].shape, np.uint64)
    made["representatives"][:, 0] = simhashes
    made["representatives"][:, 1:] |= MINHASH
    made["sketch"] = random.integers(0, 2**64, made["sketch"].shape, np.uint64)
    made["units"], made["runs"] = 5_000, 300
    return as_nodes(made)


def edited(signatures: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return copies of signatures in which up to three bits of a simhash are changed."""
    made = signatures.copy()
    simhashes = made if made.dtype == np.uint64 else made["representatives"][:, 0]
    for _ in range(3):
        # Keep the lowest bit, by which `verified` distinguishes simhashes from minhashes.
        simhashes ^= np.uint64(1) << random.integers(1, 64, len(made), np.uint64)
    return made


def test_frequent_keys_hide_no_neighbours_and_cost_few_reads(
    counted: tuple[Elasticsearch, list[int]], frequent_key_forest: FrequentKeyForest
) -> None:
    client, read = counted
    profile, relation = frequent_key_forest.profile, relation_of(frequent_key_forest.profile)
    random = np.random.default_rng(4)
    chosen = random.choice(len(frequent_key_forest.ids), 300)
    store = ElasticStore(client, forest=frequent_key_forest.name, profile=profile, aging=AGING, **SEARCHED)

    def arrive(signatures: np.ndarray) -> list[Assignment]:
        times_ms = np.full(len(signatures), NO_TIME)
        ids = relation.ids(signatures)
        hashes = np.array([int(name[:16], 16) for name in ids], np.uint64)
        exist = np.ones(len(signatures), bool)
        batch = Arrivals(signatures=signatures, exist=exist, content_hashes=hashes, times_ms=times_ms)
        return assign(store, batch, now_ms=NOW_MS)

    arriving = edited(frequent_key_forest.signatures[chosen], random)
    simhashes = relation.representatives(frequent_key_forest.signatures)[:, 0]
    for at, answer in enumerate(arrive(arriving)):
        distances = np.bitwise_count(simhashes ^ relation.representatives(arriving[at : at + 1])[0, 0])
        near = set(np.flatnonzero(distances <= 3).tolist())
        assert answer.root in {frequent_key_forest.ids[row] for row in near}
    first = sum(read)
    read.clear()
    arrive(edited(frequent_key_forest.signatures[chosen], random))
    store.close()
    # A full page of results for the first batch shows that the key is frequent, and the store remembers this
    # for the next batch. The remaining hits are for keys with only some of the shared blocks.
    assert first < 16_000
    assert sum(read) < 6_000


@pytest.mark.parametrize("frequent", FREQUENT.values(), ids=FREQUENT)
def test_looking_up_frequent_keys_reads_few_nodes(
    es: Elasticsearch,
    counted: tuple[Elasticsearch, list[int]],
    index_name: Callable[[str], str],
    frequent: list[int],
) -> None:
    """3,000 nodes share each frequent key. A look-up narrows the search down by other blocks."""
    client, read = counted
    forest, random, profile = index_name("forest"), np.random.default_rng(5), CLASSIC
    relation = relation_of(profile)
    ElasticStore(es, forest=forest, profile=profile, aging=AGING, **SEARCHED).close()
    fingerprints = Fingerprinter(profile).fingerprint([TEXT])
    own = fingerprints.signatures[0]
    near = own ^ np.uint64(0b111)
    strangers = [
        own & np.uint64(mask) | random.integers(0, 2**64, 3_000, np.uint64) & ~np.uint64(mask)
        for mask in frequent
    ]
    put(es, forest, profile, np.concatenate([[near], *strangers]))
    (node_of_near,) = relation.ids(np.array([near]))
    of: dict[str, Any] = {
        "fields": Fields(),
        "forest": forest,
        "profile": profile,
        "learned": LearnedCopy(),
    }
    found, is_exact = execute(client, look_up(TEXT, index=forest, **of))
    assert (found.root, is_exact) == (node_of_near, True)
    assert sum(read) < 1_500
    # Feeding an article reads no more nodes than the look-up, and feeding the next article reads fewer.
    store = ElasticStore(client, forest=forest, profile=profile, aging=AGING, **SEARCHED)
    for most in (1_500, 500):
        read.clear()
        arrivals = Arrivals.of(fingerprints, times_ms=[NO_TIME])
        store.begin()
        (found,) = store.nodes(arrivals, now_ms=0).assign(arrivals, store.state, now_ms=0).assignments
        assert found.root == node_of_near
        assert sum(read) < most
    store.close()


def test_a_frequent_key_hides_no_other_sentence(es: Elasticsearch, index_name: Names) -> None:
    """Its first sentence has the frequent key of the arrival; its second is near, but lacks that key."""
    forest, random, relation = index_name("forest"), np.random.default_rng(6), relation_of(VERIFIED)
    store = ElasticStore(es, forest=forest, profile=VERIFIED, aging=AGING, **SEARCHED)
    held = SHARED | random.integers(0, 2**31, 1_502, np.uint64) & ~MINHASH
    arriving, near, *_ = others = verified_signatures(held, random)
    near["representatives"][1] = arriving["representatives"][0] ^ np.uint64(1 << 35 | 1 << 20)
    near["sketch"] = arriving["sketch"]
    stored = as_nodes(others[1:])
    put(es, forest, VERIFIED, stored)
    for _ in range(2):
        arrivals = Arrivals(
            signatures=others[:1],
            exist=np.ones(1, bool),
            content_hashes=np.array([1], np.uint64),
            times_ms=np.full(1, NO_TIME),
        )
        store.begin()
        (found,) = (
            store.nodes(arrivals, now_ms=NOW_MS).assign(arrivals, store.state, now_ms=NOW_MS).assignments
        )
        assert found.root == relation.ids(stored)[0]
    store.close()


def test_all_near_nodes_of_a_frequent_key_are_read(
    es: Elasticsearch, index_name: Callable[[str], str]
) -> None:
    """All nodes of the key are near, so narrowing down the key must keep all of them."""
    profile = CLASSIC
    limits = Limits(finer_keys_per_node=10**9, frequent_nodes=1, max_hits=50)
    how = {"aging": AGING, "limits": limits, **SEARCHED}
    store = ElasticStore(es, forest=index_name("forest"), profile=profile, **how)
    centre = 0x0123456789ABCDEF
    ring = [
        Arrival(f"{centre ^ 1 << one ^ 1 << two:016x}", NO_TIME) for one in range(64) for two in range(one)
    ]
    assign(store, as_batch(ring[:300]), now_ms=NOW_MS)
    es.indices.refresh(index=store._index.name)
    batch = as_batch([Arrival(f"{centre:016x}", NO_TIME)])
    store.begin()
    assert len(store.nodes(batch, now_ms=0)) == 300
    store.close()


def test_a_forest_keeps_its_keys_until_it_is_rebuilt(
    es: Elasticsearch, index_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forests of earlier versions have the keys of `PAIRS`."""
    index, forest = index_name("articles"), index_name("forest")
    half = len(ARTICLES) // 2
    maintenance = Maintenance(es, forest=forest)
    given = [{"id": each["_id"], "text": each["text"]} for each in ARTICLES]
    # What the reader caches, it uses to the end.
    monkeypatch.setattr("esdedup.elastic.execute._AGE_S", 3_600)
    reader, looked_up = Reader(es, forest=forest, profile=CLASSIC), []
    texts = [[each["text"].replace(" in ", word) for each in ARTICLES] for word in (" in ", " inn ")]
    own, others = (Fingerprinter(CLASSIC).fingerprint(each).signatures for each in texts)
    changed = [texts[1][at] for at in np.flatnonzero(own != others)[::2]]
    with monkeypatch.context() as earlier:
        earlier.setattr(meta, "TRIPLES", PAIRS)
        with Dedup(es, forest=forest, profile=CLASSIC, **SEARCHED) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, ARTICLES[:half])
    with Dedup(es, forest=forest, profile=CLASSIC, **SEARCHED) as dedup:
        feed(es, dedup, index, ARTICLES[half:])
    roots, by_id = stream.expected(given, CLASSIC)
    for layout in (PAIRS, TRIPLES):
        looked_up.append([reader.similar_to_text(index, each).root for each in changed])
        assert ForestIndex.find(es, forest).meta.key_layout == layout
        assert (stream.indexed(es, index), stream.nodes(es, forest)) == (roots, by_id)
        assert list(maintenance.verify([index])) == []
        count = es.count(index=forest, query={"terms": {"keys": terms_of_all(es, forest, layout)}})["count"]
        assert count == len(by_id)
        before = ForestIndex.find(es, forest)
        maintenance.rebuild([index])
        if layout == PAIRS:
            with pytest.raises(ForestMismatch, match="replaced by one with other settings"):
                ForestWriter(before)
    assert looked_up[0] == looked_up[1]
    assert 5 < sum(root is not None for root in looked_up[0]) < len(changed)


def terms_of_all(es: Elasticsearch, forest: str, layout: Layout) -> list[str]:
    """Return the first term of each node of a forest."""
    found = list(nodes(es, forest).values())
    return [terms[0] for terms in keys_of(found, relation_of(CLASSIC), layout)]


# Boilerplate is kept, because the sentence that all articles share would otherwise be left out.
PROFILE = VERIFIED.with_changes(keep_boilerplate=True)
MAX_POSTINGS = 64
_WORDS = [
    "市场",
    "经济",
    "政府",
    "研究",
    "技术",
    "企业",
    "合作",
    "学校",
    "医院",
    "天气",
    "足球",
    "音乐",
    "河流",
]


def sentence(chance: Random, length: int) -> str:
    return "".join(chance.choice(_WORDS) + str(chance.randrange(1_000)) for _ in range(length)) + "。"


def articles() -> list[dict[str, Any]]:
    """Return more stories with the same first sentence than one key may index, and then reprints."""
    common = sentence(Random(1), 30)
    stories = [
        common + "".join(sentence(Random(each), 15) for _ in range(4)) for each in range(MAX_POSTINGS + 20)
    ]
    texts = [*stories, *(story + sentence(Random(2), 3) for story in stories[10::10])]
    return [{"id": str(number), "text": text} for number, text in enumerate(texts)]


def test_forests_with_a_frequent_key_are_verified_and_rebuilt(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("articles"), index_name("forest")
    given = [{"_id": each["id"], "text": each["text"]} for each in articles()]
    maintenance = Maintenance(es, forest=forest)
    for part in (given[: MAX_POSTINGS + 10], given[MAX_POSTINGS + 10 :]):
        with Dedup(es, forest=forest, profile=PROFILE, batch_size=30) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, part)
        assert list(maintenance.verify([index])) == []
        before = nodes(es, forest)
        es.indices.delete(index=forest)
        maintenance.rebuild([index])
        assert nodes(es, forest) == before
    roots, by_id = stream.expected(articles(), PROFILE)
    assert (stream.indexed(es, index), stream.nodes(es, forest)) == (roots, by_id)
    assert len(set(roots.values())) < len(by_id)
    relation = relation_of(PROFILE)
    indexed = relation.indexed(signatures_of(before.values(), relation)).sum(axis=1)
    assert indexed.min() < indexed.max()
    # An article with fewer keys than other articles is checked, too.
    last = given[-1]["_id"]
    es.update(index=index, id=last, doc={"dedup": {"bands": ["000000000"]}}, refresh=True)
    assert kinds(maintenance, index) == {ViolationKind.WRONG_BANDS}

"""Helpers that feed, read and change an index of articles and its forest."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.owner import Owner

from benchmarks.signatures import documents
from esdedup import VERIFIED, ArticleRejected, Dedup, Fields, Maintenance, Profile
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.lease import LEASE_ID
from esdedup.elastic.forest.log import EVERY_LOG, LogDocument, read_last_number
from esdedup.elastic.forest.meta import Lookup
from esdedup.elastic.forest.search import EVERY_HASH
from esdedup.elastic.forest.stored import Stored, StoredHash, StoredNode, stored_of
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC
from esdedup.fingerprint.simhash import from_hex
from esdedup.forest import NO_TIME, State
from esdedup.maintenance import ViolationKind
from tests import sample
from tests.support.names import Names

LOOKUPS: dict[str, dict[str, Any]] = {
    "searched": {"lookup": "search", "memory_bytes": 0},
    "both": {"lookup": "search", "memory_bytes": 2**30},
    "in memory": {"lookup": "memory", "memory_bytes": 2**30},
}
"""The ways in which a store can find nodes."""

SHARDED: dict[str, dict[str, Any]] = {
    "3 shards": {"lookup": "search", "memory_bytes": 0, "forest_shards": 3},
    "5 shards": {"lookup": "search", "memory_bytes": 2**30, "forest_shards": 5},
}

in_each_way = pytest.mark.parametrize(
    "lookup", [*LOOKUPS.values(), *SHARDED.values()], ids=[*LOOKUPS, *SHARDED]
)

in_both_lookups = pytest.mark.parametrize("lookup", ["memory", "search"])

Read = Callable[..., Any]
TEXT = "The quick brown fox jumps over the lazy dog near the river"
ARTICLES = [
    {"_id": article["id"], **{name: value for name, value in article.items() if name != "id"}}
    for article in sample.articles(300)
]


def owner_of(dedup: Dedup) -> Owner:
    """Return the owner of a `Dedup`."""
    assert isinstance(dedup._owner, Owner)
    return dedup._owner


def feed(es: Elasticsearch, dedup: Dedup, index: str, articles: list[dict[str, Any]], **how: Any) -> None:
    actions = [{"_index": index, **article} for article in articles]
    helpers.bulk(es, dedup.enrich(actions, **how), refresh=True)


def feed_sample(
    es: Elasticsearch, name: Names, profile: Profile, *, lookup: Lookup | None = None
) -> tuple[str, str]:
    """Feed the sample's articles to a new index and forest; return their names."""
    index, forest = name("articles"), name("forest")
    with Dedup(es, forest=forest, profile=profile, lookup=lookup) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, ARTICLES)
    return index, forest


def roots(es: Elasticsearch, index: str) -> dict[str, str]:
    es.indices.refresh(index=index)
    hits = helpers.scan(es, index=index, _source=["dedup.root"])
    return {hit["_id"]: hit["_source"]["dedup"]["root"] for hit in hits if "dedup" in hit["_source"]}


def nodes(es: Elasticsearch, forest: str) -> dict[str, StoredNode]:
    """Return the nodes of a forest, by id."""
    es.indices.refresh(index=forest)
    return {node.id: node for node in all_nodes(ForestIndex.find(es, forest))}


def all_nodes(index: ForestIndex) -> Iterator[StoredNode]:
    """Yield the readable nodes of a forest, tree by tree."""
    if index.log is not None:
        index.run(index.log.update())
    misplaced: list[StoredNode] = []
    yield from index.nodes.by_tree(damaged=[], misplaced=misplaced)
    yield from misplaced


def without_hashes(found: dict[str, StoredNode]) -> list[StoredNode]:
    """Return nodes without content hashes; a node with several hashes may store any one of them."""
    return sorted(node._replace(content_hash="", hash_seen_ms=NO_TIME) for node in found.values())


def hashes(es: Elasticsearch, forest: str) -> set[tuple[int, str | None, int]]:
    """Return the remembered content hashes, with their nodes and the times when they were last seen.

    If several documents hold a content hash, the latest document is used.
    """
    es.indices.refresh(index=forest)
    index = ForestIndex.find(es, forest)
    status = index.status()
    live_since_ms = status.live_since_ms(status.aging)
    if index.log is not None:
        index.run(index.log.update())
        extra: list[Stored] = [each for each in index.log.all() if each.is_hash]
    else:
        extra = [each for hits in index.hit_pages(EVERY_HASH) for each in stored_of(hits, index.relation)]
    own = [node.own_hash for node in all_nodes(index)]
    found = [each for each in [*extra, *own] if isinstance(each, StoredHash)]
    latest = {each.content_hash: each for each in sorted(found, key=lambda each: each.seen_ms)}
    live = (each for each in latest.values() if each.seen_ms >= live_since_ms)
    return {(int(each.content_hash, 16), each.node, each.seen_ms) for each in live}


def classic_node(node_id: str, root: str, *, seq: int, ms: int) -> StoredNode:
    """Return a node of `classic` that was made and last seen at `ms`; its id is its simhash."""
    return StoredNode(node_id, root, from_hex([node_id]).tobytes(), seq, ms, ms)


def document(es: Elasticsearch, forest: str, stored: Stored) -> dict[str, Any]:
    """Return the document that the forest's index stores for a node or content hash."""
    index = ForestIndex.find(es, forest)
    ((_, body),) = documents([stored], index.relation)
    return body


def write(es: Elasticsearch, forest: str, *changed: Stored) -> None:
    """Write nodes or content hashes directly, bypassing the owner and the laws."""
    index = ForestIndex.find(es, forest)
    if index.log is not None:
        _write_log(es, index, changed, State())
        return
    for each in changed:
        es.index(index=forest, id=each.document_id, document=document(es, forest, each))
    es.indices.refresh(index=forest)


def remove(es: Elasticsearch, forest: str, *document_ids: str) -> None:
    """Delete nodes or content hashes directly, bypassing the owner and the laws."""
    index = ForestIndex.find(es, forest)
    if index.log is None:
        for each in document_ids:
            es.delete(index=forest, id=each)
        es.indices.refresh(index=forest)
        return
    index.run(index.log.update())
    left = [each for each in index.log.all() if each.document_id not in document_ids]
    state = index.status().state
    for hit in es.search(index=forest, query=EVERY_LOG, size=10_000, source=False)["hits"]["hits"]:
        es.delete(index=forest, id=hit["_id"])
    es.indices.refresh(index=forest)
    _write_log(es, index, left, state)


def _write_log(es: Elasticsearch, index: ForestIndex, stored: Iterable[Stored], state: State) -> None:
    core = index.relation.core
    log, _ = core.log([*map(core.pack, stored)])
    number = index.run(read_last_number(index.name)) + 1
    document_id, source = LogDocument(number, log, NO_TIME, state).json()
    es.index(index=index.name, id=document_id, document=json.loads(source), refresh=True)


def renewing_threads() -> set[threading.Thread]:
    """Return the threads of this process that renew leases."""
    return {thread for thread in threading.enumerate() if thread.name == "esdedup-lease"}


def expire_lease(es: Elasticsearch, forest: str) -> None:
    """Make the lease on the forest look expired to every process except the owner."""
    lease = es.get(index=forest, id=LEASE_ID)["_source"]["lease"]
    es.index(index=forest, id=LEASE_ID, document={"lease": lease | {"renewed_s": 0.0}})


def kinds(maintenance: Maintenance, index: str) -> set[ViolationKind]:
    return {violation.kind for violation in maintenance.verify([index])}


def a_leaf(found: dict[str, StoredNode]) -> StoredNode:
    return next(node for node in found.values() if not node.is_root)


def assert_rearrivals_are_known(es: Elasticsearch, index: str, forest: str, profile: Profile) -> None:
    """Assert that each article gets its current root when the articles are fed again."""
    before = roots(es, index)
    with Dedup(es, forest=forest, profile=profile) as dedup:
        again = dedup.enrich({"_index": index, **article} for article in ARTICLES)
        assert {each["_id"]: each["_source"]["dedup"]["root"] for each in again} == before


def stories(count: int) -> list[list[str]]:
    """Return sentences in three versions each; versions are near each other in `classic`, but not equal."""
    random = Random(1)
    fingerprinter = Fingerprinter(CLASSIC)
    words = ["会议", "公司", "市场", "经济", "发展", "政府", "研究", "技术", "项目", "企业", "合作", "投资"]
    found: list[list[str]] = []
    while len(found) < count:
        sentence = [random.choice(words) + str(random.randrange(10**6)) for _ in range(40)]
        versions = ["".join(sentence)]
        for at in range(40):
            edited = "".join([*sentence[:at], random.choice(words), *sentence[at:]])
            simhashes = fingerprinter.fingerprint([*versions, edited]).signatures
            distances = np.bitwise_count(simhashes[:-1] ^ simhashes[-1])
            if (distances > 0).all() and (distances <= 3).all():
                versions.append(edited)
            if len(versions) == 3:
                found.append(versions)
                break
    return found


def clustering(rejected: list[ArticleRejected]) -> Clustering:
    return Clustering(
        profile=VERIFIED,
        fields=Fields(),
        use_time=False,
        retention=timedelta(days=30),
        on_rejected=rejected.append,
    )

"""Compares the forest in Elasticsearch with plain bulk requests that index node documents."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.measure import Sizes
from benchmarks.rows import Row, duration_s, less_is_better, more_is_better, rate
from benchmarks.server import Run
from benchmarks.signatures import NOW_MS, Held, Signatures, documents
from benchmarks.unit_costs import bytes_of, bytes_per_document
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.forest.stored import Document, StoredNode
from esdedup.elastic.mappings import forest_index
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Store
from esdedup.neighbours.relation import relation_of
from tests.support.assign import assign

_TWENTY_THOUSAND, _MILLION = 20_000, 1_000_000
_BATCH = 1_000
# The peer's index and ours are refreshed after this many nodes.
_REFRESHED_AT_ONCE = 20_000
_ROUNDS = 6
# The ways in which the store finds nodes.
_LOOKUPS: dict[str, dict[str, Any]] = {
    "in memory": {"lookup": "memory", "memory_bytes": 2**31},
    "that are searched for": {"lookup": "search", "memory_bytes": 0},
}
_AGING = Aging.of(retention=timedelta(days=30))
_FOREST, _PEER = "benchmark-forest", "benchmark-bulk"
# The second one is Lucene's, with DEFLATE. `best_compression` needs a library (Zstandard) that the embedded
# server lacks.
_CODECS = ("default", "legacy_best_compression")
_BULK = "helpers.bulk of a node document each"


def elastic(run: Run) -> list[Row]:
    """Assign with `verified`, the default profile, at one million nodes."""
    return _rows("elastic", run, VERIFIED)


def elastic_classic(run: Run) -> list[Row]:
    """Assign with `classic`, at one million nodes."""
    return _rows("elastic-classic", run, CLASSIC)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PostingsBytes:
    """The size of one part of a forest's index, with each codec."""

    part: str
    # Bytes per node, by the value of `index.codec`.
    bytes_each: Mapping[str, float]
    table: str = "postings"

    def cells(self) -> dict[str, str]:
        """Return the text of each column."""
        return {"bytes a node": self.part} | {
            f"`{codec}`": f"{each:,.1f}" for codec, each in self.bytes_each.items()
        }


def postings(run: Run) -> list[PostingsBytes]:
    """Measure the parts of the index of nodes that are searched for, with both codecs of Elasticsearch."""
    count = run.size(_TWENTY_THOUSAND)
    sizes: dict[str, dict[str, float]] = {}
    held = Held.random(VERIFIED, count, np.random.default_rng(count))
    with server.client(run, lifetime_s=3_600) as client:
        for codec in _CODECS:
            client.options(ignore_status=404).indices.delete(index=_PEER)
            body = forest_index(meta={})
            body["settings"]["codec"] = codec
            client.indices.create(index=_PEER, **body)
            for at in range(0, count, _REFRESHED_AT_ONCE):
                _bulk(client, _documents(VERIFIED, held.signatures[at : at + _REFRESHED_AT_ONCE]))
            _wait_for_sources(client, _PEER)
            total = bytes_per_document(client, _PEER)
            usage = client.perform_request("POST", f"/{_PEER}/_disk_usage?run_expensive_tasks=true")[_PEER]
            keys, every = usage["fields"]["keys"], usage["all_fields"]
            parts = {
                "keys: terms and postings": keys["inverted_index"]["total_in_bytes"],
                "ids and other terms": every["inverted_index"]["total_in_bytes"]
                - keys["inverted_index"]["total_in_bytes"],
                "stored fields, which the codec compresses": every["stored_fields_in_bytes"],
                "columns (doc values): signatures, roots, times": every["doc_values_in_bytes"],
                "points": every["points_in_bytes"],
            }
            for part, size in (parts | {"the index, merged": total * count}).items():
                sizes.setdefault(part, {})[codec] = size / count
        client.indices.delete(index=_PEER)
    return [PostingsBytes(part=part, bytes_each=each) for part, each in sizes.items()]


def _rows(table: str, run: Run, profile: Profile) -> list[Row]:
    """Assign and commit batches of 1,000, while the peer only writes prepared documents.

    Then measure the disk space per node.
    """
    count = run.size(_MILLION)
    random = np.random.default_rng(count)
    held = Held.random(profile, count, random)
    case, rows = f"{profile.name}, {count:,} nodes", list[Row]()
    with server.client(run, lifetime_s=4 * 3_600) as client:
        _empty(client)
        for at in range(0, count, _REFRESHED_AT_ONCE):
            _bulk(client, _documents(profile, held.signatures[at : at + _REFRESHED_AT_ONCE]))
        ours_bytes = {}
        for found, how in _LOOKUPS.items():
            with ElasticStore(client, forest=_FOREST, profile=profile, aging=_AGING, **how) as store:
                held.fill(store)
                rows += _assigning(
                    client,
                    store,
                    held,
                    random,
                    table=table,
                    case=f"{case} {found}",
                    rounds=run.size(_ROUNDS),
                )
                node_count = store.contents().nodes
            _wait_for_sources(client, _FOREST, _PEER)
            ours_bytes[found] = bytes_of(client, _FOREST) / node_count
            client.indices.delete(index=_FOREST)
        theirs_bytes = bytes_per_document(client, _PEER)
        client.indices.delete(index=_PEER)
    return [
        *rows,
        *(
            less_is_better(
                table, f"{case} {found}, the index, merged", ours, _BULK, theirs_bytes, "bytes a node"
            )
            for found, ours in ours_bytes.items()
        ),
    ]


def _wait_for_sources(client: Elasticsearch, *names: str) -> None:
    """Wait until Elasticsearch finds that no replica needs the whole `_source`, and may drop it."""
    client.indices.flush(index=names)
    time.sleep(Sizes().kept_for_recovery_s)


def _assigning(
    client: Elasticsearch,
    store: Store,
    held: Held,
    random: np.random.Generator,
    *,
    table: str,
    case: str,
    rounds: int,
) -> list[Row]:
    ours_s, theirs_s = _durations_s(client, store, held, random, rounds)
    ours, theirs = rate(_BATCH, ours_s), rate(_REFRESHED_AT_ONCE, theirs_s)
    worst_ms = 1_000 * max(ours_s)
    return [
        more_is_better(table, f"{case}, assign in batches of 1,000", ours, _BULK, theirs, "arrivals/s"),
        Row(table=table, case=f"{case}, slowest of {len(ours_s):,} batches", ours=worst_ms, unit="ms"),
    ]


def _durations_s(
    client: Elasticsearch, store: Store, held: Held, random: np.random.Generator, rounds: int
) -> tuple[Sequence[float], Sequence[float]]:
    """Return the durations of our batches, and of the peer's rounds, each of 20 batches."""
    ours_s, theirs_s = [], []
    each_round = _REFRESHED_AT_ONCE // _BATCH
    for number in range(rounds):
        batches = [held.batch(_BATCH, random) for _ in range(each_round)]
        for at, batch in enumerate(batches, number * each_round):
            arrivals = held.arrivals_after(batch, at)
            ours_s.append(duration_s(lambda arrivals=arrivals: assign(store, arrivals, now_ms=NOW_MS)))
        made = _documents(held.profile, np.concatenate(batches))
        theirs_s.append(duration_s(lambda made=made: _bulk(client, made)))
    return ours_s, theirs_s


def _empty(client: Elasticsearch) -> None:
    for index in (_FOREST, _PEER):
        client.options(ignore_status=404).indices.delete(index=index)
    client.indices.create(index=_PEER, **forest_index(meta={}))


def _documents(profile: Profile, signatures: Signatures) -> list[Document]:
    relation = relation_of(profile)
    nodes = [
        StoredNode(node_id, node_id, signature.tobytes(), seq, 0, 0)
        for seq, (node_id, signature) in enumerate(zip(relation.ids(signatures), signatures, strict=True))
    ]
    return documents(nodes, relation)


def _bulk(client: Elasticsearch, made: list[Document]) -> None:
    actions = ({"_index": _PEER, "_id": node_id, "_source": document} for node_id, document in made)
    helpers.bulk(client, actions, chunk_size=_BATCH)
    client.indices.refresh(index=_PEER)

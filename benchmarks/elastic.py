"""The forest in Elasticsearch against plain bulk requests of the same node documents."""

from datetime import timedelta

import numpy as np
from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.rows import Row, duration_s, more_is_better, rate
from benchmarks.signatures import Signatures, arrivals_of, batch_of, random_ones
from esdedup.elastic.forest.documents import Document, StoredNode, documents
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.mappings import forest_index
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Aging, Forest
from esdedup.neighbours.relation import relation_of

_BATCH = 1_000
_FILLED_AT_ONCE = 5_000
# Both refresh after so many nodes.
_REFRESHED_AT_ONCE = 20_000
_ROUNDS = 6
_FOREST, _PEER = "benchmark-forest", "benchmark-bulk"


def elastic() -> list[Row]:
    """Assign as `classic` does, at one million nodes."""
    return _rows("elastic", CLASSIC, 1_000_000)


def elastic_verified() -> list[Row]:
    """Assign as `verified` does, at 200,000 nodes."""
    return _rows("elastic-verified", VERIFIED, 200_000)


def _rows(table: str, profile: Profile, count: int) -> list[Row]:
    """Assign in batches of 1,000, by the whole protocol; the peer only writes documents made before.

    Then measure the space that a node takes on disk.
    """
    random = np.random.default_rng(count)
    held = random_ones(profile, count, random)
    with server.client(lifetime_s=3_600) as client:
        store = _empty(client, profile)
        try:
            forest = Forest(store)
            for at in range(0, count, _FILLED_AT_ONCE):
                forest.assign(arrivals_of(profile, held[at : at + _FILLED_AT_ONCE]), now_ms=0)
            for at in range(0, count, _REFRESHED_AT_ONCE):
                _bulk(client, _documents(profile, held[at : at + _REFRESHED_AT_ONCE]))
            ours_s, theirs_s = [], []
            for _ in range(_ROUNDS):
                batches = [
                    batch_of(profile, _BATCH, held, random) for _ in range(_REFRESHED_AT_ONCE // _BATCH)
                ]
                ours_s.append(
                    duration_s(
                        lambda batches=batches: [
                            forest.assign(arrivals_of(profile, each), now_ms=0) for each in batches
                        ]
                    )
                )
                made = _documents(profile, np.concatenate(batches))
                theirs_s.append(duration_s(lambda made=made: _bulk(client, made)))
            node_bytes = _bytes_a_node(client)
        finally:
            store.close()
            for index in (_FOREST, _PEER):
                client.indices.delete(index=index)
    case = f"assign in batches of 1,000, {count:,} nodes"
    ours, theirs = rate(_REFRESHED_AT_ONCE, ours_s), rate(_REFRESHED_AT_ONCE, theirs_s)
    return [
        more_is_better(table, case, ours, "helpers.bulk of node documents", theirs, "arrivals/s"),
        Row(table=table, case="the forest's index, merged", ours=node_bytes, unit="bytes a node"),
    ]


def _bytes_a_node(client: Elasticsearch) -> float:
    patient = client.options(request_timeout=1_800)
    patient.indices.forcemerge(index=_FOREST, max_num_segments=1)
    patient.indices.flush(index=_FOREST)
    primaries = client.indices.stats(index=_FOREST)["_all"]["primaries"]
    return float(primaries["store"]["size_in_bytes"] / primaries["docs"]["count"])


def _empty(client: Elasticsearch, profile: Profile) -> ElasticStore:
    for index in (_FOREST, _PEER):
        client.options(ignore_status=404).indices.delete(index=index)
    client.indices.create(index=_PEER, **forest_index(meta={}))
    aging = Aging.of(retention=timedelta(days=30))
    return ElasticStore(client, forest=_FOREST, profile=profile, aging=aging)


def _documents(profile: Profile, signatures: Signatures) -> list[Document]:
    relation = relation_of(profile)
    nodes = [
        StoredNode(node_id, node_id, signature.tobytes(), seq, 0, 0)
        for seq, (node_id, signature) in enumerate(zip(relation.ids(signatures), signatures, strict=True))
    ]
    return documents(nodes, relation, profile.layout)


def _bulk(client: Elasticsearch, made: list[Document]) -> None:
    actions = ({"_index": _PEER, "_id": node_id, "_source": document} for node_id, document in made)
    helpers.bulk(client, actions, chunk_size=_BATCH)
    client.indices.refresh(index=_PEER)

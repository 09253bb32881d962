"""The forest in Elasticsearch against plain bulk requests of the same node documents."""

from datetime import timedelta

import numpy as np
from elasticsearch import Elasticsearch, helpers

from benchmarks import server
from benchmarks.fingerprints import Fingerprints, arrivals_of, batch_of, random_ones
from benchmarks.rows import Row, duration_s, more_is_better, rate
from esdedup.elastic.nodes import StoredNode, documents
from esdedup.elastic.store import ElasticStore
from esdedup.forest import Aging, Forest
from esdedup.profile import CLASSIC
from esdedup.simhash import to_hex
from esdedup.templates import forest_index

_NODES = 1_000_000
_BATCH = 1_000
# Both make visible what they wrote after so many nodes.
_REFRESHED_AT_ONCE = 20_000
_ROUNDS = 6
_FOREST, _PEER = "benchmark-forest", "benchmark-bulk"


def elastic() -> list[Row]:
    """Assign in batches of 1,000, the whole protocol; the peer only writes what comes of it."""
    random = np.random.default_rng(_NODES)
    held = random_ones(_NODES, random)
    with server.client(lifetime_s=3_600) as client:
        store = _empty(client)
        try:
            forest = Forest(store)
            for at in range(0, _NODES, 5_000):
                forest.assign(arrivals_of(held[at : at + 5_000]), now_ms=0)
            for at in range(0, _NODES, _REFRESHED_AT_ONCE):
                _bulk(client, held[at : at + _REFRESHED_AT_ONCE])
            ours_s, theirs_s = [], []
            for _ in range(_ROUNDS):
                batches = [batch_of(_BATCH, held, random) for _ in range(_REFRESHED_AT_ONCE // _BATCH)]
                ours_s.append(
                    duration_s(
                        lambda batches=batches: [
                            forest.assign(arrivals_of(each), now_ms=0) for each in batches
                        ]
                    )
                )
                theirs_s.append(duration_s(lambda batches=batches: _bulk(client, np.concatenate(batches))))
        finally:
            store.close()
            for index in (_FOREST, _PEER):
                client.indices.delete(index=index)
    case = "assign in batches of 1,000, one million nodes"
    ours, theirs = rate(_REFRESHED_AT_ONCE, ours_s), rate(_REFRESHED_AT_ONCE, theirs_s)
    return [more_is_better("elastic", case, ours, "helpers.bulk of node documents", theirs, "arrivals/s")]


def _empty(client: Elasticsearch) -> ElasticStore:
    for index in (_FOREST, _PEER):
        client.options(ignore_status=404).indices.delete(index=index)
    client.indices.create(index=_PEER, **forest_index(meta={}))
    aging = Aging.of(retention=timedelta(days=30))
    return ElasticStore(client, forest=_FOREST, profile=CLASSIC, aging=aging)


def _bulk(client: Elasticsearch, fingerprints: Fingerprints) -> None:
    nodes = [StoredNode(each, each, seq, 0, 0) for seq, each in enumerate(to_hex(fingerprints))]
    actions = (
        {"_index": _PEER, "_id": node_id, "_source": document}
        for node_id, document in documents(nodes, CLASSIC.layout)
    )
    helpers.bulk(client, actions, chunk_size=_BATCH)
    client.indices.refresh(index=_PEER)

"""A key that very many nodes share: nothing is missed, and it costs a page, not all of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup.elastic.forest.documents import StoredNode, documents
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.limits import Limits
from esdedup.fingerprint.bands import LAYOUTS, Layout
from esdedup.fingerprint.profile import CLASSIC
from esdedup.fingerprint.simhash import to_hex
from esdedup.forest import NO_TIME, Forest
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch

SHARED_NODES = 30_000
# The first two of five blocks, which are one key.
SHARED = np.uint64(0x123456) << np.uint64(38)


@pytest.fixture
def hot_forest(es: Elasticsearch, index_name: Callable[[str], str]) -> tuple[str, np.ndarray]:
    """A forest of roots that share one key, and lie far apart otherwise."""
    forest = index_name("forest")
    ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING).close()
    random = np.random.default_rng(3)
    held = np.unique(SHARED | random.integers(0, 2**38, SHARED_NODES, np.uint64))
    nodes = [
        StoredNode(name, name, simhash.tobytes(), seq, NO_TIME, NO_TIME)
        for seq, (name, simhash) in enumerate(zip(to_hex(held), held, strict=True), 1)
    ]
    written = documents(nodes, relation_of(CLASSIC), CLASSIC.layout)
    helpers.bulk(es, ({"_index": forest, "_id": name, "_source": body} for name, body in written))
    es.indices.refresh(index=forest)
    return forest, held


def test_nothing_is_missed_and_little_is_read(
    es: Elasticsearch, hot_forest: tuple[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    forest, held = hot_forest
    random = np.random.default_rng(4)
    near = random.choice(held, 300)
    for _ in range(3):
        near = near ^ (np.uint64(1) << random.integers(0, 64, len(near), np.uint64))
    read = 0
    search = Elasticsearch.search

    def counting(client: Elasticsearch, **request: Any) -> Any:
        nonlocal read
        answer = search(client, **request)
        read += len(answer["hits"]["hits"])
        return answer

    monkeypatch.setattr(Elasticsearch, "search", counting)
    store = ElasticStore(es, forest=forest, profile=CLASSIC, aging=AGING)
    answers = Forest(store).assign(as_batch([Arrival(each, NO_TIME) for each in to_hex(near)]), now_ms=NOW_MS)
    for fingerprint, answer in zip(near.tolist(), answers, strict=True):
        distances = np.bitwise_count(held ^ np.uint64(fingerprint))
        assert answer.root in to_hex(held[distances <= 3])
    first, read = read, 0
    Forest(store).assign(
        as_batch([Arrival(each, NO_TIME) for each in to_hex(near ^ np.uint64(1))]), now_ms=NOW_MS
    )
    store.close()
    # The first batch finds out on a full page; the next one knows. What is left comes by keys that hold
    # one of the two shared blocks only.
    assert first < 16_000
    assert read < 6_000


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_real_neighbours_are_read_however_many(
    es: Elasticsearch, index_name: Callable[[str], str], layout: Layout
) -> None:
    """All the nodes of a common key are near: narrowing it down must leave every one of them.

    Common keys of layouts that cannot be narrowed down are read in full.
    """
    profile = CLASSIC.with_changes(layout=layout)
    limits = Limits(nodes_per_detour=0, common_nodes=1, max_hits=50)
    store = ElasticStore(es, forest=index_name("forest"), profile=profile, aging=AGING, limits=limits)
    forest = Forest(store)
    centre = 0x0123456789ABCDEF
    ring = [
        Arrival(f"{centre ^ 1 << one ^ 1 << two:016x}", NO_TIME) for one in range(64) for two in range(one)
    ]
    forest.assign(as_batch(ring[:300]), now_ms=NOW_MS)
    es.indices.refresh(index=store._index.name)
    batch = as_batch([Arrival(f"{centre:016x}", NO_TIME)])
    near = store.find_neighbours(batch, store.state())
    assert len(near.rows) == 300
    store.close()

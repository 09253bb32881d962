"""The contract of every store: a forest that uses the store follows the laws, whatever the batches."""

import dataclasses
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.fingerprint.profile import CLASSIC, Profile
from esdedup.forest import NO_TIME, Arrivals, Nodes, Plan, State, Store
from esdedup.forest.store import MemoryStore, completed
from esdedup.maintenance import Maintenance
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import (
    AGING,
    NOW_MS,
    Arrival,
    arrivals,
    as_batch,
    assert_follows_model,
    assigned_by,
    batch_sizes,
    batches,
    ordered_arrivals,
    values_of,
)
from tests.support.assign import assign
from tests.support.exploring import EFFORT, examples
from tests.support.forests import LOOKUPS, SHARDED, all_nodes, hashes
from tests.support.model import Model

MakeStores = Callable[..., tuple[str, Callable[[], ElasticStore]]]

any_arrivals = st.one_of(arrivals, ordered_arrivals)


A, B, BETWEEN = 0, 0b111111 << 20, 0b111 << 20


def _run(*each: tuple[int, int]) -> list[Arrival]:
    return [Arrival(f"{node:016x}", at) for node, at in each]


# Between two roots with equally many leaves, the earlier one wins.
TIE = _run((A, 0), (A | 1 << 50, 0), (B, 0), (B | 1 << 50, 0), (BETWEEN, 0))
# Each value has bits in three blocks. Texts that also differ in another block have no key in common.
ELSEWHERE = [1 << 63 | 1 << 40 | 1 << 30, 1 << 62 | 1 << 41 | 1 << 31]
# The last text is nearer to A, but CLOSE has more leaves, which are found only through their root.
CLOSE = 0b11111 << 20
MORE_LEAVES = _run((A, 0), (CLOSE, 0), *((CLOSE | bits, 0) for bits in ELSEWHERE), (0b11 << 20, 0))
# The earlier root had more leaves, but they have expired.
FEWER_LIVE = _run(
    *((A, 0), (A | 1 << 50, 0), (A | 1 << 51, 0), (A, 60), (B, 60), (B | 1 << 50, 60), (BETWEEN, 130))
)
# In this batch, the first choice by leaves determines the roots that are available to the second choice.
OTHER = BETWEEN | 0b111111 << 40
CHOICES = _run(
    *((A, 0), (B, 0), (B | ELSEWHERE[0], 0), (OTHER, 0), (OTHER | 1 << 50, 0)),
    *((BETWEEN, 0), (BETWEEN | 0b111 << 40, 0)),
)


def _bits(*each: set[int]) -> list[Arrival]:
    return _run(*((sum(1 << bit for bit in bits), 0) for bits in each))


FAR, NEAR_A = 0xFFFF << 40, A | 1
# One batch that spans more than the retention: a node expires and is recreated; only the new node must stay.
REFRESHED_THEN_REBORN = _run((A, 0), (A, 20), (FAR, 200), (A, 200), (NEAR_A, 200))
LEAF_THEN_ROOT = _run((A, 0), (NEAR_A, 0), (FAR, 200), (NEAR_A, 200), (NEAR_A | 2, 200))
# An expired root returns as a leaf of another root while its previous leaf is still in memory.
ROOT_THEN_LEAF = _run((A, 0), (A | 7, 0), (A | 0b11 << 20, 200), (A, 200), (A | 7, 200))
# While a content hash without a node is remembered, it gets no node and affects no other hash.
PAGE_WITHOUT_NODE = [
    (Arrival(None, 0, hash=1), "without_fingerprint"),
    (Arrival(f"{A:016x}", 0, hash=1), "without_fingerprint"),
    (Arrival(f"{NEAR_A:016x}", 0, hash=2), "new_root"),
    (Arrival(f"{A:016x}", 95, hash=1), "without_fingerprint"),
    (Arrival(f"{A:016x}", 105, hash=1), "without_fingerprint"),
    (Arrival(f"{A:016x}", 210, hash=1), "new_root"),
    (Arrival(None, 250, hash=1), "known"),
    (Arrival(None, 400, hash=1), "without_fingerprint"),
    (Arrival(f"{A:016x}", 400, hash=1), "without_fingerprint"),
]


@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_hash_stays_without_a_node_in_memory(size: int) -> None:
    store, model = MemoryStore(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
    for batch in batches(PAGE_WITHOUT_NODE, [size]):
        _assert_kinds(store, model, batch)


# After each restart, an article arrives that is assigned by its stored content hash.
@pytest.mark.parametrize(("size", "restarts"), [(1, set()), (1, {0, 3, 5, 7}), (9, set())])
def test_a_hash_stays_without_a_node_in_elasticsearch(
    es: Elasticsearch, elastic_stores: MakeStores, size: int, restarts: set[int]
) -> None:
    name, open_store = elastic_stores()
    store, model = open_store(), Model(AGING)
    for number, batch in enumerate(batches(PAGE_WITHOUT_NODE, [size])):
        _assert_kinds(store, model, batch)
        if number in restarts:
            store.close()
            store = open_store()
    store.close()
    assert hashes(es, name) == model.remembered() == {(1, None, 400)}
    assert list(Maintenance(es, forest=name).verify()) == []


def _assert_kinds(store: Store, model: Model, batch: list[tuple[Arrival, str]]) -> None:
    each = [arrival for arrival, _ in batch]
    answers = [values_of(answer) for answer in assign(store, as_batch(each), now_ms=NOW_MS)]
    assert [kind for kind, *_ in answers] == [kind for _, kind in batch]
    assert answers == [assigned_by(model, arrival) for arrival in each]


@given(any_arrivals, batch_sizes)
@example(TIE, [2, 3])
@example(MORE_LEAVES, [9])
@example(FEWER_LIVE, [3])
@example(CHOICES, [5])
@example(REFRESHED_THEN_REBORN, [1, 3, 1])
@example(LEAF_THEN_ROOT, [2, 2, 1])
@example(ROOT_THEN_LEAF, [2, 1, 1, 1])
def test_memory_follows_the_laws(all_arrivals: list[Arrival], sizes: list[int]) -> None:
    store, model = MemoryStore(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)


WAYS = LOOKUPS | SHARDED


# Outside `make nightly`, leave out one way, which stores nodes as `searched` does.
@pytest.fixture(params=list(WAYS) if EFFORT > 1 else ["searched", "in memory", *SHARDED])
def elastic_stores(es: Elasticsearch, request: pytest.FixtureRequest) -> Iterator[MakeStores]:
    made: list[str] = []

    def make(
        limits: Limits = DEFAULT_LIMITS, profile: Profile = CLASSIC
    ) -> tuple[str, Callable[[], ElasticStore]]:
        name = f"test-forest-{secrets.token_hex(4)}"
        made.append(name)
        return name, lambda: ElasticStore(
            es, forest=name, profile=profile, aging=AGING, limits=limits, **WAYS[request.param]
        )

    yield make
    for name in made:
        es.options(ignore_status=404).indices.delete(index=name)


@examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_arrivals, batch_sizes, *[st.sets(st.integers(0, 20))] * 3)
@example(TIE, [2, 3], set(), set(), set())
@example(MORE_LEAVES, [4, 1], {0}, set(), set())
@example(FEWER_LIVE, [3], set(), {0, 1}, {1})
@example(CHOICES, [5], {0}, {0, 1}, set())
@example(REFRESHED_THEN_REBORN, [1, 3, 1], set(), {0, 1, 2}, set())
@example(LEAF_THEN_ROOT, [2, 2, 1], set(), {0, 1, 2}, set())
@example(ROOT_THEN_LEAF, [2, 1, 1, 1], set(), set(), set())
@example(
    [Arrival("00" * 8, NO_TIME), Arrival("00" * 8, 100), Arrival("00" * 7 + "01", 205)],
    *([1], {0, 1}, set(), {1}),
)
def test_elasticsearch_follows_the_laws(
    es: Elasticsearch,
    elastic_stores: MakeStores,
    all_arrivals: list[Arrival],
    sizes: list[int],
    restarts: set[int],
    refreshes: set[int],
    expiries: set[int],
) -> None:
    made = elastic_stores()
    _assert_elasticsearch_follows(es, made, all_arrivals, sizes, restarts, refreshes, expiries)


def _assert_elasticsearch_follows(
    es: Elasticsearch,
    made: tuple[str, Callable[[], ElasticStore]],
    all_arrivals: list[Arrival],
    sizes: list[int],
    restarts: set[int],
    refreshes: set[int],
    expiries: set[int],
) -> None:
    name, open_store = made
    store, model = open_store(), Model(AGING)
    for number, batch in enumerate(batches(all_arrivals, sizes)):
        assert_follows_model(store, model, batch)
        if number in refreshes:  # as another client may do at any moment
            es.indices.refresh(index=name)
        if number in expiries:
            list(store.expiring())
        if number in restarts:
            store.close()
            store = open_store()
    list(store.expiring())
    # Exactly the nodes that are live according to the laws remain.
    live = {(node.id, node.root, node.seq, node.seen) for node in model.nodes.values() if model.lives(node)}
    index = store.writer.index
    # A log forgets nodes some time after they have expired.
    since_ms = NO_TIME if index.log is None else index.status().live_since_ms(AGING)
    found = [node for node in all_nodes(index) if node.seen_ms >= since_ms]
    assert {(node.id, node.root, node.seq, node.seen_ms) for node in found} == live
    assert hashes(es, name) == model.remembered()
    assert not list(Maintenance(es, forest=name).verify())
    store.close()


# Look-ups that store a document for each node; a log stores a document for each batch.
with_documents = pytest.mark.parametrize("elastic_stores", ["searched", "both"], indirect=True)
# These limits are so low that every search, bulk request and cache reaches them.
LOW_LIMITS = Limits(
    max_terms=7,
    max_hits=3,
    max_clauses=2,
    bulk_documents=2,
    recent_nodes=4,
    frequent_nodes=1,
    finer_keys_per_node=10**9,
)


@examples(4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ordered_arrivals, batch_sizes)
def test_low_limits_do_not_change_results(
    elastic_stores: MakeStores,
    all_arrivals: list[Arrival],
    sizes: list[int],
) -> None:
    _assert_limits_change_nothing(elastic_stores(LOW_LIMITS), all_arrivals, sizes)


def _assert_limits_change_nothing(
    made: tuple[str, Callable[[], ElasticStore]], all_arrivals: list[Arrival], sizes: list[int]
) -> None:
    _, open_store = made
    store, model = open_store(), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)
    store.close()


class Interrupted(MemoryStore):
    """A store that keeps only the first records of a plan, as after a crash in the middle of a batch."""

    survivors = 2**31

    def commit(self, plan: Plan) -> Future[None]:
        if self.survivors >= len(plan.written):
            return super().commit(plan)
        self._nodes.undo()
        self._nodes.load(plan.written[: self.survivors], live_since_ms=NO_TIME)
        self._nodes.settle()
        self.state = plan.state
        return completed()


@given(arrivals, st.integers(0, 40), st.integers(1, 50), st.integers(0, 60), st.integers(-50, 450))
@example(_bits({0, 1, 17}, {0, 1, 17, 18, 33}, {0, 17, 18, 33}, {17, 18, 33, 34}), 1, 3, 2, 0)
def test_a_batch_repeated_after_a_crash_keeps_its_roots(
    drawn: list[Arrival], before: int, size: int, survivors: int, time: int
) -> None:
    """All articles of the batch have the same time, as if they were dated by the clock."""
    store, model = Interrupted(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
    earlier = drawn[:before]
    batch = [dataclasses.replace(each, time=time) for each in drawn[before : before + size]]
    for each in earlier:
        assert_follows_model(store, model, [each])
    expected = [assigned_by(model, each)[1:3] for each in batch]
    store.survivors = survivors
    assign(store, as_batch(batch), now_ms=NOW_MS)
    store.survivors = 2**31
    again = assign(store, as_batch(batch), now_ms=NOW_MS)
    assert [(each.node, each.root) for each in again] == expected


class Distracted:
    """A store in which another batch is assigned and abandoned before each real batch."""

    def __init__(self, store: Store, others: list[Arrival]) -> None:
        self._store = store
        self._others = as_batch(others)
        self.aging = store.aging

    @property
    def state(self) -> State:
        return self._store.state

    @property
    def boilerplate(self) -> Boilerplate:
        return self._store.boilerplate

    def begin(self) -> None:
        self._store.begin()
        self._store.nodes(self._others, now_ms=NOW_MS).assign(self._others, self._store.state, now_ms=NOW_MS)
        self._store.begin()

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:
        return self._store.nodes(arrivals, now_ms=now_ms)

    def commit(self, plan: Plan) -> Future[None]:
        return self._store.commit(plan)

    def learn(self) -> None:
        self._store.learn()


@given(any_arrivals, batch_sizes, any_arrivals)
def test_memory_forgets_an_abandoned_batch(
    all_arrivals: list[Arrival], sizes: list[int], others: list[Arrival]
) -> None:
    store, model = MemoryStore(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(Distracted(store, others), model, batch)


@pytest.mark.parametrize(
    "drawn", [TIE, MORE_LEAVES, FEWER_LIVE, REFRESHED_THEN_REBORN, LEAF_THEN_ROOT, ROOT_THEN_LEAF]
)
def test_elasticsearch_forgets_an_abandoned_batch(elastic_stores: MakeStores, drawn: list[Arrival]) -> None:
    _, open_store = elastic_stores()
    store, model = open_store(), Model(AGING)
    for batch in batches(drawn, [2]):
        assert_follows_model(Distracted(store, _run((A | 1 << 30, 0), (A, 300))), model, batch)
    live = {(node.id, node.root, node.made) for node in model.nodes.values() if model.lives(node)}
    store.writer.index.refresh()
    list(store.expiring())
    since_ms = store.writer.index.status().live_since_ms(AGING)
    each = [node for node in all_nodes(store.writer.index) if node.seen_ms >= since_ms]
    found = {(node.id, node.root, AGING.round_up(node.made_ms)) for node in each}
    assert found == live
    store.close()


@with_documents
def test_elasticsearch_gets_nodes_in_order_of_arrival(es: Elasticsearch, elastic_stores: MakeStores) -> None:
    """Roots and leaves are written in one sequence, so a crash keeps exactly the first part of a batch."""
    name, open_store = elastic_stores()
    store = open_store()
    assign(store, as_batch(_run((A, 0), (A | 1, 0), (B, 0), (B | 1, 0), (FAR, 0))), now_ms=NOW_MS)
    store.close()
    found = es.search(
        index=name,
        query={"exists": {"field": "root"}},
        docvalue_fields=[{"field": "seq"}],
        seq_no_primary_term=True,
        size=10,
    )
    written = sorted(found["hits"]["hits"], key=lambda hit: hit["_seq_no"])
    assert [hit["fields"]["seq"] for hit in written] == [[1], [2], [3], [4], [5]]


@with_documents
def test_a_returning_content_hash_is_written_in_order(es: Elasticsearch, elastic_stores: MakeStores) -> None:
    """Another hash keeps the node live; a crash must not revive the returning hash before its article."""
    name, open_store = elastic_stores()
    store, model = open_store(), Model(AGING)
    back, other = Arrival(f"{A:016x}", 0, hash=1), Arrival(f"{A:016x}", 60, hash=2)
    far = Arrival(f"{FAR:016x}", 120)
    for batch in ([back], [other], [far, dataclasses.replace(back, time=120)]):
        assert_follows_model(store, model, batch)
    store.close()
    assert hashes(es, name) == model.remembered() >= {(1, back.id, 120)}
    hits = es.search(index=name, seq_no_primary_term=True, size=10)["hits"]["hits"]
    written = {hit["_id"]: hit["_seq_no"] for hit in hits}
    assert written[far.id] < written[f"page-{1:016x}"]

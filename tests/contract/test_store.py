"""What every store must do: the forest over it follows the laws, whatever the batches."""

import secrets
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from esdedup.elastic.forest import meta
from esdedup.elastic.forest.expiry import expire
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.forest.store import ElasticStore
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import NO_TIME, Arrivals, Neighbours, Plan, State, Store
from esdedup.forest.laws import Decision
from esdedup.forest.memory import MemoryStore
from esdedup.forest.model import LeafCounts
from esdedup.maintenance import Maintenance
from esdedup.neighbours.hamming_index import HammingIndex
from esdedup.neighbours.relation import ByDistance, relation_of
from tests.support.arrivals import (
    AGING,
    Arrival,
    arrivals,
    as_batch,
    assert_follows_model,
    batch_sizes,
    batches,
    ordered_arrivals,
)
from tests.support.exploring import examples
from tests.support.model import Model, distance

MakeStores = Callable[..., tuple[str, Callable[[], ElasticStore]]]

any_arrivals = st.one_of(arrivals, ordered_arrivals)


@examples(400)
@given(any_arrivals, batch_sizes)
def test_memory_follows_the_laws(all_arrivals: list[Arrival], sizes: list[int]) -> None:
    store, model = MemoryStore(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)


A, B, BETWEEN = 0, 0b111111 << 20, 0b111 << 20
# Leaves from before there was time expire within the batch, while their root is kept alive: the other
# root, made later but with a leaf that lives, must win.
LEAVES_WITHOUT_TIME = [
    *(
        Arrival(f"{each:016x}", NO_TIME)
        for each in (A, A | 1 << 40, A | 1 << 41, A | 1 << 42, B, B | 1 << 50)
    ),
    *(
        Arrival(f"{each:016x}", at)
        for each, at in ((B | 1 << 50, 0), (A, 90), (B | 1 << 50, 90), (BETWEEN, 105))
    ),
]


def _run(*each: tuple[int, int]) -> list[Arrival]:
    return [Arrival(f"{node:016x}", at) for node, at in each]


FAR, NEAR_A = 0xFFFF << 40, A | 1
# One batch that lasts longer than nodes live: an id has two lives in it, and only the second must stay.
REFRESHED_THEN_REBORN = _run((A, 0), (A, 20), (FAR, 200), (A, 200), (NEAR_A, 200))
LEAF_THEN_ROOT = _run((A, 0), (NEAR_A, 0), (FAR, 200), (NEAR_A, 200), (NEAR_A | 2, 200))
# A root comes back as another's leaf, while its leaf of old is still in memory.
ROOT_THEN_LEAF = _run((A, 0), (A | 7, 0), (A | 0b11 << 20, 200), (A, 200), (A | 7, 200))


@examples(200)
@given(any_arrivals, batch_sizes)
@example(_run((A, 0), (B, 0), (B | 1 << 50, 0), (BETWEEN, 0)), [2])
@example(_run((A, 0), (B, 0), (B | 1 << 50, 0), (B | 1 << 50, 90), (A, 90), (BETWEEN, 105)), [3])
def test_leaves_may_be_counted_at_any_moment(all_arrivals: list[Arrival], sizes: list[int]) -> None:
    """As when only a saturated key brings two trees together: no leaves were counted beforehand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decision, "_roots_in_conflict", lambda _: set())
        store, model = MemoryStore(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
        for batch in batches(all_arrivals, sizes):
            assert_follows_model(store, model, batch)


@pytest.fixture
def elastic_stores(es: Elasticsearch) -> Iterator[MakeStores]:
    made: list[str] = []

    def make(limits: Limits = DEFAULT_LIMITS) -> tuple[str, Callable[[], ElasticStore]]:
        name = f"test-forest-{secrets.token_hex(4)}"
        made.append(name)
        return name, lambda: ElasticStore(es, forest=name, profile=CLASSIC, aging=AGING, limits=limits)

    yield make
    for name in made:
        es.options(ignore_status=404).indices.delete(index=name)


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_arrivals, batch_sizes, *[st.sets(st.integers(0, 20))] * 3)
@example(LEAVES_WITHOUT_TIME, [6, 5], set(), set(), set())
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
    name, open_store = elastic_stores()
    store, model = open_store(), Model(AGING)
    for number, batch in enumerate(batches(all_arrivals, sizes)):
        assert_follows_model(store, model, batch)
        if number in refreshes:  # by another client, at any moment
            es.indices.refresh(index=name)
        if number in expiries:
            expire(store.writer, AGING)
        if number in restarts:
            store.close()
            store = open_store()
    expire(store.writer, AGING)
    # Exactly the live nodes are left, as the laws have them.
    live = {(node.id, node.root, node.seq, node.seen) for node in model.nodes.values() if model.lives(node)}
    found = store.writer.index.scan(EVERY_NODE)
    assert {(node.id, node.root, node.seq, node.seen_ms) for node in found} == live
    assert not list(Maintenance(es, forest=name).verify())
    store.close()


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ordered_arrivals, batch_sizes)
def test_the_limits_of_elasticsearch_cut_nothing_off(
    elastic_stores: MakeStores,
    all_arrivals: list[Arrival],
    sizes: list[int],
) -> None:
    """With limits so low that every search, bulk and cache reaches them."""
    limits = Limits(
        max_terms=7,
        max_hits=3,
        max_clauses=2,
        bulk_documents=2,
        recent_nodes=4,
        common_nodes=1,
        nodes_per_detour=0,
    )
    _, open_store = elastic_stores(limits)
    store, model = open_store(), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)
    store.close()


class Bounded(ByDistance):
    """As a profile may have it: near is one thing, agreeing with the root another, and wider."""

    def __init__(self, max_distance_bits: int = 3) -> None:
        super().__init__(max_distance_bits=max_distance_bits)

    def new_index(self) -> "WithinWeight":
        return WithinWeight(max_distance_bits=3)

    def may_join(self, signatures: np.ndarray, roots: np.ndarray) -> np.ndarray:
        may: np.ndarray = np.bitwise_count(signatures ^ roots) <= 4
        return may

    @staticmethod
    def model() -> Model:
        return Model(
            AGING,
            lambda one, other: distance(one, other) <= 3 and _weight_class(one) == _weight_class(other),
            lambda text, root: distance(text, root) <= 4,
        )


class WithinWeight(HammingIndex):
    """Within 3 bits, and alike in something that no band key shows."""

    def find_pairs(self, fingerprints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        positions, rows = super().find_pairs(fingerprints)
        held = self.signatures(rows)
        alike = np.bitwise_count(fingerprints[positions]) // 3 == np.bitwise_count(held) // 3
        return positions[alike], rows[alike]


def _weight_class(node_id: str) -> int:
    return int(node_id, 16).bit_count() // 3


@examples(400)
@given(any_arrivals, batch_sizes)
def test_the_forest_works_with_any_relation(all_arrivals: list[Arrival], sizes: list[int]) -> None:
    store, model = MemoryStore(aging=AGING, relation=Bounded()), Bounded.model()
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_arrivals, batch_sizes)
def test_elasticsearch_works_with_any_relation(
    elastic_stores: MakeStores,
    all_arrivals: list[Arrival],
    sizes: list[int],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meta, "relation_of", lambda _: Bounded())
        _, open_store = elastic_stores()
        store, model = open_store(), Bounded.model()
        for batch in batches(all_arrivals, sizes):
            assert_follows_model(store, model, batch)
        store.close()


@given(st.permutations(range(4)))
def test_a_plan_committed_twice_is_the_same_as_once(order: list[int]) -> None:
    class Twice(MemoryStore):
        def commit(self, plan: Plan) -> None:
            super().commit(plan)
            super().commit(plan)

    batch = [Arrival(f"{1 << bit:016x}", 0) for bit in order]
    for store, model in (
        (make(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)) for make in (MemoryStore, Twice)
    ):
        assert_follows_model(store, model, batch)
        assert_follows_model(store, model, batch)


class Distracted:
    """A store that searches for something else before each call that follows a search."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.aging, self.relation = store.aging, store.relation

    def state(self) -> State:
        return self._store.state()

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        return self._store.find_neighbours(arrivals, state)

    def count_leaves(
        self, neighbours: Neighbours, roots: Sequence[int], state: State, *, end_ms: int
    ) -> LeafCounts:
        self._search()
        return self._store.count_leaves(neighbours, roots, state, end_ms=end_ms)

    def commit(self, plan: Plan) -> None:
        self._search()
        self._store.commit(plan)

    def _search(self) -> None:
        self._store.find_neighbours(as_batch([Arrival("5" * 16, NO_TIME)]), self._store.state())


@given(any_arrivals, batch_sizes)
def test_memory_needs_no_hidden_state_between_calls(all_arrivals: list[Arrival], sizes: list[int]) -> None:
    store, model = MemoryStore(aging=AGING, relation=relation_of(CLASSIC)), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(Distracted(store), model, batch)


@pytest.mark.parametrize(
    "drawn", [LEAVES_WITHOUT_TIME, REFRESHED_THEN_REBORN, LEAF_THEN_ROOT, ROOT_THEN_LEAF]
)
def test_elasticsearch_needs_no_hidden_state_between_calls(
    elastic_stores: MakeStores, drawn: list[Arrival]
) -> None:
    _, open_store = elastic_stores()
    store, model = open_store(), Model(AGING)
    for batch in batches(drawn, [2]):
        assert_follows_model(Distracted(store), model, batch)
    live = {(node.id, node.root, node.made) for node in model.nodes.values() if model.lives(node)}
    store.writer.index.refresh()
    expire(store.writer, AGING)
    found = {
        (node.id, node.root, int(AGING.round_up(np.array(node.made_ms))))
        for node in store.writer.index.scan(EVERY_NODE)
    }
    assert found == live
    store.close()

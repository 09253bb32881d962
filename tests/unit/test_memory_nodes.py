"""Nodes in memory: what expires leaves them, what was begun can be undone, what was stored can be read."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import NO_TIME, Aging, Nodes, State
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import AGING, NOW_MS, Arrival, arrivals, as_batch, batch_sizes, batches

RELATION = relation_of(CLASSIC)


def scattered(numbers: range, time: int) -> list[Arrival]:
    return [Arrival(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}", time, page=n + 1) for n in numbers]


def test_what_has_expired_leaves_memory_and_its_rows_are_used_again() -> None:
    nodes, state, sizes = Nodes(RELATION, Aging(retention_ms=1_000, granularity_ms=10)), State(), []
    for round_ in range(40):
        batch = as_batch(scattered(range(500 * round_, 500 * (round_ + 1)), 100 * round_))
        state = nodes.assign(batch, state, now_ms=NOW_MS).state
        nodes.keep()
        sizes.append(nodes.size_bytes)
    # Some ten rounds live, and a fifth as many are not looked at yet.
    assert 5_000 <= len(nodes) <= 7_000
    assert sizes[-1] <= 1.2 * sizes[14]


@given(arrivals, batch_sizes, arrivals, st.integers(1, 3))
def test_what_is_undone_has_never_been(
    kept: list[Arrival], sizes: list[int], undone: list[Arrival], depth: int
) -> None:
    """Several steps may have begun; the last one is undone first."""
    plain, disturbed = Nodes(RELATION, AGING), Nodes(RELATION, AGING)
    state = State()
    for batch in map(as_batch, batches(kept, sizes)):
        after = state
        for number in range(depth):
            after = disturbed.assign(as_batch(undone[number::depth]), after, now_ms=NOW_MS).state
        for _ in range(depth):
            disturbed.undo()
        one, other = (nodes.assign(batch, state, now_ms=NOW_MS) for nodes in (plain, disturbed))
        assert one == other
        state = one.state
        plain.keep()
        disturbed.keep()


@given(arrivals, batch_sizes, st.randoms(use_true_random=False), arrivals)
def test_what_was_stored_is_what_was_there(
    all_arrivals: list[Arrival], sizes: list[int], random: st.DataObject, later: list[Arrival]
) -> None:
    """It is read in any order, and twice."""
    nodes, state = Nodes(RELATION, AGING), State()
    stored: dict[bytes, bytes] = {}
    for batch in map(as_batch, batches(all_arrivals, sizes)):
        plan = nodes.assign(batch, state, now_ms=NOW_MS)
        state = plan.state
        # A node of 64 bytes begins with its id, a page with its own.
        stored |= {packed[:8] + bytes([len(packed) == 64]): packed for packed in plan.written}
        nodes.keep()
    packed = list(stored.values())
    random.shuffle(packed)  # type: ignore[attr-defined]
    read = Nodes(RELATION, AGING)
    for _ in range(2):
        read.load(packed, live_since_ms=state.live_since_ms(AGING))
        assert read.missing() == ([], [])
        read.settle()
    one, other = (each.assign(as_batch(later), state, now_ms=NOW_MS) for each in (nodes, read))
    assert one.assignments == other.assignments
    assert one.state == other.state


def test_a_root_that_is_missing_is_made_again_from_its_leaf() -> None:
    nodes = Nodes(RELATION, AGING)
    plan = nodes.assign(as_batch([Arrival("00" * 8, 0), Arrival("00" * 7 + "07", 0)]), State(), now_ms=NOW_MS)
    read = Nodes(RELATION, AGING)
    read.load(plan.written[1:], live_since_ms=NO_TIME)
    assert read.missing() == (["00" * 8], [])
    read.settle()
    (again,) = read.assign(
        as_batch([Arrival("00" * 7 + "07", 0, page=5)]), plan.state, now_ms=NOW_MS
    ).assignments
    assert (again.kind.value, again.root) == ("known", "00" * 8)
    assert len(read) == 2


def test_what_is_neither_a_node_nor_a_page_is_left_out() -> None:
    nodes = Nodes(RELATION, AGING)
    nodes.load([b"", bytes(15), bytes(63), bytes(65), bytes(1_000)], live_since_ms=NO_TIME)
    nodes.settle()
    assert (len(nodes), nodes.lone_page_count) == (0, 0)


def test_columns_that_differ_in_length_are_refused() -> None:
    nodes = Nodes(relation_of(CLASSIC), AGING)
    batch = as_batch([Arrival("00" * 8, 0), Arrival("ff" * 8, 0)])
    for name in ("signatures", "exist", "pages", "times_ms"):
        shorter = dataclasses.replace(batch, **{name: getattr(batch, name)[:1]})
        with pytest.raises(ValueError, match="differ in length"):
            nodes.assign(shorter, State(), now_ms=0)
        assert nodes.depth == 0

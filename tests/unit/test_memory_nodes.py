"""Nodes in memory: what expires leaves them, what was begun can be undone, what was stored can be read."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import CLASSIC, VERIFIED
from esdedup.fingerprint.signature import MINHASH, REPRESENTATIVES, SIGNATURE, are_indexed
from esdedup.forest import NO_TIME, Aging, Nodes, State
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import AGING, NOW_MS, Arrival, arrivals, as_batch, batch_sizes, batches

RELATION = relation_of(CLASSIC)
_LOWEST = np.uint64(0x1111_1111_1111_1111)


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


def test_of_two_roots_that_resemble_it_equally_an_arrival_joins_the_earlier_one() -> None:
    """Whichever of them was loaded first."""
    earlier, later, between = "00" * 8, "00" * 7 + "3f", "00" * 7 + "07"
    nodes = Nodes(RELATION, AGING)
    plan = nodes.assign(as_batch([Arrival(earlier, 0), Arrival(later, 0)]), State(), now_ms=NOW_MS)
    for written in (plan.written, plan.written[::-1]):
        read = Nodes(RELATION, AGING)
        read.load(written, live_since_ms=NO_TIME)
        read.settle()
        (joined,) = read.assign(as_batch([Arrival(between, 0)]), plan.state, now_ms=NOW_MS).assignments
        assert joined.root == earlier


SHARED = 0b110


def different_texts(count: int) -> np.ndarray:
    """Make signatures with their first simhash in common, of texts that do not agree."""
    random = np.random.default_rng(1)
    signatures = np.zeros(count, SIGNATURE)
    signatures["representatives"] = random.integers(0, 2**62, (count, REPRESENTATIVES), np.uint64) | MINHASH
    signatures["representatives"][:, 0] = SHARED
    signatures["sketch"] = random.integers(0, 2**62, signatures["sketch"].shape, np.uint64) | _LOWEST
    signatures["letters"], signatures["runs"] = 5_000, 300
    return signatures


class Saturated:
    """Nodes of which so many are indexed under one key."""

    def __init__(self, max_postings: int) -> None:
        rules = Agreement(max_postings=max_postings)
        self._relation = relation_of(dataclasses.replace(VERIFIED, agreement=rules))
        self._nodes, self._state = Nodes(self._relation, AGING), State()

    def are_indexed(self, signatures: np.ndarray, time: int) -> list[bool]:
        """Let texts arrive, and return which nodes are indexed under the simhash in common."""
        batch = as_batch([Arrival(each, time) for each in self._relation.ids(signatures)], signatures)
        plan = self._nodes.assign(batch, self._state, now_ms=NOW_MS)
        self._nodes.keep()
        self._state = plan.state
        held = np.frombuffer(b"".join(each.signature for each in plan.assignments), SIGNATURE)
        return list(map(bool, are_indexed(held)[:, 0]))


def test_a_key_has_room_for_just_so_many_nodes() -> None:
    assert Saturated(4).are_indexed(different_texts(6), 0) == [True] * 4 + [False] * 2


def test_only_nodes_that_were_made_within_the_retention_saturate_a_key() -> None:
    """Those that were made before it live on if they were needed since."""
    saturated, texts = Saturated(2), different_texts(4)
    assert saturated.are_indexed(texts[:2], 0) == [True, True]
    assert saturated.are_indexed(texts[:3], AGING.retention_ms // 2) == [True, True, False]
    assert saturated.are_indexed(texts[3:], AGING.retention_ms + AGING.granularity_ms) == [True]

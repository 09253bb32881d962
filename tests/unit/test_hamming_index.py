import tracemalloc
from collections.abc import Iterable
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import SettingError
from esdedup.neighbours.hamming_index import HammingIndex
from esdedup.neighbours.hot_limits import HotLimits
from esdedup.neighbours.slots import Slots

flipped = st.sets(st.integers(0, 63), max_size=4).map(lambda bits: sum(1 << bit for bit in bits))
values = st.lists(st.one_of(st.integers(0, 2**64 - 1), flipped), max_size=40)


def pairs(index: HammingIndex, queried: np.ndarray) -> list[tuple[int, int]]:
    queries, rows = index.find_pairs(queried)
    return list(zip(queries.tolist(), rows.tolist(), strict=True))


@given(added=st.lists(values, max_size=6), queried=values, max_distance_bits=st.integers(0, 3))
def test_finds_what_exhaustive_search_finds(
    added: list[list[int]], queried: list[int], max_distance_bits: int
) -> None:
    index = HammingIndex(max_distance_bits=max_distance_bits)
    for batch in added:
        index.add(np.array(batch, np.uint64))
    everything = [value for batch in added for value in batch]
    assert pairs(index, np.array(queried, np.uint64)) == [
        (query, row)
        for query, one in enumerate(queried)
        for row, other in enumerate(everything)
        if (one ^ other).bit_count() <= max_distance_bits
    ]
    assert len(index) == len(everything)


# Everything in one bucket of one table, or of both; few bits that vary; and nothing of the kind.
PATTERNS = {
    "evenly": (0, 2**64 - 1),
    "one high half": (7 << 32, 2**32 - 1),
    "one low half": (7, 2**64 - 2**32),
    "few bits": (0, 0x0F0F_0000_00FF_0003),
    "high bits only": (0, 0xFFFF_0000_FFFF_0000),
    "one quarter": (7 << 32, 0xFFFF_0000),
}


@pytest.mark.parametrize(("fixed", "varying"), PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("batch_size", [1, 97, 1_000])
def test_full_buckets_lose_nothing(fixed: int, varying: int, batch_size: int) -> None:
    random = np.random.default_rng(batch_size)
    index, everything = HammingIndex(), np.zeros(0, np.uint64)
    for _ in range(max(4, min(2_000 // batch_size, 200))):
        batch = random.integers(0, 2**64, batch_size, np.uint64) & np.uint64(varying) | np.uint64(fixed)
        near: Iterable[int] = np.flatnonzero(random.random(batch_size) < 0.3) if len(everything) else ()
        for position in near:
            flips = random.choice(64, random.integers(0, 5), replace=False)
            mask = np.bitwise_or.reduce(np.uint64(1) << flips.astype(np.uint64), initial=np.uint64(0))
            batch[position] = random.choice(everything) ^ mask
        distances = np.bitwise_count(batch[:, None] ^ everything[None, :])
        assert pairs(index, batch) == [tuple(pair) for pair in np.argwhere(distances <= 3).tolist()]
        index.add(batch)
        everything = np.concatenate((everything, batch))


quarters = st.one_of(st.sampled_from([0, 0, 0, 1, 3, 0x0100, 0x8000, 0xFFFF]), st.integers(0, 2**16 - 1))
sharing = st.lists(
    st.tuples(quarters, quarters, quarters, quarters).map(
        lambda four: four[0] << 48 | four[1] << 32 | four[2] << 16 | four[3]
    ),
    max_size=120,
)
# Everything gets hot, through all levels, as soon as a bucket is full.
HOT = HotLimits(chain_length=1, max_per_key=2, max_per_bucket=6)


class Held:
    """An index, and what it must hold."""

    def __init__(self, *, max_distance_bits: int, limits: HotLimits) -> None:
        self.index = HammingIndex(max_distance_bits=max_distance_bits, hot_limits=limits)
        self.by_row: dict[int, int] = {}
        self._max_distance_bits = max_distance_bits

    def add(self, values: list[int]) -> None:
        rows = self.index.add(np.array(values, np.uint64)).tolist()
        assert not self.by_row.keys() & set(rows)
        self.by_row |= dict(zip(rows, values, strict=True))

    def remove(self, rows: list[int]) -> None:
        self.index.remove(np.array(rows, np.int64))
        for row in rows:
            del self.by_row[row]

    def check(self, queried: np.ndarray) -> None:
        rows = np.array(sorted(self.by_row), np.int64)
        values = np.array([self.by_row[row] for row in rows.tolist()], np.uint64)
        near = np.bitwise_count(queried[:, None] ^ values) <= self._max_distance_bits
        assert pairs(self.index, queried) == [(at, rows.item(of)) for at, of in np.argwhere(near).tolist()]
        assert self.index.signatures(rows).tolist() == values.tolist()
        assert len(self.index) == len(values)


@given(
    batches=st.lists(st.tuples(sharing, st.sets(st.integers(0, 200))), max_size=6),
    queried=sharing,
    max_distance_bits=st.integers(0, 3),
    limits=st.sampled_from([HotLimits(), HOT]),
)
def test_halves_that_many_share_and_rows_that_go(
    batches: list[tuple[list[int], set[int]]], queried: list[int], max_distance_bits: int, limits: HotLimits
) -> None:
    held = Held(max_distance_bits=max_distance_bits, limits=limits)
    for added, removed in batches:
        held.add(added)
        held.remove(sorted(removed & held.by_row.keys()))
        held.check(np.array(queried + added, np.uint64))


@pytest.mark.parametrize(("fixed", "varying"), PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("limits", [HotLimits(), HOT], ids=["usual", "hot"])
def test_removing_leaves_all_others(fixed: int, varying: int, limits: HotLimits) -> None:
    random = np.random.default_rng(1)
    held = Held(max_distance_bits=3, limits=limits)
    for removed_share in (0.1, 0.5, 0.9, 1, 0.3, 0.7):
        some = random.integers(0, 2**64, 900, np.uint64) & np.uint64(varying) | np.uint64(fixed)
        # Some of them many times.
        some = np.concatenate((some, some[:3].repeat(40)))
        held.add(random.permutation(some).tolist())
        rows = random.permutation(list(held.by_row))
        held.remove(rows[: int(len(rows) * removed_share)].tolist())
        held.check(some[:100] ^ np.uint64(1 << 40))


def test_a_copy_takes_the_place_of_what_is_removed() -> None:
    index = HammingIndex()
    rows = index.add(np.full(40, 5, np.uint64))
    # The first is the one that the tables hold.
    index.remove(rows[:1])
    assert pairs(index, np.array([7], np.uint64)) == [(0, row) for row in rows[1:].tolist()]
    index.remove(rows[2:])
    assert pairs(index, np.array([7], np.uint64)) == [(0, rows.item(1))]


def test_turning_over_takes_no_more_memory() -> None:
    random = np.random.default_rng(6)
    index, sizes_bytes = HammingIndex(), []
    rows = [index.add(random.integers(0, 2**64, 1_000, np.uint64)) for _ in range(20)]
    for _ in range(3):
        for at in range(20):
            index.remove(rows[at])
            rows[at] = index.add(random.integers(0, 2**64, 1_000, np.uint64))
            assert rows[at].max() < 20_000
        sizes_bytes.append(index.size_bytes)
    # Rows lie in buckets by chance, so a few more are needed now and then.
    assert sizes_bytes[2] < 1.02 * sizes_bytes[0]


def steps(index: HammingIndex, queried: np.ndarray) -> int:
    """Return how many times a search compares, a call in Python each."""
    compare = Slots.compare
    with mock.patch.object(Slots, "compare", autospec=True, side_effect=compare) as calls:
        index.find_pairs(queried)
    return calls.call_count


SHARED = ["one high half", "one low half", "one quarter"]


@pytest.mark.parametrize(("fixed", "varying"), [PATTERNS[name] for name in SHARED], ids=SHARED)
def test_a_shared_half_does_not_stall(fixed: int, varying: int) -> None:
    random = np.random.default_rng(4)
    index = HammingIndex()
    for size in (100_000, *[100] * 20):
        index.add(random.integers(0, 2**64, size, np.uint64) & np.uint64(varying) | np.uint64(fixed))
    queried = random.integers(0, 2**64, 1_000, np.uint64) & np.uint64(varying) | np.uint64(fixed)
    assert steps(index, queried) < 400


def test_many_halves_that_some_share_cost_no_step_each() -> None:
    random = np.random.default_rng(5)
    shared = random.integers(0, 2**32, 1_000, np.uint64) << np.uint64(32)
    everything = np.repeat(shared, 100) | random.integers(0, 2**32, 100_000, np.uint64)
    index = HammingIndex()
    index.add(everything)
    assert steps(index, everything[::100]) < 150
    assert index.size_bytes / len(index) < 70
    found = pairs(index, everything[::1_000])
    assert found == [(position, position * 1_000) for position in range(100)]


def test_equal_fingerprints_are_all_found() -> None:
    index = HammingIndex()
    for size in (*[1] * 600, 30_000):
        index.add(np.full(size, 5, np.uint64))
    index.add(np.array([4, 2**64 - 1, 5], np.uint64))
    queries, rows = index.find_pairs(np.array([7, 2**63, 2**64 - 1], np.uint64))
    alike = 30_600
    near = [*range(alike), alike, alike + 2]
    assert rows.tolist() == [*near, *near, alike + 1]
    assert queries.tolist() == [0] * len(near) + [1] * len(near) + [2]
    assert steps(index, np.full(200, 5, np.uint64)) < 100


def test_a_large_answer_takes_little_more_than_itself() -> None:
    index = HammingIndex()
    index.add(np.full(5_000, 5, np.uint64))
    tracemalloc.start()
    queries, rows = index.find_pairs(np.full(1_000, 4, np.uint64))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows) == 5_000_000
    assert peak_bytes < 2 * (queries.nbytes + rows.nbytes)


def test_memory_stays_small() -> None:
    random = np.random.default_rng(3)
    index = HammingIndex()
    for _ in range(200):
        index.add(random.integers(0, 2**64, 1_000, np.uint64))
    # 8 of them are the fingerprint.
    assert index.size_bytes / len(index) < 32


def test_a_distance_that_it_does_not_find() -> None:
    with pytest.raises(SettingError, match="0 to 3"):
        HammingIndex(max_distance_bits=4)

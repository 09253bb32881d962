import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import SettingError
from esdedup.forest.near import HammingIndex

flipped = st.sets(st.integers(0, 63), max_size=4).map(lambda bits: sum(1 << bit for bit in bits))
values = st.lists(st.one_of(st.integers(0, 2**64 - 1), flipped), max_size=40)


def pairs(index: HammingIndex, asked: np.ndarray) -> list[tuple[int, int]]:
    queries, rows = index.search(asked)
    return list(zip(queries.tolist(), rows.tolist(), strict=True))


@given(added=st.lists(values, max_size=6), asked=values, max_distance_bits=st.integers(0, 3))
def test_finds_what_exhaustive_search_finds(
    added: list[list[int]], asked: list[int], max_distance_bits: int
) -> None:
    index = HammingIndex(max_distance_bits=max_distance_bits)
    for batch in added:
        index.add(np.array(batch, np.uint64))
    everything = [value for batch in added for value in batch]
    assert pairs(index, np.array(asked, np.uint64)) == [
        (query, row)
        for query, one in enumerate(asked)
        for row, other in enumerate(everything)
        if (one ^ other).bit_count() <= max_distance_bits
    ]
    assert len(index) == len(everything)


# Everything in one bucket of one table, or of both; few bits that vary; and nothing of the kind.
CROWDS = {
    "evenly": (0, 2**64 - 1),
    "one high half": (7 << 32, 2**32 - 1),
    "one low half": (7, 2**64 - 2**32),
    "few bits": (0, 0x0F0F_0000_00FF_0003),
    "high bits only": (0, 0xFFFF_0000_FFFF_0000),
}


@pytest.mark.parametrize(("fixed", "varying"), CROWDS.values(), ids=CROWDS)
@pytest.mark.parametrize("batch_size", [1, 97, 1_000])
def test_crowded_buckets_lose_nothing(fixed: int, varying: int, batch_size: int) -> None:
    random = np.random.default_rng(batch_size)
    index, everything = HammingIndex(), np.zeros(0, np.uint64)
    for _ in range(min(4_000 // batch_size, 400)):
        batch = random.integers(0, 2**64, batch_size, np.uint64) & np.uint64(varying) | np.uint64(fixed)
        near = np.flatnonzero(random.random(batch_size) < 0.3) if len(everything) else []
        for position in near:
            flips = random.choice(64, random.integers(0, 5), replace=False)
            mask = np.bitwise_or.reduce(np.uint64(1) << flips.astype(np.uint64), initial=np.uint64(0))
            batch[position] = random.choice(everything) ^ mask
        distances = np.bitwise_count(batch[:, None] ^ everything[None, :])
        assert pairs(index, batch) == [tuple(pair) for pair in np.argwhere(distances <= 3).tolist()]
        index.add(batch)
        everything = np.concatenate((everything, batch))


def test_memory_stays_small() -> None:
    random = np.random.default_rng(3)
    index = HammingIndex()
    for _ in range(200):
        index.add(random.integers(0, 2**64, 1_000, np.uint64))
    # 12 bytes of attributes come to it: the forest's aim is 64.
    assert index.size_bytes / len(index) < 52


def test_a_distance_that_it_does_not_find() -> None:
    with pytest.raises(SettingError, match="0 to 3"):
        HammingIndex(max_distance_bits=4)

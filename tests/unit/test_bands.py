import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import SettingError
from esdedup.fingerprint import bands
from esdedup.fingerprint.bands import FIVE_CHOOSE_TWO, FOUR_BLOCKS, TWO_LEVEL, Layout, choose, two_level
from tests.support.exploring import examples

LAYOUTS = list(bands.LAYOUTS.values())
fingerprints = st.integers(0, 2**64 - 1)


def keys(layout: Layout, *values: int) -> list[list[int]]:
    found: list[list[int]] = layout.keys(np.array(values, np.uint64)).tolist()
    return found


@pytest.mark.parametrize(
    ("layout", "count", "key_bits"),
    [(FOUR_BLOCKS, 4, {16}), (FIVE_CHOOSE_TWO, 10, {25, 26}), (TWO_LEVEL, 16, {28})],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_layout_has_keys_of_these_bits(layout: Layout, count: int, key_bits: set[int]) -> None:
    assert layout.table_count == count
    assert {sum(stop - start for start, stop in ranges) for ranges in layout.tables} == key_bits


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@examples(300)
@given(value=fingerprints, flips=st.sets(st.integers(0, 63), max_size=3))
def test_within_three_bits_a_key_is_shared(layout: Layout, value: int, flips: set[int]) -> None:
    other = value ^ sum(1 << bit for bit in flips)
    one, two = keys(layout, value, other)
    assert any(a == b for a, b in zip(one, two, strict=True))
    assert set(layout.terms(np.array([value], np.uint64))[0]) & set(
        layout.terms(np.array([other], np.uint64))[0]
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_recall_against_exhaustive_search(layout: Layout) -> None:
    random = np.random.default_rng(5)
    base = random.integers(0, 2**64, 200, np.uint64)
    flips = np.uint64(1) << random.integers(0, 64, (200, 5), np.uint64)
    values = np.concatenate(
        (base, *(np.bitwise_xor.reduce(flips[:, :n], axis=1) ^ base for n in range(1, 6)))
    )
    near = np.bitwise_count(values[:, None] ^ values[None, :]) <= 3
    table = layout.keys(values)
    shared = (table[:, None, :] == table[None, :, :]).any(axis=2)
    assert near.sum() > len(values) * 3
    assert shared[near].all()


@pytest.mark.parametrize(
    ("layout", "flipped_bits"),
    [
        (FOUR_BLOCKS, [0, 16, 32, 48]),
        (FIVE_CHOOSE_TWO, [0, 13, 26, 39]),
        # One in each block, so that no quarter is free for the block that stays either.
        (TWO_LEVEL, [0, 16, 32, 48]),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_four_bits_may_touch_every_key(layout: Layout, flipped_bits: list[int]) -> None:
    one, two = keys(layout, 0, sum(1 << (63 - bit) for bit in flipped_bits))
    assert not any(a == b for a, b in zip(one, two, strict=True))


def test_terms_are_table_and_bits_in_hex() -> None:
    value = np.array([0x123456789ABCDEF0], np.uint64)
    assert FOUR_BLOCKS.terms(value) == [["01234", "15678", "29abc", "3def0"]]
    # Block 1, then the second quarter of the rest: bits 12 to 16, and 32 to 40.
    assert TWO_LEVEL.terms(value)[0][5] == "5567849a"
    assert all(len(term) == 8 for layout in (FIVE_CHOOSE_TWO, TWO_LEVEL) for term in layout.terms(value)[0])
    assert FIVE_CHOOSE_TWO.terms(np.zeros(0, np.uint64)) == []


def test_widths_must_add_up() -> None:
    with pytest.raises(SettingError, match="64"):
        choose((16, 16, 16), 1)
    with pytest.raises(SettingError):
        two_level(16, 13)
    with pytest.raises(SettingError):
        choose((65, -1), 1)


@given(st.integers(0, 2**64 - 1), st.sets(st.integers(0, 63), max_size=3))
def test_around_a_key_stands_whatever_is_near_and_has_it(one: int, flips: set[int]) -> None:
    other = one ^ sum(1 << bit for bit in flips)
    own, others = FIVE_CHOOSE_TWO.terms(np.array([one, other], np.uint64))
    shared = [table for table in range(10) if own[table] == others[table]]
    assert shared
    for table in shared:
        assert FIVE_CHOOSE_TWO.table_of(own[table]) == table
        assert own[table] not in FIVE_CHOOSE_TWO.terms_around(one, table)
        assert set(FIVE_CHOOSE_TWO.terms_around(one, table)) & set(others)


def test_only_pairs_of_five_blocks_have_terms_around_a_key() -> None:
    assert FIVE_CHOOSE_TWO.has_terms_around
    for layout in (FOUR_BLOCKS, TWO_LEVEL):
        assert not layout.has_terms_around
        with pytest.raises(SettingError, match="does not pair five blocks"):
            layout.terms_around(0, 0)

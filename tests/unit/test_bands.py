import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import SettingError
from esdedup.fingerprint import bands
from esdedup.fingerprint.bands import (
    ARTICLES,
    FIVE_CHOOSE_TWO,
    FOUR_BLOCKS,
    HALVES,
    TWO_LEVEL,
    Layout,
    choose,
    differences_within,
    get_layout,
    two_level,
)

LAYOUTS = list(bands.LAYOUTS.values())
# Those in which something is stored.
STORED = [*LAYOUTS, ARTICLES]
fingerprints = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    ("layout", "count", "asked", "key_bits"),
    [
        (FOUR_BLOCKS, 4, 4, {16}),
        (FIVE_CHOOSE_TWO, 10, 10, {25, 26}),
        (TWO_LEVEL, 16, 16, {28}),
        (HALVES, 2, 66, {32}),
        (ARTICLES, 2, 66, {32}),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_layout_has_keys_of_these_bits(layout: Layout, count: int, asked: int, key_bits: set[int]) -> None:
    assert layout.table_count == count
    (own,) = layout.asked_terms(np.array([0x123456789ABCDEF0], np.uint64))
    assert len(set(own)) == asked
    assert {sum(stop - start for start, stop in ranges) for ranges in layout.tables} == key_bits


@pytest.mark.parametrize("layout", STORED, ids=lambda layout: layout.name)
@given(value=fingerprints, flips=st.sets(st.integers(0, 63), max_size=3))
def test_within_three_bits_a_key_that_is_asked_for_is_stored(
    layout: Layout, value: int, flips: set[int]
) -> None:
    other = value ^ sum(1 << bit for bit in flips)
    asked, asked_for_other = layout.asked_terms(np.array([value, other], np.uint64))
    stored, stored_of_other = layout.terms(np.array([value, other], np.uint64))
    assert set(asked) & set(stored_of_other)
    assert set(asked_for_other) & set(stored)
    assert set(stored) <= set(asked)


@pytest.mark.parametrize("layout", STORED, ids=lambda layout: layout.name)
def test_recall_against_exhaustive_search(layout: Layout) -> None:
    random = np.random.default_rng(5)
    base = random.integers(0, 2**64, 200, np.uint64)
    flips = np.uint64(1) << random.integers(0, 64, (200, 5), np.uint64)
    values = np.concatenate(
        (base, *(np.bitwise_xor.reduce(flips[:, :n], axis=1) ^ base for n in range(1, 6)))
    )
    near = np.bitwise_count(values[:, None] ^ values[None, :]) <= 3
    rows: dict[str, set[int]] = {}
    for row, terms in enumerate(layout.terms(values)):
        for term in terms:
            rows.setdefault(term, set()).add(row)
    assert near.sum() > len(values) * 3
    for row, asked in enumerate(layout.asked_terms(values)):
        found = set().union(*(rows.get(term, set()) for term in asked))
        assert found >= set(np.flatnonzero(near[row]).tolist())


@pytest.mark.parametrize(
    ("layout", "flipped_bits"),
    [
        (FOUR_BLOCKS, [0, 16, 32, 48]),
        (FIVE_CHOOSE_TWO, [0, 13, 26, 39]),
        # One in each block, so that no quarter is free for the block that stays either.
        (TWO_LEVEL, [0, 16, 32, 48]),
        (HALVES, [0, 1, 32, 33]),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_four_bits_may_touch_every_key(layout: Layout, flipped_bits: list[int]) -> None:
    values = np.array([0, sum(1 << (63 - bit) for bit in flipped_bits)], np.uint64)
    assert not set(layout.asked_terms(values)[0]) & set(layout.terms(values)[1])


def test_terms_are_table_and_bits_in_hex() -> None:
    value = np.array([0x123456789ABCDEF0], np.uint64)
    assert FOUR_BLOCKS.terms(value) == [["01234", "15678", "29abc", "3def0"]]
    # Block 1, then the second quarter of the rest: bits 12 to 16, and 32 to 40.
    assert TWO_LEVEL.terms(value)[0][5] == "5567849a"
    assert all(len(term) == 8 for layout in (FIVE_CHOOSE_TWO, TWO_LEVEL) for term in layout.terms(value)[0])
    assert FIVE_CHOOSE_TWO.terms(np.zeros(0, np.uint64)) == []


def test_articles_have_the_keys_of_halves_in_shorter_terms() -> None:
    value = np.array([0x123456789ABCDEF0, 0xFFFFFFFF00000000], np.uint64)
    assert HALVES.terms(value) == [["012345678", "19abcdef0"], ["0ffffffff", "100000000"]]
    # Six bits a digit: the number of the table and 32 bits are 33 bits, the highest of which are 0.
    assert ARTICLES.terms(value) == [["0id5pU", "6qLdXM"], ["3_____", "400000"]]
    assert ARTICLES.exact_terms(value) == ["4zhmu9G", "_____M0"]
    assert HALVES.exact_terms(value) == ["123456789a", "ffffffff00"]


def test_widths_must_add_up() -> None:
    with pytest.raises(SettingError, match="64"):
        choose((16, 16, 16), 1)
    with pytest.raises(SettingError):
        two_level(16, 13)
    with pytest.raises(SettingError):
        choose((65, -1), 1)


def test_halves_ask_for_their_own_keys_and_what_is_one_bit_away() -> None:
    (asked,) = HALVES.asked_terms(np.array([0x0000000180000000], np.uint64))
    assert HALVES.terms(np.array([0x0000000180000000], np.uint64)) == [["000000001", "180000000"]]
    assert asked[:4] == ["000000001", "000000000", "000000003", "000000005"]
    assert asked[33:36] == ["180000000", "180000001", "180000002"]
    assert asked[65] == "100000000"


def test_the_values_within_three_bits_of_sixty_four_are_43_745() -> None:
    found = differences_within(64, 3)
    assert len(found) == len(np.unique(found)) == 1 + 64 + 2_016 + 41_664 == 43_745
    assert np.bincount(np.bitwise_count(found)).tolist() == [1, 64, 2_016, 41_664]


@pytest.mark.parametrize("layout", [FIVE_CHOOSE_TWO, HALVES, ARTICLES], ids=lambda layout: layout.name)
@given(one=fingerprints, flips=st.sets(st.integers(0, 63), max_size=3))
def test_around_a_term_stands_whatever_is_near_and_has_it(layout: Layout, one: int, flips: set[int]) -> None:
    values = np.array([one, one ^ sum(1 << bit for bit in flips)], np.uint64)
    asked, stored = layout.asked_terms(values)[0], layout.terms(values)[1]
    shared = set(asked) & set(stored)
    assert shared
    for term in shared:
        around = layout.terms_around(one, term)
        assert term not in around
        assert set(around) & set(stored)
        assert len(set(around)) == len(around) == layout.around_counts[asked.index(term)]


def test_going_around_a_half_takes_what_is_left_of_three_bits() -> None:
    assert HALVES.around_counts == [1 + 32 + 496 + 4_960, *[1 + 32 + 496] * 32] * 2


def test_only_pairs_of_five_blocks_and_halves_have_terms_around_a_term() -> None:
    assert FIVE_CHOOSE_TWO.has_terms_around
    assert HALVES.has_terms_around
    for layout in (FOUR_BLOCKS, TWO_LEVEL):
        assert not layout.has_terms_around
        with pytest.raises(SettingError, match="has no terms around a term"):
            layout.terms_around(0, layout.terms(np.zeros(1, np.uint64))[0][0])


def test_layouts_have_names() -> None:
    assert [get_layout(name) for name in bands.LAYOUTS] == LAYOUTS
    with pytest.raises(SettingError, match=r"no layout '2x32'; there are 4x16, 5choose2, .*, 2x32~1"):
        get_layout("2x32")

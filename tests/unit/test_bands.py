import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.bands import (
    ARTICLES,
    NODES,
    Layout,
    around_counts,
    differences_within,
    terms_around,
)

fingerprints = st.integers(0, 2**64 - 1)
in_each_layout = pytest.mark.parametrize("layout", [NODES, ARTICLES], ids=lambda layout: layout.name)


@pytest.mark.parametrize(
    ("layout", "count", "asked", "key_bits"), [(NODES, 10, 10, {25, 26}), (ARTICLES, 2, 66, {32})]
)
def test_a_layout_has_keys_of_these_bits(layout: Layout, count: int, asked: int, key_bits: set[int]) -> None:
    assert len(layout.tables) == count
    (own,) = layout.asked_terms(np.array([0x123456789ABCDEF0], np.uint64))
    assert len(set(own)) == asked
    assert {sum(stop - start for start, stop in ranges) for ranges in layout.tables} == key_bits


@in_each_layout
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


@in_each_layout
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


@pytest.mark.parametrize(("layout", "flipped_bits"), [(NODES, [0, 13, 26, 39]), (ARTICLES, [0, 1, 32, 33])])
def test_four_bits_may_touch_every_key(layout: Layout, flipped_bits: list[int]) -> None:
    values = np.array([0, sum(1 << (63 - bit) for bit in flipped_bits)], np.uint64)
    assert not set(layout.asked_terms(values)[0]) & set(layout.terms(values)[1])


def test_terms_of_nodes_are_table_and_bits_in_hex() -> None:
    value = np.array([0x123456789ABCDEF0], np.uint64)
    (terms,) = NODES.terms(value)
    # Table 0: bits 0 to 26. Table 9: bits 39 to 64.
    assert (terms[0], terms[9]) == (f"0{0x123456789ABCDEF0 >> 38:07x}", f"9{0x123456789ABCDEF0 % 2**25:07x}")
    assert {len(term) for term in terms} == {8}
    assert NODES.exact_terms(value) == ["123456789a"]
    assert NODES.terms(np.zeros(0, np.uint64)) == []


def test_articles_have_the_keys_of_halves_in_shorter_terms() -> None:
    value = np.array([0x123456789ABCDEF0, 0xFFFFFFFF00000000], np.uint64)
    # Six bits a digit: the number of the table and 32 bits are 33 bits, the highest of which are 0.
    assert ARTICLES.terms(value) == [["0id5pU", "6qLdXM"], ["3_____", "400000"]]
    assert ARTICLES.exact_terms(value) == ["4zhmu9G", "_____M0"]


def test_of_articles_their_own_keys_are_asked_for_and_what_is_one_bit_away() -> None:
    value = np.array([0x0000000180000000], np.uint64)
    (own,), (asked,) = ARTICLES.terms(value), ARTICLES.asked_terms(value)
    assert own == ["000001", "600000"]
    assert asked[:4] == ["000001", "000000", "000003", "000005"]
    assert asked[33:36] == ["600000", "600001", "600002"]
    assert asked[65] == "400000"


def test_the_values_within_three_bits_of_sixty_four_are_43_745() -> None:
    found = differences_within(64, 3)
    assert len(found) == len(np.unique(found)) == 1 + 64 + 2_016 + 41_664 == 43_745
    assert np.bincount(np.bitwise_count(found)).tolist() == [1, 64, 2_016, 41_664]


@given(one=fingerprints, flips=st.sets(st.integers(0, 63), max_size=3))
def test_around_a_term_stands_whatever_is_near_and_has_it(one: int, flips: set[int]) -> None:
    values = np.array([one, one ^ sum(1 << bit for bit in flips)], np.uint64)
    own, other = NODES.terms(values)
    shared = set(own) & set(other)
    assert shared
    for term in shared:
        around = terms_around(one, term)
        assert term not in around
        assert set(around) & set(other)
        assert len(set(around)) == len(around) == around_counts()[own.index(term)]


def test_going_around_a_term_takes_some_250_others() -> None:
    assert set(around_counts()) == {248, 250}

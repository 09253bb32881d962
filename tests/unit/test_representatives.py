"""How representatives are compared and looked up: simhashes within some bits, minhashes by equality."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.bands import ARTICLES, NODES, Layout
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, VERIFIED
from esdedup.fingerprint.signature import BINS, REPRESENTATIVES, are_minhashes
from esdedup.neighbours.relation import NeighbourIndex, relation_of
from esdedup.sample import articles

RELATION = relation_of(VERIFIED)
VALUES = st.integers(0, 2**64 - 1)
STORED = [NODES, ARTICLES]


def array(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


@given(VALUES, VALUES, st.integers(0, 63))
def test_only_two_simhashes_are_near_without_being_equal(one: int, other: int, bit: int) -> None:
    for left, right in ((one, other), (one, one ^ 1 << bit), (one, one)):
        found = int(RELATION.distances_bits(array(left), array(right))[0])
        both_are_simhashes = left % 2 == right % 2 == 0
        expected = (left ^ right).bit_count() if both_are_simhashes else 0 if left == right else 64
        assert found == expected
        # The simhash of `classic` may be odd.
        assert relation_of(CLASSIC).distances_bits(array(left), array(right)) == (left ^ right).bit_count()


@given(st.lists(VALUES, max_size=20), st.sampled_from(STORED))
def test_a_minhash_has_one_key_that_no_simhash_has(values: list[int], layout: Layout) -> None:
    found = RELATION.terms_of(array(*values), layout)
    assert [len(each) == 1 for each in found] == [value % 2 == 1 for value in values]
    exact = {each[0] for each in found if len(each) == 1}
    bands = {key for each in found if len(each) > 1 for key in each}
    assert not exact & bands
    bits = 42 if layout is ARTICLES else 40
    assert len(exact) == len({value >> 64 - bits for value in values if value % 2})
    # What is asked for a minhash is its key, and what is asked for a simhash has its keys.
    for stored, asked in zip(found, RELATION.terms_of(array(*values), layout, asked=True), strict=True):
        assert set(stored) <= set(asked)
        assert (len(asked) == 1) == (len(stored) == 1)


@pytest.mark.parametrize("layout", STORED, ids=lambda layout: layout.name)
def test_keys_of_a_signature_are_those_of_its_representatives(layout: Layout) -> None:
    texts = [article["text"][: 20 + 40 * at] for at, article in enumerate(articles(50))]
    signatures = Fingerprinter(VERIFIED).fingerprint(texts).signatures
    chance = np.random.default_rng(1)
    signatures = RELATION.mark_indexed(signatures, chance.random((50, REPRESENTATIVES)) < 0.7)
    for are_indexed, chosen in (
        (True, RELATION.indexed(signatures)),
        (False, RELATION.are_distinct(signatures)),
    ):
        keys = RELATION.terms(signatures.tobytes(), layout, are_indexed=are_indexed)
        rows = zip(RELATION.representatives(signatures), chosen, strict=True)
        assert keys == [list(itertools.chain(*RELATION.terms_of(row[own], layout))) for row, own in rows]


def test_a_long_text_has_two_sentences_and_seven_minhashes() -> None:
    texts = [article["text"] for article in articles(100)]
    signatures = Fingerprinter(VERIFIED).fingerprint(texts).signatures
    representatives = RELATION.representatives(signatures)
    assert (are_minhashes(representatives).sum(axis=1) == REPRESENTATIVES - 2).mean() > 0.9
    keys = RELATION.terms(signatures.tobytes(), NODES, are_indexed=False)
    assert {len(each) for each in keys} <= {27, 18}
    keys = RELATION.terms(signatures.tobytes(), ARTICLES, are_indexed=False)
    assert {len(each) for each in keys} <= {11, 10}


def test_a_row_is_found_by_a_minhash_of_it_and_not_by_a_near_one() -> None:
    held = np.zeros(2, RELATION.dtype)
    held["representatives"] = array(0b111 << 40, 0b1001)[:, None] + np.zeros(REPRESENTATIVES, np.uint64)
    held["representatives"][:, 1] = 0b0101, 0b1101
    held["sketch"], held["letters"], held["runs"] = 0x1111_1111_1111_1111, 10_000, BINS
    held = RELATION.mark_indexed(held, RELATION.are_distinct(held))
    index = NeighbourIndex(RELATION)
    index.add(held.tobytes())
    query = held.copy()
    # One minhash is equal to the first row's, the simhash is 4 bits away; the other differs in one bit.
    query["representatives"][0] = [0xF << 50, 0b0101, *[0xF << 50] * (REPRESENTATIVES - 2)]
    query["representatives"][1] = [0xF << 50, 0b1111, *[0xF << 50] * (REPRESENTATIVES - 2)]
    positions, rows = index.find_pairs(query)
    assert (positions.tolist(), rows.tolist()) == ([0], [0])

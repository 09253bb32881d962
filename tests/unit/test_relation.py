"""Band keys, comparison and look-up of representatives, and the index that finds near signatures."""

import itertools
from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lookup.schemes import differences_within
from benchmarks.signatures import are_distinct, as_nodes
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import ARTICLES, LAYOUTS, PAIRS, TRIPLES, Layout, around_counts, terms_around
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC, VERIFIED
from esdedup.fingerprint.signature import MINHASH, REPRESENTATIVES, SIGNATURE
from esdedup.neighbours.relation import NeighbourIndex, Relation, relation_of
from tests.sample import articles
from tests.support.comparison import compare

fingerprints = st.integers(0, 2**64 - 1)
STORED = [PAIRS, TRIPLES, ARTICLES]
in_each_layout = pytest.mark.parametrize("layout", STORED, ids=lambda layout: layout.name)


@pytest.mark.parametrize(
    ("layout", "count", "asked", "key_bits"),
    [(PAIRS, 10, 10, {25, 26}), (TRIPLES, 20, 20, {31, 32, 33}), (ARTICLES, 2, 66, {32})],
)
def test_layouts_have_the_expected_keys(layout: Layout, count: int, asked: int, key_bits: set[int]) -> None:
    assert len(layout.tables) == count
    assert len(set(layout.search_terms(0x123456789ABCDEF0))) == asked
    assert {sum(stop - start for start, stop in ranges) for ranges in layout.tables} == key_bits


@in_each_layout
@given(value=fingerprints, flips=st.sets(st.integers(0, 63), max_size=3))
def test_simhashes_within_three_bits_share_a_key(layout: Layout, value: int, flips: set[int]) -> None:
    other = value ^ sum(1 << bit for bit in flips)
    asked, asked_for_other = map(layout.search_terms, (value, other))
    stored, stored_of_other = layout.terms([value, other])
    assert set(asked) & set(stored_of_other)
    assert set(asked_for_other) & set(stored)
    assert set(stored) <= set(asked)


@pytest.mark.parametrize(
    ("layout", "flipped_bits"),
    [(PAIRS, [0, 13, 26, 39]), (TRIPLES, [0, 11, 22, 33]), (ARTICLES, [0, 1, 32, 33])],
)
def test_four_bits_may_change_every_key(layout: Layout, flipped_bits: list[int]) -> None:
    (terms,) = layout.terms([sum(1 << (63 - bit) for bit in flipped_bits)])
    assert not set(layout.search_terms(0)) & set(terms)


def test_terms_of_pairs_are_table_and_bits_in_hex() -> None:
    (terms,) = PAIRS.terms([0x123456789ABCDEF0])
    # Table 0: bits 0 to 26. Table 9: bits 39 to 64.
    assert (terms[0], terms[9]) == (f"0{0x123456789ABCDEF0 >> 38:07x}", f"9{0x123456789ABCDEF0 % 2**25:07x}")
    assert {len(term) for term in terms} == {8}
    assert terms_of([0x123456789ABCDEF1], PAIRS) == [["123456789a"]]
    assert PAIRS.terms([]) == []


def test_terms_of_triples_encode_six_bits_per_digit() -> None:
    # The number of the table is above 36 bits, of which a key uses 31 to 33.
    terms = TRIPLES.terms([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE])
    assert [len(set(own)) for own in terms] == [20, 20]
    assert {len(term) for own in terms for term in own} == {7}
    assert [terms[0][0], terms[0][19]] == ["00AqaPN", "j0qLdXM"]
    assert terms_of([0x123456789ABCDEF1], TRIPLES) == [["4zhmu9GY"]]


def test_terms_of_articles_encode_six_bits_per_digit() -> None:
    # Each digit encodes six bits. The number of the table and 32 bits of the simhash are padded with zeros.
    terms = ARTICLES.terms([0x123456789ABCDEF0, 0xFFFFFFFF00000000])
    assert terms == [["0id5pU", "6qLdXM"], ["3_____", "400000"]]
    assert terms_of([0x123456789ABCDEF1, 0xFFFFFFFF00000001], ARTICLES) == [["4zhmu9G"], ["_____M0"]]


def test_articles_are_looked_up_within_one_bit() -> None:
    value = 0x0000000180000000
    (own,), asked = ARTICLES.terms([value]), ARTICLES.search_terms(value)
    assert own == ["000001", "600000"]
    assert asked[:4] == ["000001", "000000", "000003", "000005"]
    assert asked[33:36] == ["600000", "600001", "600002"]
    assert asked[65] == "400000"


def test_there_are_43_745_values_within_three_bits() -> None:
    found = differences_within(64, 3)
    assert len(found) == len(np.unique(found)) == 1 + 64 + 2_016 + 41_664 == 43_745
    assert np.bincount(np.bitwise_count(found)).tolist() == [1, 64, 2_016, 41_664]


@given(
    layout=st.sampled_from([*LAYOUTS.values()]),
    one=fingerprints,
    flips=st.sets(st.integers(0, 63), max_size=3),
)
def test_near_simhashes_are_found_around_a_term(layout: Layout, one: int, flips: set[int]) -> None:
    own, other = layout.terms([one, one ^ sum(1 << bit for bit in flips)])
    assert set(own) & set(other)
    for term in own:
        around = terms_around(layout, one, term)
        assert term not in around
        assert set(around) & set(other)
        assert len(set(around)) == len(around) == around_counts(layout)[own.index(term)]


def test_some_hundred_terms_surround_each_term() -> None:
    assert set(around_counts(PAIRS)) == {248, 250}
    assert set(around_counts(TRIPLES)) == {306, 323, 329}


RELATION = relation_of(VERIFIED)
VALUES = st.integers(0, 2**64 - 1)


def array(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def with_one(representative: int) -> np.ndarray:
    """Return a signature with one representative."""
    made = np.zeros(1, SIGNATURE)
    made["representatives"] = representative
    return made


def terms_of(representatives: Iterable[int], layout: Layout) -> list[list[str]]:
    """Return the terms of each representative."""
    signatures = b"".join(with_one(each).tobytes() for each in representatives)
    return RELATION.terms(signatures, layout, are_indexed=False)


@given(VALUES, VALUES, st.integers(0, 63))
def test_only_simhashes_can_be_near_without_being_equal(one: int, other: int, bit: int) -> None:
    for left, right in ((one, other), (one, one ^ 1 << bit), (one, one)):
        found = int(RELATION.distances_bits(array(left), array(right))[0])
        both_are_simhashes = left % 2 == right % 2 == 0
        expected = (left ^ right).bit_count() if both_are_simhashes else 0 if left == right else 64
        assert found == expected
        # The simhash of `classic` may be odd.
        assert relation_of(CLASSIC).distances_bits(array(left), array(right)) == (left ^ right).bit_count()


@given(st.lists(VALUES, max_size=20), st.sampled_from(STORED))
def test_a_minhash_has_one_key_that_no_simhash_has(values: list[int], layout: Layout) -> None:
    found = terms_of(values, layout)
    assert [len(each) == 1 for each in found] == [value % 2 == 1 for value in values]
    exact = {each[0] for each in found if len(each) == 1}
    bands = {key for each in found if len(each) > 1 for key in each}
    assert not exact & bands
    bits = {PAIRS: 40, TRIPLES: 48, ARTICLES: 42}[layout]
    assert len(exact) == len({value >> 64 - bits for value in values if value % 2})
    # A minhash is looked up by its only key, and a simhash by at least its own keys.
    for stored, value in zip(found, values, strict=True):
        asked = RELATION.search_terms(with_one(value), layout)
        assert set(stored) <= set(asked)
        assert (len(asked) == 1) == (len(stored) == 1)


@pytest.mark.parametrize("layout", STORED, ids=lambda layout: layout.name)
def test_a_signature_has_the_keys_of_its_representatives(layout: Layout) -> None:
    texts = [article["text"][: 20 + 40 * at] for at, article in enumerate(articles(50))]
    signatures = Fingerprinter(VERIFIED).fingerprint(texts).signatures
    chance = np.random.default_rng(1)
    signatures = as_nodes(signatures, chance.random((50, REPRESENTATIVES)) < 0.7)
    for are_indexed, chosen in (
        (True, RELATION.indexed(signatures)),
        (False, are_distinct(signatures["representatives"])),
    ):
        keys = RELATION.terms(signatures.tobytes(), layout, are_indexed=are_indexed)
        rows = zip(RELATION.representatives(signatures), chosen, strict=True)
        assert keys == [list(itertools.chain(*terms_of(row[own], layout))) for row, own in rows]


def test_a_long_text_has_two_sentences_and_seven_minhashes() -> None:
    texts = [article["text"] for article in articles(100)]
    signatures = Fingerprinter(VERIFIED).fingerprint(texts).signatures
    representatives = RELATION.representatives(signatures)
    assert ((representatives & MINHASH).sum(axis=1) == REPRESENTATIVES - 2).mean() > 0.9
    keys = RELATION.terms(signatures.tobytes(), TRIPLES, are_indexed=False)
    assert {len(each) for each in keys} <= {47, 28}
    keys = RELATION.terms(signatures.tobytes(), ARTICLES, are_indexed=False)
    assert {len(each) for each in keys} <= {11, 10}


flipped = st.sets(st.integers(0, 63), max_size=4).map(lambda bits: sum(1 << bit for bit in bits))
values = st.lists(st.one_of(st.integers(0, 2**64 - 1), flipped), max_size=40)


def by_distance(max_distance_bits: int = 3) -> NeighbourIndex:
    return NeighbourIndex(Relation(max_distance_bits=max_distance_bits, agreement=None))


def pairs(index: NeighbourIndex, queried: np.ndarray) -> list[tuple[int, int]]:
    positions, rows = index.find_pairs(queried)
    return list(zip(positions.tolist(), rows.tolist(), strict=True))


@given(added=st.lists(values, max_size=6), queried=values, max_distance_bits=st.integers(0, 3))
def test_index_and_exhaustive_search_find_the_same_pairs(
    added: list[list[int]], queried: list[int], max_distance_bits: int
) -> None:
    index = by_distance(max_distance_bits)
    for batch in added:
        index.add(np.array(batch, np.uint64).tobytes())
    everything = [value for batch in added for value in batch]
    assert pairs(index, np.array(queried, np.uint64)) == [
        (query, row)
        for query, one in enumerate(queried)
        for row, other in enumerate(everything)
        if (one ^ other).bit_count() <= max_distance_bits
    ]


AGREEMENT = Agreement()
BY_AGREEMENT = Relation(max_distance_bits=3, agreement=AGREEMENT)
# A few representatives of each kind, some of them a few bits apart; minhashes are odd.
SIMHASHES = [0, 0b110, 0xFFFF_0000_FFFF_0000, 0xFFFF_0000_FFFF_0000 ^ 1 << 40, 7 << 32]
MINHASHES = [1, 0b11, 0b111, 0xFFFF_0000_FFFF_0001]
SKETCHES = [0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA]


@st.composite
def signatures(draw: st.DrawFn) -> bytes:
    made = np.zeros(1, SIGNATURE)
    some = draw(st.lists(st.sampled_from([*SIMHASHES, *MINHASHES]), min_size=1, max_size=4))
    made["representatives"] = (some * REPRESENTATIVES)[:REPRESENTATIVES]
    made["sketch"] = [draw(st.sampled_from(SKETCHES)) for _ in range(8)]
    made["units"] = draw(st.sampled_from([50, 5_000]))
    made["runs"] = draw(st.sampled_from([100, 150, 300]))
    made["figures"] = draw(st.sampled_from([0, 20]))
    made["figure_sketch"] = draw(st.sampled_from([0, 1, 2**40 - 1]))
    made["name_sketch"] = draw(st.sampled_from([0, 7 | 31 << 30, 15 | 15 << 30 | 1 << 60, 2**40 - 1]))
    made["pair_sketch"] = draw(st.sampled_from([0, 2**40 - 1]))
    # Nodes are not indexed under saturated keys, so a node may be indexed under no key at all.
    indexed = draw(st.lists(st.booleans(), min_size=REPRESENTATIVES, max_size=REPRESENTATIVES))
    chosen = are_distinct(made["representatives"]) & np.array(indexed)
    return as_nodes(made, chosen).tobytes()


several = st.lists(signatures(), max_size=12).map(lambda each: np.frombuffer(b"".join(each), SIGNATURE))


def have_in_common(queried: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return which pairs share a representative under which the held signature is indexed."""
    one, other = queried["representatives"][:, None, :, None], held["representatives"][None, :, None, :]
    bits = np.where((one | other) & MINHASH, 0, 3)
    indexed = BY_AGREEMENT.indexed(held)[None, :, None, :]
    common: np.ndarray = ((np.bitwise_count(one ^ other) <= bits) & indexed).any(axis=(2, 3))
    return common


@given(st.lists(several, max_size=5), several)
def test_texts_that_share_a_representative_and_agree_are_near(
    batches: list[np.ndarray], queried: np.ndarray
) -> None:
    index, held = NeighbourIndex(BY_AGREEMENT), np.zeros(0, SIGNATURE)
    for batch in batches:
        index.add(batch.tobytes())
        held = np.concatenate((held, batch))
        positions, rows = have_in_common(queried, held).nonzero()
        agree = compare(queried[positions], held[rows], AGREEMENT).agree
        expected = zip(positions[agree].tolist(), rows[agree].tolist(), strict=True)
        assert pairs(index, queried) == list(expected)


_RELATION = relation_of(VERIFIED)
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_TEXTS = [article["text"] for article in articles(1_500)]
CHINESE = [text for text in _TEXTS if "的" in text][:300]
ENGLISH = [text for text in _TEXTS if " the " in text][:300]
_HAN = sorted({character for text in CHINESE for character in text if character > "一"})


def _with_typos(text: str, share: float, random: Random) -> str:
    """Replace a share of the letters of a text, at least one, with random letters of its script."""
    letters = [at for at, character in enumerate(text) if character.isalpha()]
    characters = list(text)
    for at in random.sample(letters, max(1, round(share * len(letters)))):
        characters[at] = random.choice(_LATIN if text[at].isascii() else _HAN)
    return "".join(characters)


@pytest.mark.parametrize(
    ("texts", "share", "least"),
    [
        (CHINESE, 0.04, 0.95),
        ([text[:100] for text in CHINESE], 0, 0.95),
        (ENGLISH, 0.02, 0.94),
        ([text[:200] for text in ENGLISH], 0, 0.95),
        # Measured: 60 % of the texts are near. One wrong letter in 40 changes one word in eight and two runs
        # in nine, which is the limit at this length. Of texts with 4 % wrong letters, 1 % are near.
        (ENGLISH, 0.025, 0.55),
    ],
    ids=[
        *("Chinese, 4 percent", "short Chinese, a typo", "English, 2 percent"),
        *("short English, a typo", "English, 2.5 percent"),
    ],
)
def test_edited_texts_are_near(texts: list[str], share: float, least: float) -> None:
    random, fingerprinter = Random(1), Fingerprinter(VERIFIED)
    signatures = fingerprinter.fingerprint(texts).signatures
    edited = fingerprinter.fingerprint([_with_typos(text, share, random) for text in texts]).signatures
    index = NeighbourIndex(_RELATION)
    index.add(as_nodes(signatures).tobytes())
    positions, rows = index.find_pairs(edited)
    near = np.unique(rows[rows == positions])
    assert len(near) / len(texts) >= least

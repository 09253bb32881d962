"""The index of signatures of `verified`, against exhaustive search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import VERIFIED
from esdedup.fingerprint.signature import REPRESENTATIVES, SIGNATURE, are_distinct, are_minhashes
from esdedup.neighbours.relation import relation_of
from esdedup.neighbours.sketched_index import SketchedIndex

AGREEMENT = Agreement()
# Few of both kinds, a few bits apart; odd ones are minhashes.
SIMHASHES = [0, 0b110, 0xFFFF_0000_FFFF_0000, 0xFFFF_0000_FFFF_0000 ^ 1 << 40, 7 << 32]
MINHASHES = [1, 0b11, 0b111, 0xFFFF_0000_FFFF_0001]
SKETCHES = [0x1111_1111_1111_1111, 0x2222_2222_2222_2222]


@st.composite
def signatures(draw: st.DrawFn) -> bytes:
    made = np.zeros(1, SIGNATURE)
    some = draw(st.lists(st.sampled_from([*SIMHASHES, *MINHASHES]), min_size=1, max_size=4))
    made["representatives"] = (some * REPRESENTATIVES)[:REPRESENTATIVES]
    made["sketch"] = [draw(st.sampled_from(SKETCHES)) for _ in range(8)]
    made["letters"] = draw(st.sampled_from([100, 5_000]))
    made["runs"] = draw(st.sampled_from([100, 300]))
    # Saturated keys are not indexed; a node may be indexed under nothing.
    indexed = draw(st.lists(st.booleans(), min_size=REPRESENTATIVES, max_size=REPRESENTATIVES))
    chosen = are_distinct(made["representatives"]) & np.array(indexed)
    return relation_of(VERIFIED).mark_indexed(made, chosen).tobytes()


several = st.lists(signatures(), max_size=12).map(lambda each: np.frombuffer(b"".join(each), SIGNATURE))
Signatures = np.ndarray


def new_index() -> SketchedIndex:
    return SketchedIndex(max_distance_bits=3, agreement=AGREEMENT)


def have_in_common(queried: Signatures, held: Signatures, most_bits: int) -> np.ndarray:
    """Return which pairs have a representative in common, with simhashes that differ in so many bits."""
    one, other = queried["representatives"][:, None, :, None], held["representatives"][None, :, None, :]
    indexed = relation_of(VERIFIED).indexed(held)[None, :, None, :]
    either_is_minhash = are_minhashes(one) | are_minhashes(other)
    bits = np.where(either_is_minhash, 0, most_bits)
    common: np.ndarray = ((np.bitwise_count(one ^ other) <= bits) & indexed).any(axis=(2, 3))
    return common


def check(index: SketchedIndex, by_row: dict[int, np.void], queried: Signatures) -> None:
    rows = np.array(sorted(by_row), np.int64)
    held = np.array([by_row[row] for row in rows.tolist()], SIGNATURE)
    positions, places = have_in_common(queried, held, 3).nonzero()
    agree = AGREEMENT.agree(queried[positions], held[places])
    found = index.search(queried)
    assert found.positions.tolist() == positions[agree].tolist()
    assert found.rows.tolist() == rows[places[agree]].tolist()
    indexed = relation_of(VERIFIED).indexed(held)
    keys = np.unique(queried["representatives"])
    expected = [
        (key, row)
        for key in keys.tolist()
        for row, representatives, chosen in zip(rows.tolist(), held["representatives"], indexed, strict=True)
        if key in representatives[chosen].tolist()
    ]
    assert sorted(zip(found.posting_keys.tolist(), found.postings.tolist(), strict=True)) == expected
    assert index.signatures(rows).tobytes() == held.tobytes()
    assert len(index) == len(held)


@given(st.lists(st.tuples(several, st.sets(st.integers(0, 30))), max_size=5), several)
def test_finds_what_exhaustive_search_finds_while_rows_come_and_go(
    batches: list[tuple[Signatures, set[int]]], queried: Signatures
) -> None:
    index, by_row = new_index(), dict[int, np.void]()
    for added, removed in batches:
        rows = index.add(added).tolist()
        assert not by_row.keys() & set(rows)
        by_row |= dict(zip(rows, added, strict=True))
        gone = sorted(removed & by_row.keys())
        index.remove(np.array(gone, np.int64))
        for row in gone:
            del by_row[row]
        check(index, by_row, queried)


def random_ones(count: int, random: np.random.Generator) -> Signatures:
    made = np.zeros(count, SIGNATURE)
    made["representatives"] = random.integers(0, 2**64, (count, REPRESENTATIVES), np.uint64)
    made["representatives"][:, :2] &= np.uint64(2**64 - 2)
    made["representatives"][:, 2:] |= np.uint64(1)
    made["sketch"] = random.integers(0, 2**64, (count, 8), np.uint64)
    return relation_of(VERIFIED).mark_indexed(made, are_distinct(made["representatives"]))


@pytest.mark.slow
def test_many_rows_come_and_go_in_the_same_memory() -> None:
    random, index = np.random.default_rng(1), new_index()
    made = random_ones(100_000, random)
    rows = index.add(made)
    # 144 of them are the signature.
    assert index.size_bytes / len(index) < 240
    before_bytes = index.size_bytes
    gone = random.permutation(len(rows))[:50_000]
    index.remove(rows[gone])
    made[gone] = random_ones(50_000, random)
    rows[gone] = index.add(made[gone])
    assert sorted(rows.tolist()) == list(range(100_000))
    assert index.size_bytes < 1.05 * before_bytes
    chosen = random.permutation(len(rows))[:300]
    found = index.search(made[chosen])
    assert found.rows.tolist() == rows[chosen].tolist()
    assert len(found.postings) == 300 * REPRESENTATIVES

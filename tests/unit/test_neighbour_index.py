"""The index in memory, against exhaustive search."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.signature import REPRESENTATIVES, SIGNATURE, are_distinct, are_minhashes
from esdedup.neighbours.relation import NeighbourIndex, Relation
from tests.support.comparison import compare

flipped = st.sets(st.integers(0, 63), max_size=4).map(lambda bits: sum(1 << bit for bit in bits))
values = st.lists(st.one_of(st.integers(0, 2**64 - 1), flipped), max_size=40)


def by_distance(max_distance_bits: int = 3) -> NeighbourIndex:
    return NeighbourIndex(Relation(max_distance_bits=max_distance_bits, agreement=None))


def pairs(index: NeighbourIndex, queried: np.ndarray) -> list[tuple[int, int]]:
    positions, rows = index.find_pairs(queried)
    return list(zip(positions.tolist(), rows.tolist(), strict=True))


@given(added=st.lists(values, max_size=6), queried=values, max_distance_bits=st.integers(0, 3))
def test_finds_what_exhaustive_search_finds(
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
def test_full_buckets_lose_nothing(fixed: int, varying: int) -> None:
    random = np.random.default_rng(1)
    index, everything = by_distance(), np.zeros(0, np.uint64)
    for _ in range(6):
        batch = random.integers(0, 2**64, 500, np.uint64) & np.uint64(varying) | np.uint64(fixed)
        near: Iterable[int] = np.flatnonzero(random.random(500) < 0.3) if len(everything) else ()
        for position in near:
            flips = random.choice(64, random.integers(0, 5), replace=False)
            mask = np.bitwise_or.reduce(np.uint64(1) << flips.astype(np.uint64), initial=np.uint64(0))
            batch[position] = random.choice(everything) ^ mask
        distances = np.bitwise_count(batch[:, None] ^ everything[None, :])
        assert pairs(index, batch) == [tuple(pair) for pair in np.argwhere(distances <= 3).tolist()]
        index.add(batch.tobytes())
        everything = np.concatenate((everything, batch))


AGREEMENT = Agreement()
BY_AGREEMENT = Relation(max_distance_bits=3, agreement=AGREEMENT)
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
    return BY_AGREEMENT.mark_indexed(made, chosen).tobytes()


several = st.lists(signatures(), max_size=12).map(lambda each: np.frombuffer(b"".join(each), SIGNATURE))


def have_in_common(queried: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return which pairs have a representative in common that the one held is indexed under."""
    one, other = queried["representatives"][:, None, :, None], held["representatives"][None, :, None, :]
    bits = np.where(are_minhashes(one) | are_minhashes(other), 0, 3)
    indexed = BY_AGREEMENT.indexed(held)[None, :, None, :]
    common: np.ndarray = ((np.bitwise_count(one ^ other) <= bits) & indexed).any(axis=(2, 3))
    return common


@given(st.lists(several, max_size=5), several)
def test_texts_are_near_that_have_a_representative_in_common_and_agree(
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

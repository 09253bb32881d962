import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esdedup.fingerprint.simhash import (
    distance_bits,
    from_hex,
    pack64,
    simhash,
    to_hex,
)
from esdedup.text.hashing import murmur64

fingerprints = st.integers(0, 2**64 - 1)


def test_a_component_that_is_zero_gives_0() -> None:
    hashes = {b"one": 0b1100, b"other": 0b1010}
    assert simhash([("one", 3), ("other", 3)], width=4, token_hash=hashes.__getitem__) == 0b1000


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=12), st.integers(1, 64))
def test_simhash_is_the_sign_of_the_signed_sums(tokens: list[tuple[str, int]], width: int) -> None:
    tokens = [(token, weight) for token, weight in tokens if token.isprintable()]
    expected = 0
    for bit in reversed(range(width)):
        total = sum(weight if murmur64(token.encode()) >> bit & 1 else -weight for token, weight in tokens)
        expected = expected << 1 | (total > 0)
    assert simhash(tokens, width=width) == expected


@given(st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 9))), st.randoms())
def test_the_order_of_tokens_does_not_matter(tokens: list[tuple[str, int]], random: object) -> None:
    shuffled = list(tokens)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert simhash(shuffled) == simhash(tokens)


def test_wider_than_the_hash() -> None:
    assert simhash([("x", 1)], width=128, token_hash=lambda token: 1 << 127 | 5) == 1 << 127 | 5


@given(st.lists(fingerprints))
def test_hex_there_and_back(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    assert to_hex(array) == [f"{value:016x}" for value in values]
    assert from_hex(to_hex(array)).tolist() == values


@given(fingerprints, fingerprints)
def test_distance_counts_the_bits_that_differ(one: int, other: int) -> None:
    assert distance_bits(np.uint64(one), np.uint64(other)) == (one ^ other).bit_count()  # type: ignore[arg-type]


@given(st.lists(fingerprints, min_size=1))
def test_packed_signs_are_the_bits_of_the_fingerprint(values: list[int]) -> None:
    signs = np.array([[value >> bit & 1 for bit in range(63, -1, -1)] for value in values]) == 1
    assert pack64(signs).tolist() == values

"""Hashes of words: known answers of each, and how one of 32 bits becomes one of 64."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup import SettingError
from esdedup.text.hashing import (
    TOKEN_HASHES,
    TokenHash,
    crc32,
    get_token_hash,
    java31,
    mixed,
    murmur64,
    times33,
)


@pytest.mark.parametrize(
    ("function", "token", "value"),
    [
        # From the reference implementation: MurmurHash3_x64_128 with seed 0.
        (murmur64, "hello", 0xCBD8A7B341BD9B02),
        # The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
        (crc32, "123456789", 0xCBF43926),
        (crc32, "", 0),
        # As String.hashCode of OpenJDK printed them, unsigned. The emoji is two UTF-16 code units.
        (java31, "", 0),
        (java31, "a", 97),
        (java31, "hello", 99_162_322),
        (java31, "polygenelubricants", 1 << 31),
        (java31, "The quick brown fox jumps over the lazy dog", 3_685_539_155),
        (java31, "美国", 1_034_543),
        (java31, "😀", 1_772_899),
        # Published with implementations of djb2.
        (times33, "", 5381),
        (times33, "Algorithms", 3_782_405_311),
        (times33, "scramble bits", 1_609_059_040),
    ],
)
def test_known_answers(function: Callable[[bytes], int], token: str, value: int) -> None:
    assert function(token.encode()) == value


def test_the_sum_of_java_and_of_bernstein_by_their_formulas() -> None:
    """Written out as sums of powers, which the code is not."""
    text = b"times thirty-one"
    n = len(text)
    java = sum(byte * 31 ** (n - 1 - at) for at, byte in enumerate(text))
    bernstein = 5381 * 33**n + sum(byte * 33 ** (n - 1 - at) for at, byte in enumerate(text))
    assert java31(text) == java % 2**32
    assert times33(text) == bernstein % 2**32


def test_a_hash_of_32_bits_is_made_longer_by_the_finalizer_of_murmur3() -> None:
    # fmix64 of the reference implementation.
    assert mixed(np.array([0, 1], np.uint64)).tolist() == [0, 0xB456BCFC34C2CB2C]
    hashes = TOKEN_HASHES["java31"].of(["a", "hello", "美国"])
    assert hashes.tolist() == mixed(np.array([97, 99_162_322, 1_034_543], np.uint64)).tolist()
    # All 64 bits are used as they come.
    assert TOKEN_HASHES["murmur3"].of(["hello"]).tolist() == [0xCBD8A7B341BD9B02]


@given(st.sets(st.integers(0, 2**32 - 1), min_size=2))
def test_words_with_different_hashes_keep_different_ones(values: set[int]) -> None:
    ours = TokenHash("own", int, bits=32)
    assert len(set(ours.of([str(value) for value in values]).tolist())) == len(values)


@pytest.mark.slow
def test_every_bit_of_a_longer_hash_is_one_as_often_as_not() -> None:
    """Within 5 standard errors; the upper half too, which a hash of 32 bits does not have."""
    words = [f"word {number}" for number in range(4_000)]
    for token_hash in TOKEN_HASHES.values():
        ones = [np.mean(token_hash.of(words) >> np.uint64(bit) & np.uint64(1)) for bit in range(64)]
        assert np.abs(np.array(ones) - 0.5).max() < 5 * 0.5 / len(words) ** 0.5, token_hash.name


@pytest.mark.parametrize("value", [-1, 1 << 8, 1.0, True, None])
def test_what_is_no_hash_of_these_bits_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"the hash 'own' returned .* for 'a': .* from 0 to 2\^8 - 1"):
        TokenHash("own", lambda token: value, bits=8).of(["a"])  # type: ignore[arg-type,return-value]


def test_a_hash_without_a_name_or_with_no_sensible_size() -> None:
    with pytest.raises(SettingError, match="needs a name"):
        TokenHash("", crc32)
    for bits in (0, 65):
        with pytest.raises(SettingError, match="1 to 64"):
            TokenHash("own", crc32, bits=bits)
    with pytest.raises(SettingError, match="no hash 'md5'; there are murmur3, crc32, java31, times33"):
        get_token_hash("md5")

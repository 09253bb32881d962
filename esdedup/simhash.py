"""Simhash: weighted tokens in, one fingerprint out, of any width.

Every token is hashed; a token adds its weight to component *i* where bit *i* of its hash is 1, and
subtracts it where the bit is 0. The signs of the sums are the fingerprint: 1 for a positive
component, 0 for a negative one and for one that is exactly zero (Charikar, STOC 2002).
"""

from collections.abc import Callable, Iterable

import mmh3
import numpy as np
import numpy.typing as npt

TokenHash = Callable[[bytes], int]
"""Hashes the UTF-8 bytes of a token to an unsigned integer; simhash takes its low `width` bits."""


def murmur64(token: bytes) -> int:
    """Hash with MurmurHash3, x64, 128 bits, seed 0; the first half as an unsigned number."""
    return mmh3.hash64(token, seed=0, x64arch=True, signed=False)[0]


def simhash(tokens: Iterable[tuple[str, int]], *, width: int = 64, token_hash: TokenHash = murmur64) -> int:
    """Return the simhash of weighted `tokens`; a token that occurs twice counts twice.

    No tokens give 0.
    """
    pairs = list(tokens)
    hashes = hash_bits((token_hash(token.encode()) for token, _ in pairs), width=width)
    weights = np.array([weight for _, weight in pairs], np.int64)
    signs = components(hashes, weights, np.zeros(1, np.int64)) > 0 if pairs else np.zeros((1, width), bool)
    return int.from_bytes(np.packbits(signs[0], bitorder="big"), "big") >> (-width % 8)


def hash_bits(hashes: Iterable[int], *, width: int) -> npt.NDArray[np.uint8]:
    """Spread the low `width` bits of each hash into a row, highest bit first: uint8 ``(n, width)``."""
    size = (width + 7) // 8
    mask = (1 << width) - 1
    packed = b"".join((value & mask).to_bytes(size, "big") for value in hashes)
    rows = np.frombuffer(packed, np.uint8).reshape(-1, size)
    bits: npt.NDArray[np.uint8] = np.unpackbits(rows, axis=1)[:, size * 8 - width :]
    return bits


def components(
    bits: npt.NDArray[np.uint8], weights: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Add up signed weights, for each group of tokens.

    Weights are whole numbers, so that sums are exact: the same on every machine and in every order
    of the tokens.

    Args:
        bits: The tokens' hashes, one bit a cell, ``(tokens, width)``.
        weights: ``(tokens,)``.
        starts: Where each group begins, ``(groups,)``, strictly rising; every group has a token.

    Returns:
        int64 ``(groups, width)``.
    """
    positive = np.add.reduceat(bits * weights[:, None], starts, axis=0)
    return 2 * positive - np.add.reduceat(weights, starts)[:, None]


def pack64(signs: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Turn rows of 64 signs into fingerprints, first column highest: uint64 ``(n,)``."""
    packed: npt.NDArray[np.uint64] = np.packbits(signs, axis=1).view(">u8")[:, 0].astype(np.uint64)
    return packed


def to_hex(fingerprints: npt.NDArray[np.uint64]) -> list[str]:
    """Write fingerprints as 16 hex digits each, block 0 first."""
    digits = fingerprints.astype(">u8").tobytes().hex()
    return [digits[at : at + 16] for at in range(0, len(digits), 16)]


def from_hex(fingerprints: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Read what `to_hex` wrote."""
    return np.frombuffer(bytes.fromhex("".join(fingerprints)), ">u8").astype(np.uint64)


def distance_bits(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Count the bits in which fingerprints differ (Hamming distance), elementwise."""
    distances: npt.NDArray[np.uint8] = np.bitwise_count(one ^ other)
    return distances

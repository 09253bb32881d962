"""Simhash: a fingerprint of weighted tokens, of any width.

Every token is hashed. It adds its weight to component *i* if bit *i* of its hash is 1, and subtracts it if
the bit is 0. The signs of the sums are the fingerprint: bit 1 for a positive component, 0 for a negative one
or zero (Charikar, STOC 2002).
"""

import sys
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from esdedup.text.hashing import HashFunction, murmur64

_LANE_SHIFTS = np.arange(16, dtype=np.uint64)[:, None]
_LANES = np.uint64(0x0001_0001_0001_0001)
_LITTLE = sys.byteorder == "little"


def simhash(
    tokens: Iterable[tuple[str, int]], *, width: int = 64, token_hash: HashFunction = murmur64
) -> int:
    """Return the simhash of weighted tokens; 0 if there are none.

    Args:
        tokens: Tokens and their weights; a token that occurs twice counts twice.
        width: The number of bits, from 1.
        token_hash: A simhash takes its low bits; must return at least `width` of them.
    """
    pairs = list(tokens)
    hashes = hash_bits((token_hash(token.encode()) for token, _ in pairs), width=width)
    weights = np.array([weight for _, weight in pairs], np.int64)
    signs = components(hashes, weights, np.zeros(1, np.int64)) > 0 if pairs else np.zeros((1, width), bool)
    return int.from_bytes(np.packbits(signs[0], bitorder="big"), "big") >> (-width % 8)


def hash_bits(hashes: Iterable[int], *, width: int) -> npt.NDArray[np.uint8]:
    """Return the low `width` bits of each hash as 0 and 1, the highest first: uint8 ``(n, width)``."""
    size = (width + 7) // 8
    mask = (1 << width) - 1
    packed = b"".join((value & mask).to_bytes(size, "big") for value in hashes)
    rows = np.frombuffer(packed, np.uint8).reshape(-1, size)
    bits: npt.NDArray[np.uint8] = np.unpackbits(rows, axis=1)[:, size * 8 - width :]
    return bits


def components(
    bits: npt.NDArray[np.uint8], weights: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Add up the signed weights of each group of tokens.

    Weights are whole numbers, so sums are exact: the same on every machine and for every order of tokens.

    Args:
        bits: The bits of the tokens' hashes, 0 or 1, ``(tokens, width)``.
        weights: ``(tokens,)``.
        starts: The first token of each group, ``(groups,)``, strictly ascending from 0.

    Returns:
        int64 ``(groups, width)``.
    """
    positive = np.add.reduceat(bits * weights[:, None], starts, axis=0)
    return 2 * positive - np.add.reduceat(weights, starts)[:, None]


def pack64(signs: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Return rows of 64 signs, ``(n, 64)``, as fingerprints, the first column highest: uint64 ``(n,)``."""
    packed: npt.NDArray[np.uint64] = np.packbits(signs, axis=1).view(">u8")[:, 0].astype(np.uint64)
    return packed


def majority(hashes: npt.NDArray[np.uint64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the simhash of each group of hashes of equal weight.

    Args:
        hashes: ``(n,)``, one group after the other.
        counts: The size of each group, ``(groups,)``, 1 to 65,535.

    Returns:
        uint64 ``(groups,)``.
    """
    if not len(counts):
        return np.zeros(0, np.uint64)
    # Each 64-bit number counts four bit positions of the hashes, in lanes of 16 bits.
    bits = (hashes >> _LANE_SHIFTS) & _LANES
    ones = np.add.reduceat(bits, counts.cumsum() - counts, axis=1).view(np.uint16)
    signs = 2 * ones.reshape(16, len(counts), 4).astype(np.int64) > counts[:, None]
    # Bit 16 * lane + shift from the lowest belongs in the column with that number from the last.
    lanes = signs if _LITTLE else signs[:, :, ::-1]
    return pack64(lanes.transpose(1, 2, 0).reshape(len(counts), 64)[:, ::-1])


def to_hex(fingerprints: npt.NDArray[np.uint64]) -> list[str]:
    """Return fingerprints, uint64 ``(n,)``, as 16 hex digits each, the highest first."""
    digits = fingerprints.astype(">u8").tobytes().hex()
    return [digits[at : at + 16] for at in range(0, len(digits), 16)]


def from_hex(fingerprints: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return the fingerprints that `to_hex` wrote: uint64 ``(n,)``."""
    return np.frombuffer(bytes.fromhex("".join(fingerprints)), ">u8").astype(np.uint64)


def distance_bits(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return the number of bits in which fingerprints differ (Hamming distance), elementwise: uint8."""
    distances: npt.NDArray[np.uint8] = np.bitwise_count(one ^ other)
    return distances

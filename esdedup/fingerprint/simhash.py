"""Simhashes, which are fingerprints of weighted tokens, of any width.

Every token is hashed. The token's weight is added to component *i* if bit *i* of the hash is 1, and
subtracted if the bit is 0. The signs of the sums are the simhash (Charikar, STOC 2002): bit 1 for a positive
component, 0 for a negative component or zero. Much published code uses 1 for zero.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.text.hashing import HashFunction, murmur64


def simhash(
    tokens: Iterable[tuple[str, int]], *, width: int = 64, token_hash: HashFunction = murmur64
) -> int:
    """Return the simhash of weighted tokens; 0 if there are none.

    Args:
        tokens: Tokens and their weights; every occurrence of a token counts.
        width: The number of bits, from 1.
        token_hash: Must return at least `width` bits; the low bits are used.
    """
    sums = signed_sums(tokens, width=width, token_hash=token_hash)
    return int("".join("1" if each > 0 else "0" for each in sums), 2)


def signed_sums(
    tokens: Iterable[tuple[str, int]], *, width: int = 64, token_hash: HashFunction = murmur64
) -> list[int]:
    """Return the components whose signs are the `simhash` of weighted tokens, from the highest bit down."""
    sums = [0] * width
    for token, weight in tokens:
        value = token_hash(token.encode())
        for place in range(width):
            sums[place] += weight if value >> (width - 1 - place) & 1 else -weight
    return sums


def weighted_simhashes(
    hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return the 64-bit simhash of each group of weighted hashes: uint64 ``(groups,)``.

    Weights are integers, so that the sums are exact and do not depend on the order of tokens. Groups are
    adjacent; `starts` are the indices of their first hashes, ascending from 0.
    """
    found = _core.weighted_simhashes(hashes.tobytes(), weights.tobytes(), starts.tobytes())
    return np.frombuffer(found, np.uint64)


def to_hex(fingerprints: npt.NDArray[np.uint64]) -> list[str]:
    """Return fingerprints, uint64 ``(n,)``, as 16 hex digits each."""
    digits = fingerprints.astype(">u8").tobytes().hex()
    return [digits[at : at + 16] for at in range(0, len(digits), 16)]


def from_hex(fingerprints: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return fingerprints from the output of `to_hex`: uint64 ``(n,)``."""
    return np.frombuffer(bytes.fromhex("".join(fingerprints)), ">u8").astype(np.uint64)

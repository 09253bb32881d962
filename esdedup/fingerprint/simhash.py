"""Simhash: a fingerprint of weighted tokens, of any width.

Every token is hashed. It adds its weight to component *i* if bit *i* of its hash is 1, and subtracts it if
the bit is 0. The signs of the sums are the fingerprint: bit 1 for a positive component, 0 for a negative one
or zero (Charikar, STOC 2002); in much published code, 1 for zero too.
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
        tokens: Tokens and their weights; a token that occurs twice counts twice.
        width: The number of bits, from 1.
        token_hash: A simhash takes its low bits; must return at least `width` of them.
    """
    sums = signed_sums(tokens, width=width, token_hash=token_hash)
    return int("".join("1" if each > 0 else "0" for each in sums), 2)


def signed_sums(
    tokens: Iterable[tuple[str, int]], *, width: int = 64, token_hash: HashFunction = murmur64
) -> list[int]:
    """Return the components whose signs are the `simhash` of weighted tokens, the highest bit's first."""
    sums = [0] * width
    for token, weight in tokens:
        value = token_hash(token.encode())
        for place in range(width):
            sums[place] += weight if value >> (width - 1 - place) & 1 else -weight
    return sums


def weighted_simhashes(
    hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return the simhash of 64 bits of each group of weighted hashes: uint64 ``(groups,)``.

    Weights are whole numbers, so sums are exact: the same on every machine and for every order of tokens.
    Groups come one after the other; `starts` are their first hashes, ascending from 0.
    """
    found = _core.weighted_simhashes(hashes.tobytes(), weights.tobytes(), starts.tobytes())
    return np.frombuffer(found, np.uint64)


def to_hex(fingerprints: npt.NDArray[np.uint64]) -> list[str]:
    """Return fingerprints, uint64 ``(n,)``, as 16 hex digits each, the highest first."""
    digits = fingerprints.astype(">u8").tobytes().hex()
    return [digits[at : at + 16] for at in range(0, len(digits), 16)]


def from_hex(fingerprints: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return the fingerprints that `to_hex` wrote: uint64 ``(n,)``."""
    return np.frombuffer(bytes.fromhex("".join(fingerprints)), ">u8").astype(np.uint64)

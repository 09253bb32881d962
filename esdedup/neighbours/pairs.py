"""Pairs of 32-bit numbers, such as a query's position and a row, each packed into one 64-bit number.

Packed pairs take half the memory and sort in one go, by the first number, then by the second.
"""

import numpy as np
import numpy.typing as npt

Pairs = npt.NDArray[np.uint64]

_BITS = np.uint64(32)
_SECOND = np.uint64(0xFFFF_FFFF)


def pack(firsts: npt.NDArray[np.integer], seconds: npt.NDArray[np.integer]) -> Pairs:
    """Pack numbers from 0 to 2^32 - 1, ``(n,)`` each; `seconds` may be one number for all, ``(1,)``."""
    pairs = firsts.astype(np.uint64)
    pairs <<= _BITS
    # Casts a few at a time, where `|=` would convert all of `seconds` first.
    np.bitwise_or(pairs, seconds, out=pairs, dtype=np.uint64, casting="unsafe")
    return pairs


def firsts_of(pairs: Pairs) -> npt.NDArray[np.int64]:
    """Return the first number of each pair, int64 ``(n,)``."""
    return (pairs >> _BITS).view(np.int64)


def seconds_of(pairs: Pairs) -> npt.NDArray[np.int64]:
    """Return the second number of each pair, int64 ``(n,)``."""
    return (pairs & _SECOND).view(np.int64)


def distinct(pairs: Pairs) -> Pairs:
    """Return the pairs sorted, each once. Sorts `pairs` itself."""
    # np.unique hashes its values, which is slower for values as similar as these.
    pairs.sort()
    once: Pairs = pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]
    return once

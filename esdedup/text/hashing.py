"""Hashes of words, and of numbers in arrays."""

import mmh3
import numpy as np
import numpy.typing as npt


def murmur64(token: bytes) -> int:
    """Return the first 64 bits of MurmurHash3 (x64, 128 bits, seed 0), as an unsigned number."""
    return mmh3.hash64(token, seed=0, x64arch=True, signed=False)[0]


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each value, of the same shape, by the finalizer of MurmurHash3."""
    values = values ^ values >> np.uint64(33)
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values

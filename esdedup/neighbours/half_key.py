"""Half keys: fingerprints with one half of a range of bits masked out."""

import numpy as np
import numpy.typing as npt

Fingerprints = npt.NDArray[np.uint64]

_ALL = (1 << 64) - 1
# Knuth's multiplicative hashing.
_MULTIPLIER = np.uint64(0x9E37_79B9_7F4A_7C15)


class HalfKey:
    """Takes keys from fingerprints.

    A range of consecutive bits is cut into two halves. A key has one half and all bits outside the range; if
    the range is the whole fingerprint, there are none outside.
    """

    def __init__(self, *, shift: int, other_shift: int, bits: int) -> None:
        """Define a key.

        Args:
            shift: The lowest bit of the half in the key, counted from the lowest of a fingerprint.
            other_shift: The lowest bit of the half that is masked out.
            bits: The size of each half.
        """
        self.shift, self.other_shift, self.bits = shift, other_shift, bits
        own, other = (((1 << bits) - 1) << at for at in (shift, other_shift))
        self._own, self._other = np.uint64(own), np.uint64(other)
        self._outside = np.uint64(_ALL - own - other)

    def of(self, fingerprints: Fingerprints) -> Fingerprints:
        """Return the keys of fingerprints, uint64 of the same shape, their bits in place."""
        return fingerprints & ~self._other

    def hashes_of(self, fingerprints: Fingerprints) -> Fingerprints:
        """Return a hash of each key, uint64 ``(n,)``; flipping a bit of the half flips that bit of the hash.

        The half's lowest bit is the lowest of the hash.
        """
        hashes = fingerprints >> np.uint64(self.shift) & np.uint64((1 << self.bits) - 1)
        if self._outside:
            outside = (fingerprints & self._outside) * _MULTIPLIER
            outside ^= outside >> np.uint64(32)
            hashes ^= outside * _MULTIPLIER >> np.uint64(32)
        return hashes

    def flips(self, bits: int) -> Fingerprints:
        """Return 0, then a mask for each of the lowest `bits` bits of the half in a hash: ``(1 + bits,)``."""
        return np.concatenate(([0], 1 << np.arange(bits))).astype(np.uint64)

    def are_near(self, differences: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return where keys differ in at most one bit, in their half; `differences` are XORs: ``(n,)``."""
        near: npt.NDArray[np.bool_] = np.bitwise_count(differences & self._own) <= 1
        near &= differences & self._outside == 0
        return near

    def others_are_near(self, differences: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return where the masked halves differ in at most one bit; `differences` are XORs: ``(n,)``."""
        near: npt.NDArray[np.bool_] = np.bitwise_count(differences & self._other) <= 1
        return near

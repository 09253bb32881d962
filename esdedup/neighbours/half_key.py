"""Half keys: what is left of a fingerprint without one half of some of its bits."""

import numpy as np
import numpy.typing as npt

Fingerprints = npt.NDArray[np.uint64]

_ALL = (1 << 64) - 1
# Knuth's multiplicative hashing.
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)


class HalfKey:
    """A way to take keys from fingerprints.

    Of some consecutive bits of a fingerprint, one half is in the key and the other half is not. All bits
    outside of the two halves are in the key as well; of all 64 bits there are none.
    """

    def __init__(self, *, shift: int, other_shift: int, bits: int) -> None:
        """Define a key.

        Args:
            shift: The lowest bit of the half that is in the key, counted from the lowest of a fingerprint.
            other_shift: The lowest bit of the half that is not.
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
            spread = (fingerprints & self._outside) * _SPREAD
            spread ^= spread >> np.uint64(32)
            hashes ^= spread * _SPREAD >> np.uint64(32)
        return hashes

    def flips(self, bits: int) -> Fingerprints:
        """Return no flip, then one for each of the lowest `bits` of the half, in a hash: ``(1 + bits,)``."""
        return np.concatenate(([0], 1 << np.arange(bits))).astype(np.uint64)

    def are_near(self, differences: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return where keys differ in one bit of the half at most, from the differing bits: ``(n,)``."""
        near: npt.NDArray[np.bool_] = np.bitwise_count(differences & self._own) <= 1
        near &= differences & self._outside == 0
        return near

    def others_are_near(self, differences: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return where the other halves differ in one bit at most, from the differing bits: ``(n,)``."""
        near: npt.NDArray[np.bool_] = np.bitwise_count(differences & self._other) <= 1
        return near

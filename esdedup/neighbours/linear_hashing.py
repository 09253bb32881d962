"""Linear hashing: a hash table that grows by a few buckets at a time (Litwin, VLDB 1980)."""

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.slots import Ints

_FIRST_LEVEL_BITS = 4


class LinearHashing:
    """Maps keys to buckets while buckets are added one by one.

    At level *b* there are from 2^b to 2^(b + 1) buckets. A key's bucket is its low b + 1 bits if there is
    such a bucket, else its low b bits. Adding bucket 2^b + i therefore splits bucket i, and no other.
    """

    def __init__(self) -> None:
        self._level_bits = _FIRST_LEVEL_BITS
        # Buckets below this one have been split at this level.
        self._split = 0

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return (1 << self._level_bits) + self._split

    @property
    def address_bits(self) -> int:
        """How many low bits of a key, at most, decide its bucket."""
        return self._level_bits + 1

    def buckets_of(self, keys: npt.NDArray[np.uint64], flips: npt.NDArray[np.uint64]) -> Ints:
        """Return the bucket of each key after each flip of bits.

        Args:
            keys: ``(n,)``.
            flips: The bits to flip, ``(f,)``; bits above `address_bits` are not allowed.

        Returns:
            int64 ``(n, f)``.
        """
        low = keys & np.uint64((1 << self.address_bits) - 1)
        buckets = low.astype(np.int64)[:, None] ^ flips.astype(np.int64)
        # numpy multiplies faster than it shifts.
        buckets -= (buckets >= self.bucket_count) * (1 << self._level_bits)
        return buckets

    def start_with(self, bucket_count: int) -> None:
        """Raise the number of buckets to at least `bucket_count`; all buckets must be empty."""
        if bucket_count > self.bucket_count:
            self._level_bits = bucket_count.bit_length() - 1
            self._split = bucket_count - (1 << self._level_bits)

    def grow_to(self, bucket_count: int) -> list[slice]:
        """Add buckets until there are `bucket_count`; return the ranges of buckets split, in order."""
        ranges = []
        while self.bucket_count < bucket_count:
            count = min(bucket_count - self.bucket_count, (1 << self._level_bits) - self._split)
            ranges.append(slice(self._split, self._split + count))
            self._split += count
            if self._split == 1 << self._level_bits:
                self._level_bits += 1
                self._split = 0
        return ranges

"""A hash table that is made once, of arrays: as fast as a table can be that never changes."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.uint64]

# 2**64 divided by the golden ratio: spreads keys over buckets (Knuth, TAOCP 6.4).
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# Keys that are looked up together, and values that are read together.
_KEYS_AT_ONCE, _VALUES_AT_ONCE = 1 << 16, 1 << 22


class HashTable:
    """Values by key: those of a bucket stand one after the other."""

    def __init__(self, keys: Values, values: Values, *, width_bits: int) -> None:
        """Make a table of keys and values, ``(n,)`` each; keys have `width_bits`."""
        bits = min(width_bits, max(1, len(keys).bit_length() - 1))
        self._shift = np.uint64(64 - bits)
        buckets = self._bucket(keys)
        self._values = values[np.argsort(buckets)]
        self._starts = np.zeros((1 << bits) + 1, np.uint32)
        np.cumsum(np.bincount(buckets, minlength=1 << bits), out=self._starts[1:])

    @property
    def size_bytes(self) -> int:
        return self._values.nbytes + self._starts.nbytes

    def read(self, keys: Values) -> Iterator[tuple[npt.NDArray[np.int64], Values]]:
        """Yield what is in the buckets of `keys`, some at a time: positions in `keys`, and values."""
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            buckets = self._bucket(keys[first : first + _KEYS_AT_ONCE])
            starts = self._starts[buckets].astype(np.int64)
            ends = np.cumsum(self._starts[buckets + 1] - starts)
            # Cut where more values than a few million would be read together.
            cuts = np.searchsorted(ends, np.arange(0, ends[-1], _VALUES_AT_ONCE), "right")
            for start, stop in zip(cuts, [*cuts[1:], len(ends)], strict=True):
                counts = np.diff(ends[start:stop], prepend=ends[start - 1] if start else 0)
                at = np.arange(counts.sum()) + np.repeat(
                    starts[start:stop] - np.cumsum(counts) + counts, counts
                )
                yield np.repeat(np.arange(first + start, first + stop), counts), self._values[at]

    def _bucket(self, keys: Values) -> npt.NDArray[np.int64]:
        return (keys * _FACTOR >> self._shift).astype(np.int64)

"""Queries for tables of fingerprints."""

import dataclasses

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class Queries:
    """A batch of fingerprints to search for, each with the range of distances that match."""

    # uint64 (n,). If a hot key one bit away is searched, that bit is already flipped here.
    fingerprints: npt.NDArray[np.uint64]
    # int64 (n,): the position of each in the caller's batch; one position may have several queries.
    positions: npt.NDArray[np.int64]
    # int8 (n,) each: the least and the greatest distance in bits, both inclusive.
    least_bits: npt.NDArray[np.int8]
    most_bits: npt.NDArray[np.int8]

    @classmethod
    def within(cls, fingerprints: npt.NDArray[np.uint64], max_distance_bits: int) -> "Queries":
        """Search for everything within a distance, inclusive; positions count from 0."""
        count = len(fingerprints)
        return cls(
            fingerprints,
            np.arange(count),
            np.zeros(count, np.int8),
            np.full(count, max_distance_bits, np.int8),
        )

    def __len__(self) -> int:
        return len(self.fingerprints)

    def part(self, first: int, last: int) -> "Queries":
        """Return the queries from `first` to before `last`."""
        return Queries(
            self.fingerprints[first:last],
            self.positions[first:last],
            self.least_bits[first:last],
            self.most_bits[first:last],
        )

"""Which fingerprints lie within a few bits of each other, in memory."""

import numpy as np
import numpy.typing as npt

from esdedup.bands import FOUR_BLOCKS, Layout
from esdedup.simhash import distance_bits

_Rows = npt.NDArray[np.int64]


class HammingIndex:
    """Fingerprints by row, searched by distance.

    Kept as a few sorted runs, each at least twice as long as the next: adding is a merge now and
    then, searching is a binary search in each run for each band key.
    """

    def __init__(self, *, max_distance_bits: int = 3, layout: Layout = FOUR_BLOCKS) -> None:
        """Make an empty index.

        Args:
            max_distance_bits: Inclusive; must not be more than the layout finds.
            layout: The band keys that candidates share.
        """
        self._max_distance_bits = max_distance_bits
        self._layout = layout
        self._fingerprints = np.zeros(0, np.uint64)
        # Each run: for each table the sorted keys, and the rows that have them.
        self._runs: list[tuple[npt.NDArray[np.uint64], _Rows]] = []

    def __len__(self) -> int:
        return len(self._fingerprints)

    def add(self, fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add uint64 ``(n,)``; they get the next rows, in their order."""
        if not len(fingerprints):
            return
        start = len(self._fingerprints)
        self._fingerprints = np.concatenate((self._fingerprints, fingerprints))
        while self._runs and self._runs[-1][1].shape[1] < 2 * (len(self._fingerprints) - start):
            start -= self._runs.pop()[1].shape[1]
        keys = np.ascontiguousarray(self._layout.keys(self._fingerprints[start:]).T)
        order = np.argsort(keys, axis=1, kind="stable")
        self._runs.append((np.take_along_axis(keys, order, axis=1), order + start))

    def search(self, fingerprints: npt.NDArray[np.uint64]) -> tuple[_Rows, _Rows]:
        """Find all pairs within the distance.

        Returns:
            Positions in `fingerprints` and rows near them, int64 ``(pairs,)`` each, without repeats,
            ordered by position, then by row.
        """
        keys = self._layout.keys(fingerprints)
        found = [np.zeros((2, 0), np.int64)]
        for sorted_keys, rows in self._runs:
            for table in range(self._layout.table_count):
                low = np.searchsorted(sorted_keys[table], keys[:, table], "left")
                counts = np.searchsorted(sorted_keys[table], keys[:, table], "right") - low
                queries = np.repeat(np.arange(len(fingerprints)), counts)
                offsets = np.arange(len(queries)) - np.repeat(np.cumsum(counts) - counts, counts)
                candidates = rows[table][np.repeat(low, counts) + offsets]
                near = (
                    distance_bits(fingerprints[queries], self._fingerprints[candidates])
                    <= self._max_distance_bits
                )
                found.append(np.stack((queries[near], candidates[near])))
        pairs = np.unique(np.concatenate(found, axis=1), axis=1)
        return pairs[0], pairs[1]

"""Numbers that are given out and taken back, such as the rows of columns in which something is removed."""

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.columns import grow

Ints = npt.NDArray[np.int64]


class Numbers:
    """Gives out numbers from 0 on; those that were taken back come first. At most 4,294,967,295."""

    def __init__(self) -> None:
        """Begin with 0."""
        # All numbers below it have been given out.
        self.end = 0
        # Those taken back, with room for more.
        self._free = np.zeros(0, np.uint32)
        self._free_count = 0

    def __len__(self) -> int:
        """Return how many are given out."""
        return self.end - self._free_count

    @property
    def size_bytes(self) -> int:
        """The memory of the numbers that were taken back."""
        return self._free.nbytes

    def take(self, count: int) -> Ints:
        """Give out so many numbers: int64 ``(count,)``."""
        reused = min(count, self._free_count)
        self._free_count -= reused
        before, self.end = self.end, self.end + count - reused
        return np.concatenate(
            (
                self._free[self._free_count : self._free_count + reused].astype(np.int64),
                np.arange(before, self.end),
            )
        )

    def give_back(self, numbers: npt.NDArray[np.integer]) -> None:
        """Take back numbers that were given out, each once, ``(n,)``."""
        before, self._free_count = self._free_count, self._free_count + len(numbers)
        grow(self._free, self._free_count)
        self._free[before : self._free_count] = numbers

"""`Block`: pages that have been seen, and are learned from together."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.marks import MARKS, ORIGIN, Marks, Origins
from esdedup.neighbours.key_table import Keys


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    """Pages in their order, and those of their passages from which something is to be learned."""

    # uint32 (p, MARKS).
    marks: Marks = dataclasses.field(default_factory=lambda: np.zeros((0, MARKS), np.uint32))
    # uint32 (p, ORIGIN).
    origins: Origins = dataclasses.field(default_factory=lambda: np.zeros((0, ORIGIN), np.uint32))
    # uint64 (n,): the passages, page by page.
    hashes: Keys = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    # int64 (n,): the page of each, as a place in `marks`.
    places: npt.NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    # uint32 (n,): what is known of each, as the table "passages" has it; 0 for nothing.
    values: npt.NDArray[np.uint32] = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint32))
    # uint32 (n,): the letters of each; 0 if it is left out of its page.
    letters: npt.NDArray[np.uint32] = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint32))

    def __len__(self) -> int:
        return len(self.marks)

    def part(self, start: int, stop: int) -> "Block":
        """Return the pages from `start` to `stop` (exclusive)."""
        first, last = self.places.searchsorted((start, stop))
        return Block(
            marks=self.marks[start:stop],
            origins=self.origins[start:stop],
            hashes=self.hashes[first:last],
            places=self.places[first:last] - start,
            values=self.values[first:last],
            letters=self.letters[first:last],
        )

    def then(self, later: "Block") -> "Block":
        """Return the pages of both."""
        return Block(
            marks=np.concatenate((self.marks, later.marks)),
            origins=np.concatenate((self.origins, later.origins)),
            hashes=np.concatenate((self.hashes, later.hashes)),
            places=np.concatenate((self.places, later.places + len(self))),
            values=np.concatenate((self.values, later.values)),
            letters=np.concatenate((self.letters, later.letters)),
        )

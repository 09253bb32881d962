"""Signatures by row, searched for those near others."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.neighbours.relation import Relation

Ints = npt.NDArray[np.int64]


class NeighbourIndex:
    """Signatures by row, from 0 on, searched for those near others.

    Nearness is symmetric, and equal signatures are near.
    """

    def __init__(self, relation: Relation) -> None:
        """Make an empty index."""
        self._dtype = relation.dtype
        self._index = _core.NeighbourIndex(relation.core)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._index.size_bytes

    def add(self, signatures: npt.NDArray[Any]) -> None:
        """Add signatures, ``(n,)``: a row is found by the representatives that it is indexed under."""
        self._index.add(signatures.astype(self._dtype, copy=False).tobytes())

    def add_all(self, signatures: Iterable[bytes]) -> None:
        """Add signatures."""
        self._index.add(b"".join(signatures))

    def find_pairs(self, signatures: npt.NDArray[Any]) -> tuple[Ints, Ints]:
        """Return pairs of a position in `signatures` and a row near it, in order: int64 ``(pairs,)`` each."""
        positions, rows = self._index.find_pairs(signatures.astype(self._dtype, copy=False).tobytes())
        return np.frombuffer(positions, np.int64), np.frombuffer(rows, np.int64)

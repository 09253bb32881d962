"""`PageColumns`: what is kept of pages by their numbers, so that passages can be compared by their pages."""

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.marks import MARKS, ORIGIN
from esdedup.neighbours.columns import grow

_COLUMNS = {"marks": MARKS, "origins": ORIGIN}

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint32]


class PageColumns:
    """The marks and the origins of pages from one page on, in arrays that grow in place.

    Nothing is ever undone: what is put for a page replaces what was put for it before.
    """

    def __init__(self, *, first: int) -> None:
        """Begin with this page."""
        self.first = first
        self._columns = {name: np.zeros((0, width), np.uint32) for name, width in _COLUMNS.items()}

    @property
    def size_bytes(self) -> int:
        """The memory that they take, including the room for more pages."""
        return sum(column.nbytes for column in self._columns.values())

    def put(self, page: int, *, marks: Rows, origins: Rows) -> None:
        """Set the marks and the origins of some pages, beginning with this one, in their order."""
        start, stop = page - self.first, page - self.first + len(marks)
        for name, rows in (("marks", marks), ("origins", origins)):
            grow(self._columns[name], stop)
            self._columns[name][start:stop] = rows

    def get(self, name: str, pages: Ints) -> Rows:
        """Return "marks" or "origins" of pages, ``(*shape, width)``; 0 for those before the first."""
        column, places = self._columns[name], pages - self.first
        found = np.zeros((*pages.shape, column.shape[1]), np.uint32)
        are_there = (places >= 0) & (places < len(column))
        found[are_there] = column[places[are_there]]
        return found

"""Arrays by row that grow as rows are added."""

import numpy as np
import numpy.typing as npt

# An array grows by 1/32 of its size: larger steps would show as pauses, and as memory.
_GROWTH = 32


def grow(column: npt.NDArray[np.generic], count: int) -> None:
    """Make room for at least `count` rows, counted along the first axis; new rows are zeros.

    The array is resized in place: where the allocator can extend its memory, nothing is copied. Views
    of it must not be kept.
    """
    before = len(column)
    if count > before:
        column.resize((max(count, before + before // _GROWTH), *column.shape[1:]), refcheck=False)

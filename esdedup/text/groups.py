"""Groups in arrays: rows of equal numbers, next to each other."""

from typing import Any

import numpy as np
import numpy.typing as npt


def are_first(groups: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which elements are the first of their group: bool ``(n,)``.

    Args:
        groups: The group of each element, ``(n,)``, equal ones next to each other.
    """
    firsts = np.ones(len(groups), bool)
    np.not_equal(groups[1:], groups[:-1], out=firsts[1:])
    return firsts

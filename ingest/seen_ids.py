"""Finds ids that come again, in bounded memory."""

import array
import bisect
from collections.abc import Iterable

import numpy as np

_UNSORTED = 100_000
_GENERATION = 5_000_000
"""Ids in one of two generations, with 8 bytes each; so the latest 5 to 10 million ids are known."""


class SeenIds:
    """Remembers the latest ids: at least 5 million, in some 100 MB."""

    def __init__(self, *, generation: int = _GENERATION, unsorted: int = _UNSORTED) -> None:
        """Remember no id yet.

        Args:
            generation: How many ids are known at least, once so many have come.
            unsorted: So many are kept with some 70 bytes each, before they are sorted in.
        """
        self._generation = generation
        self._unsorted = unsorted
        self._latest: set[int] = set()
        self._sorted = self._older = array.array("q")

    def add(self, article_id: str) -> bool:
        """Remember an id, and return whether it is new. Two ids with one hash of 64 bits count as one."""
        key = hash(article_id)
        if key in self._latest or _contains(self._sorted, key) or _contains(self._older, key):
            return False
        self._latest.add(key)
        if len(self._latest) >= self._unsorted:
            self._sorted = _merged(self._sorted, self._latest)
            self._latest.clear()
            if len(self._sorted) >= self._generation:
                self._older, self._sorted = self._sorted, array.array("q")
        return True


def _merged(keys: "array.array[int]", others: Iterable[int]) -> "array.array[int]":
    both = np.concatenate((np.frombuffer(keys, np.int64), np.fromiter(others, np.int64)))
    both.sort(kind="stable")
    return array.array("q", both.tobytes())


# By bisection of a plain array: numpy takes ten times as long for a single number.
def _contains(keys: "array.array[int]", key: int) -> bool:
    at = bisect.bisect_left(keys, key)
    return at < len(keys) and keys[at] == key

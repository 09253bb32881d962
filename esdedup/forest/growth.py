"""How many distinct texts a cluster can plausibly have, and which ones grow beyond that. Pure."""

import collections
import heapq
from collections.abc import Iterable

from esdedup.forest.model import Assignment, Kind

MOST_PLAUSIBLE_LEAVES = 1_024
"""What one story may come to, inclusive.

A leaf is a distinct text: copies add none. Of a story that all papers edit there are some hundreds. A
template - a weather report, a table of prices - or a sentence that many unrelated texts have adds a few
every day, and never ends. Both are far from the limit, so nobody has to choose it.
"""

# Clusters that are counted; beyond that those that have grown least are forgotten.
_MOST_COUNTED = 100_000


class Growth:
    """Counts the leaves that assignments add to each cluster, in memory, from now on.

    Less than a cluster has: what was there before is not known, and slow clusters are forgotten when very
    many grow. And more than what lives of it: what expires is not taken off.
    """

    def __init__(self) -> None:
        self._leaves: collections.Counter[str] = collections.Counter()

    def add(self, assignments: Iterable[Assignment]) -> list[tuple[str, int]]:
        """Count, and return the roots that pass the limit, or double beyond it, with what they have passed.

        Each time it is told once.
        """
        passed = []
        for assignment in assignments:
            if assignment.kind is not Kind.JOINED or assignment.root is None:
                continue
            self._leaves[assignment.root] += 1
            before = self._leaves[assignment.root] - 1
            if before >= MOST_PLAUSIBLE_LEAVES and before.bit_count() == 1:
                passed.append((assignment.root, before))
        if len(self._leaves) > _MOST_COUNTED:
            most = heapq.nlargest(_MOST_COUNTED // 2, self._leaves.items(), key=lambda each: each[1])
            self._leaves = collections.Counter(dict(most))
        return passed

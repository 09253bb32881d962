"""How many distinct texts a cluster can plausibly have, and which clusters outgrow that. Pure."""

import collections
import heapq
from collections.abc import Iterable

from esdedup.forest.model import Assignment, Kind

MOST_PLAUSIBLE_LEAVES = 1_024
"""The most leaves that a cluster of one story can have, inclusive.

A leaf is a distinct text: copies add none. A story that every paper edits has some hundreds. A template,
such as a weather report or a table of prices, or a sentence that many unrelated texts share adds a few
leaves every day, without end. The limit is far from both, so it is not a setting.
"""


class Growth:
    """Counts, in memory, the leaves that assignments add to each cluster.

    A count may be too low: earlier leaves are not in it, and slow clusters are forgotten when very many
    grow. It may exceed the live leaves, since expired ones are not subtracted.
    """

    def __init__(
        self, *, most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES, max_clusters: int = 100_000
    ) -> None:
        """Start without counts.

        Args:
            most_plausible_leaves: Growth beyond this is reported; a power of two.
            max_clusters: When more clusters are counted, the half that has grown least is forgotten.
        """
        self._most_plausible_leaves = most_plausible_leaves
        self._max_clusters = max_clusters
        self._leaves: collections.Counter[str] = collections.Counter()

    def add(self, assignments: Iterable[Assignment]) -> list[tuple[str, int]]:
        """Count assignments; return the roots that now exceed the limit, twice it, four times it and so on.

        Returns:
            Each such root with the number that it exceeds. No number is returned twice for a root.
        """
        passed = []
        for assignment in assignments:
            if assignment.kind is not Kind.JOINED or assignment.root is None:
                continue
            self._leaves[assignment.root] += 1
            before = self._leaves[assignment.root] - 1
            if before >= self._most_plausible_leaves and before.bit_count() == 1:
                passed.append((assignment.root, before))
        if len(self._leaves) > self._max_clusters:
            most = heapq.nlargest(self._max_clusters // 2, self._leaves.items(), key=lambda each: each[1])
            self._leaves = collections.Counter(dict(most))
        return passed

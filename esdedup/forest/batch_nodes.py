"""The nodes that one batch works on, and what the batch does to them. Pure."""

import collections
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import Ages, Arrivals, LeafCounts, Nodes

CountLeaves = Callable[[list[int]], LeafCounts]
"""Counts the leaves of roots, given as rows of the nodes that were found, as they were before the batch."""


class BatchNodes:
    """The nodes found near a batch, in their rows, then a row for each arrival in case it becomes a node.

    An arrival's row is a root until it joins another root.
    """

    def __init__(
        self,
        found: Nodes,
        arrivals: Arrivals,
        ages: Ages,
        *,
        first_seq: int,
        count_leaves: CountLeaves,
    ) -> None:
        """Start from the nodes before the batch; no leaves are counted yet.

        Args:
            found: The nodes near the batch.
            arrivals: The batch.
            ages: The batch's.
            first_seq: The `seq` of its first arrival.
            count_leaves: Called at most once per root, when its leaves have to be compared.
        """
        # As they were before the batch.
        self.before = _with_arrivals(found, arrivals, ages, first_seq=first_seq)
        self.found_count = len(found)
        self.roots: list[int] = self.before.roots.tolist()
        self.seen_ms: list[int] = self.before.seen_ms.tolist()
        self._count_leaves = count_leaves
        self._refreshed: set[int] = set()
        self._joined: list[int] = []
        # By `seen`: the leaves of the roots that have been counted, and of the batch's own roots.
        self._leaves: dict[int, collections.Counter[int]] = {}

    def row_of(self, arrival: int) -> int:
        """Return the row of an arrival."""
        return self.found_count + arrival

    def live_roots(self, rows: Iterable[int], live_since_ms: int) -> set[int]:
        """Return the roots of the live nodes among `rows`."""
        return {self.roots[row] for row in rows if self.seen_ms[row] >= live_since_ms}

    def join(self, row: int, root: int) -> None:
        """Make an arrival's row a leaf of `root`."""
        self.roots[row] = root
        self._joined.append(row)
        if root >= self.found_count or root in self._leaves:
            self._leaves.setdefault(root, collections.Counter())[self.seen_ms[row]] += 1

    def refresh(self, row: int, seen_ms: int) -> None:
        """Raise the `seen` of a node and of its root to `seen_ms`, if that is later."""
        root = self.roots[row]
        if row != root:
            self._move_leaf(row, seen_ms)
        for each in (row, root):
            if self.seen_ms[each] < seen_ms:
                self.seen_ms[each] = seen_ms
                self._refreshed.add(each)

    def count(self, roots: Iterable[int]) -> None:
        """Count the leaves of the `roots` that existed before the batch, unless already counted."""
        missing = sorted(root for root in roots if root < self.found_count and root not in self._leaves)
        if not missing:
            return
        for root, counts in self._count_leaves(missing).items():
            self._leaves[root] = collections.Counter(counts)
            self._replay(root)

    def with_most_leaves(self, roots: set[int], live_since_ms: int) -> int:
        """Return the root with the most live leaves, on a tie the one made earliest."""
        self.count(roots)
        return min(
            roots, key=lambda root: (-self._count_live_leaves(root, live_since_ms), self.before.seqs[root])
        )

    @property
    def refreshed(self) -> npt.NDArray[np.int64]:
        """The rows of nodes that existed before the batch and got a later `seen`, int64, ascending."""
        return np.array(sorted(row for row in self._refreshed if row < self.found_count), np.int64)

    def after(self, arrivals_signatures: npt.NDArray[np.generic]) -> Nodes:
        """Return all rows as they are now; `arrivals_signatures` are those to be stored."""
        return Nodes(
            ids=self.before.ids,
            signatures=np.concatenate((self.before.signatures[: self.found_count], arrivals_signatures)),
            roots=np.array(self.roots, np.int64),
            seqs=self.before.seqs,
            made_ms=self.before.made_ms,
            seen_ms=np.array(self.seen_ms, np.int64),
        )

    def _move_leaf(self, row: int, seen_ms: int) -> None:
        counts = self._leaves.get(self.roots[row])
        if counts is not None and self.seen_ms[row] < seen_ms:
            counts[self.seen_ms[row]] -= 1
            counts[seen_ms] += 1

    def _replay(self, root: int) -> None:
        """Apply the batch's changes so far to a root's counts from before the batch."""
        leaves = self._leaves[root]
        for row in self._refreshed:
            if row < self.found_count and self.roots[row] == root != row:
                leaves[self.before.seen_ms.item(row)] -= 1
                leaves[self.seen_ms[row]] += 1
        leaves.update(self.seen_ms[row] for row in self._joined if self.roots[row] == root)

    def _count_live_leaves(self, root: int, live_since_ms: int) -> int:
        counts: Mapping[int, int] = self._leaves.get(root, {})
        return sum(count for seen_ms, count in counts.items() if seen_ms >= live_since_ms)


def _with_arrivals(found: Nodes, arrivals: Arrivals, ages: Ages, *, first_seq: int) -> Nodes:
    positions = np.arange(len(arrivals))
    return Nodes(
        ids=[*found.ids, *(node_id or "" for node_id in arrivals.ids)],
        signatures=np.concatenate((found.signatures, arrivals.signatures)),
        roots=np.concatenate((found.roots, len(found) + positions)),
        seqs=np.concatenate((found.seqs, first_seq + positions)),
        made_ms=np.concatenate((found.made_ms, np.array(ages.times_ms, np.int64))),
        seen_ms=np.concatenate((found.seen_ms, np.array(ages.seen_ms, np.int64))),
    )

"""The nodes that one batch works on, and what the batch does to them. Pure."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import NO_NODE, Ages, Arrivals, Nodes


class BatchNodes:
    """The nodes found near a batch, in their rows, then a row for each arrival in case it becomes a node.

    An arrival's row is a root until it joins another root.
    """

    def __init__(self, found: Nodes, arrivals: Arrivals, ages: Ages, *, first_seq: int) -> None:
        """Start from the nodes before the batch.

        Args:
            found: The nodes near the batch.
            arrivals: The batch.
            ages: The batch's.
            first_seq: The `seq` of its first arrival.
        """
        # As they were before the batch.
        self.before = _with_arrivals(found, arrivals, ages, first_seq=first_seq)
        self.found_count = len(found)
        self.roots: list[int] = self.before.roots.tolist()
        self.seen_ms: list[int] = self.before.seen_ms.tolist()
        self._pages: list[int] = self.before.pages.tolist()
        self._pages_seen_ms: list[int] = self.before.pages_seen_ms.tolist()
        self._refreshed: set[int] = set()

    def row_of(self, arrival: int) -> int:
        """Return the row of an arrival."""
        return self.found_count + arrival

    def live_roots(self, rows: Iterable[int], live_since_ms: int) -> set[int]:
        """Return the roots of the live nodes among `rows`."""
        return {self.roots[row] for row in rows if self.seen_ms[row] >= live_since_ms}

    def join(self, row: int, root: int) -> None:
        """Make an arrival's row a leaf of `root`."""
        self.roots[row] = root

    def refresh(self, row: int, seen_ms: int) -> None:
        """Raise the `seen` of a node and of its root to `seen_ms`, if that is later."""
        for each in (row, self.roots[row]):
            if self.seen_ms[each] < seen_ms:
                self.seen_ms[each] = seen_ms
                self._refreshed.add(each)

    def refresh_page(self, row: int, seen_ms: int, page: int) -> None:
        """Raise the `seen` of a page that a node remembers, if it is the page that made the node."""
        if self._pages[row] == page and self._pages_seen_ms[row] < seen_ms:
            self._pages_seen_ms[row] = seen_ms
            self._refreshed.add(row)

    def by_age(self, rows: Iterable[int]) -> list[int]:
        """Return rows in the order in which their nodes were made."""
        return sorted(rows, key=self.before.seqs.item)

    @property
    def refreshed(self) -> npt.NDArray[np.int64]:
        """The rows of nodes from before the batch with a later `seen` of their own or of their page's.

        Int64, ascending.
        """
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
            pages=self.before.pages,
            pages_seen_ms=np.array(self._pages_seen_ms, np.int64),
            places=self.before.places,
        )


def _with_arrivals(found: Nodes, arrivals: Arrivals, ages: Ages, *, first_seq: int) -> Nodes:
    positions = np.arange(len(arrivals))
    return Nodes(
        ids=[*found.ids, *(node_id or "" for node_id in arrivals.ids)],
        signatures=np.concatenate((found.signatures, arrivals.signatures)),
        roots=np.concatenate((found.roots, len(found) + positions)),
        seqs=np.concatenate((found.seqs, first_seq + positions)),
        made_ms=np.concatenate((found.made_ms, np.array(ages.times_ms, np.int64))),
        seen_ms=np.concatenate((found.seen_ms, np.array(ages.seen_ms, np.int64))),
        pages=np.concatenate((found.pages, arrivals.pages)),
        pages_seen_ms=np.concatenate((found.pages_seen_ms, np.array(ages.seen_ms, np.int64))),
        places=np.concatenate((found.places, np.full(len(arrivals), NO_NODE))),
    )

"""Nodes and pages in memory: the candidates of a batch, and what is not yet visible to searches."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, signatures_of
from esdedup.neighbours.relation import Relation


class NodeCache:
    """Holds some thousands of nodes and pages.

    Of two nodes with one id, the one that was put later counts; of two nodes (or a node and none) for one
    page, the one that had it later.
    """

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._index = relation.new_index()
        # By row of the index.
        self._ids: list[str] = []
        self._nodes: dict[str, StoredNode] = {}
        self.pages: dict[str, StoredPage] = {}
        """By id, each as it was when it was seen last."""
        # Those that have documents of their own.
        self._lone_pages: set[str] = set()

    def __len__(self) -> int:
        """Return how many documents it holds."""
        return len(self._nodes) + len(self._lone_pages)

    def get(self, node_id: str) -> StoredNode | None:
        """Return the node of that id; None if there is none."""
        return self._nodes.get(node_id)

    def put(self, stored: Iterable[Stored]) -> None:
        """Add nodes and pages, or replace nodes of the same id."""
        by_id: dict[str, StoredNode] = {}
        for each in stored:
            if isinstance(each, StoredPage):
                self._lone_pages.add(each.page)
                self._put_page(each)
            else:
                by_id[each.id] = each
                if (page := each.own_page) is not None:
                    self._put_page(page)
        new = [node_id for node_id in by_id if node_id not in self._nodes]
        self._index.add(signatures_of((by_id[node_id] for node_id in new), self._relation))
        self._ids += new
        self._nodes |= by_id

    def find_pairs(self, signatures: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], list[StoredNode]]:
        """Return all pairs of a position in `signatures`, int64 ``(pairs,)``, and a node near it."""
        matches = self._index.search(signatures)
        return matches.positions, self._at(matches.rows)

    def search(
        self, signatures: npt.NDArray[Any]
    ) -> tuple[list[tuple[int, StoredNode]], list[tuple[int, StoredNode]]]:
        """Return the pairs of `find_pairs`, and pairs of a representative and a node indexed under it."""
        matches = self._index.search(signatures)
        neighbours = zip(matches.positions.tolist(), self._at(matches.rows), strict=True)
        postings = zip(matches.posting_keys.tolist(), self._at(matches.postings), strict=True)
        return list(neighbours), list(postings)

    def _put_page(self, page: StoredPage) -> None:
        known = self.pages.get(page.page)
        if known is None or known.seen_ms <= page.seen_ms:
            self.pages[page.page] = page

    def _at(self, rows: npt.NDArray[np.int64]) -> list[StoredNode]:
        return [self._nodes[self._ids[row]] for row in rows.tolist()]

"""Nodes in memory, found by id or signature: candidates of a batch, and nodes not yet visible to searches."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.documents import StoredNode, signatures_of
from esdedup.neighbours.relation import Relation


class NodeCache:
    """Holds some thousands of nodes. Of two with one id, the later one counts."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._index = relation.new_index()
        # By row of the index.
        self._ids: list[str] = []
        self._nodes: dict[str, StoredNode] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, node_id: str) -> StoredNode | None:
        """Return the node of that id; None if there is none."""
        return self._nodes.get(node_id)

    def put(self, nodes: Iterable[StoredNode]) -> None:
        """Add nodes, or replace those of the same id."""
        by_id = {node.id: node for node in nodes}
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

    def _at(self, rows: npt.NDArray[np.int64]) -> list[StoredNode]:
        return [self._nodes[self._ids[row]] for row in rows.tolist()]

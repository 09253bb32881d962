"""Nodes in memory, searched for those near given signatures."""

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from esdedup.elastic.forest.stored import StoredNode
from esdedup.neighbours.relation import NeighbourIndex, Relation


class NodeCache:
    """Holds some thousands of nodes, each id once."""

    def __init__(self, nodes: Iterable[StoredNode], relation: Relation) -> None:
        self._nodes = list({node.id: node for node in nodes}.values())
        self._index = NeighbourIndex(relation)
        self._index.add(b"".join(node.signature for node in self._nodes))

    def find_pairs(self, signatures: npt.NDArray[Any]) -> list[tuple[int, StoredNode]]:
        """Return all pairs of a position in `signatures` and a node near it."""
        positions, rows = self._index.find_pairs(signatures)
        return [(at, self._nodes[row]) for at, row in zip(positions.tolist(), rows.tolist(), strict=True)]

"""Which roots an arrival may join, and which of them it resembles most. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from esdedup.forest.model import Arrivals, Neighbours
from esdedup.neighbours.relation import Relation


class JoinableRoots:
    """Compares arrivals with roots by the profile's relation."""

    def __init__(
        self, arrivals: Arrivals, neighbours: Neighbours, relation: Relation, signatures: npt.NDArray[Any]
    ) -> None:
        """Compare each arrival with the roots of its neighbours, all at once.

        Args:
            arrivals: The batch.
            neighbours: The nodes found near it.
            relation: The profile's.
            signatures: Of the neighbours' nodes, then of the arrivals: the rows that `among` takes.
        """
        self._relation = relation
        self._signatures = signatures
        self._first_arrival = len(neighbours.nodes)
        pairs = neighbours.arrivals, neighbours.nodes.roots[neighbours.rows]
        may = relation.may_join(arrivals.signatures[pairs[0]], neighbours.nodes.signatures[pairs[1]])
        refused = (each[~may].tolist() for each in pairs)
        self._refused = set(zip(*refused, strict=True))
        self._compared: dict[tuple[int, int], bool] = {}

    def among(self, arrival: int, stored: set[int], in_batch: set[int]) -> set[int]:
        """Return the roots that an arrival may join.

        Args:
            arrival: Its position in the batch.
            stored: Roots, as rows, of stored nodes near it.
            in_batch: Roots, as rows, of earlier arrivals of the batch near it.
        """
        roots = {root for root in stored if (arrival, root) not in self._refused}
        return roots | {root for root in in_batch - stored if self._may_join(arrival, root)}

    def most_alike(self, arrival: int, roots: Sequence[int]) -> int:
        """Return the root that an arrival resembles most; on a tie, the first of them.

        Args:
            arrival: Its position in the batch.
            roots: As rows; at least one.
        """
        own = self._signatures[[self._first_arrival + arrival] * len(roots)]
        return roots[int(self._relation.resemblance(own, self._signatures[list(roots)]).argmax())]

    def _may_join(self, arrival: int, root: int) -> bool:
        pair = arrival, root
        if pair not in self._compared:
            one, other = self._first_arrival + arrival, root
            may = self._relation.may_join(self._signatures[[one]], self._signatures[[other]])
            self._compared[pair] = bool(may[0])
        return self._compared[pair]

"""Which roots an arrival may join, and which of them it resembles most. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import Arrivals, Neighbours
from esdedup.neighbours.relation import Relation


class JoinableRoots:
    """Compares arrivals with roots by the profile's relation."""

    def __init__(
        self,
        arrivals: Arrivals,
        neighbours: Neighbours,
        relation: Relation,
        *,
        signatures: npt.NDArray[Any],
        earlier_neighbours: Mapping[int, Sequence[int]],
    ) -> None:
        """Compare each arrival with the roots of its neighbours, all at once.

        Args:
            arrivals: The batch.
            neighbours: The nodes found near it.
            relation: The profile's.
            signatures: Of the neighbours' nodes, then of the arrivals: the rows that `among` takes.
            earlier_neighbours: For positions in the batch, the earlier positions near them.
        """
        self._relation = relation
        self._signatures = signatures
        self._first_arrival = len(neighbours.nodes)
        pairs = neighbours.arrivals, neighbours.nodes.roots[neighbours.rows]
        may = relation.may_join(arrivals.signatures[pairs[0]], neighbours.nodes.signatures[pairs[1]])
        refused = (each[~may].tolist() for each in pairs)
        self._refused = set(zip(*refused, strict=True))
        # Whether an arrival may join a root of the batch. Most of these have made their node themselves.
        self._compared = dict(self._compared_with_earlier(arrivals, earlier_neighbours))

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

    def _compared_with_earlier(
        self, arrivals: Arrivals, earlier_neighbours: Mapping[int, Sequence[int]]
    ) -> Iterable[tuple[tuple[int, int], bool]]:
        """Return for each arrival with its earlier neighbours as roots whether it may join these."""
        # Copies of an earlier arrival make no node.
        first = {node_id: at for at, node_id in reversed(list(enumerate(arrivals.ids)))}.values()
        makers = set(first)
        pairs = [
            (at, one)
            for at, earlier in earlier_neighbours.items()
            if at in makers
            for one in makers.intersection(earlier)
        ]
        ones, others = self._first_arrival + np.array(pairs, np.int64).reshape(-1, 2).T
        may = self._relation.may_join(self._signatures[ones], self._signatures[others])
        keys = ((at, self._first_arrival + one) for at, one in pairs)
        return zip(keys, may.tolist(), strict=True)

    def _may_join(self, arrival: int, root: int) -> bool:
        pair = arrival, root
        if pair not in self._compared:
            one, other = self._first_arrival + arrival, root
            may = self._relation.may_join(self._signatures[[one]], self._signatures[[other]])
            self._compared[pair] = bool(may[0])
        return self._compared[pair]

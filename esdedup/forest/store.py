"""What a forest needs of the place where its nodes live."""

from collections.abc import Sequence
from typing import Protocol

from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import Aging, Arrivals, Neighbours, Plan, State
from esdedup.neighbours.relation import Relation


class Store(Protocol):
    """Keeps nodes. One forest at a time uses it, and calls its methods one after the other."""

    @property
    def aging(self) -> Aging:
        """How long nodes live."""

    @property
    def relation(self) -> Relation:
        """What tells which nodes are near, and which may stand in one tree."""

    def state(self) -> State:
        """Return the state of the last plan that was committed."""

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find all nodes near the arrivals that live at ``state.time_ms``, with their roots.

        Every node of a committed plan is found, at once and after a restart. Expired nodes may come
        along: their `seen` tells. None are left out for being many.
        """

    def count_leaves(
        self, near: Neighbours, roots: Sequence[int], state: State, *, end_ms: int
    ) -> LeafCounts:
        """Count the leaves that live at ``state.time_ms``, by their `seen`, for those rows of ``near.nodes``.

        Those that live at `end_ms` too may be counted together, under any such `seen`: they count
        the same throughout the batch.
        """

    def commit(self, plan: Plan) -> None:
        """Write the plan's state, its roots, then its leaves; return when they will survive a crash.

        Committing the same plan twice is the same as once. If it fails, any part of it may have been
        written, in that order; the same arrivals then lead to the same roots.
        """

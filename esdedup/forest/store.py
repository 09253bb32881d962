"""What a forest needs of the place where its nodes live, and of what tells which are near."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import Aging, Arrivals, Near, Plan, State


class NearIndex(Protocol):
    """Signatures by row, searched by a profile's relation `near`.

    The relation must be symmetric, and equal signatures must be near.
    """

    def __len__(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""

    def add(self, signatures: npt.NDArray[Any]) -> None:
        """Add signatures, in the profile's dtype; they get the next rows, in their order."""

    def search(self, signatures: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find all pairs that are near.

        Returns:
            Positions in `signatures` and rows, int64 ``(pairs,)`` each, without repeats, ordered by
            position, then by row.
        """


class Store(Protocol):
    """Keeps nodes. One forest at a time uses it, and calls its methods one after the other."""

    @property
    def aging(self) -> Aging:
        """How long nodes live."""

    @property
    def new_near_index(self) -> Callable[[], NearIndex]:
        """Makes an empty index of the profile's `near`."""

    def state(self) -> State:
        """Return the state of the last plan that was committed."""

    def find_near(self, arrivals: Arrivals, state: State) -> Near:
        """Find all nodes near the arrivals that live at ``state.time_ms``, with their roots.

        Every node of a committed plan is found, at once and after a restart. Expired nodes may come
        along: their `seen` tells. None are left out for being many.
        """

    def count_leaves(self, near: Near, roots: Sequence[int], state: State, *, end_ms: int) -> LeafCounts:
        """Count the leaves that live at ``state.time_ms``, by their `seen`, for those rows of ``near.nodes``.

        Those that live at `end_ms` too may be counted together, under any such `seen`: they count
        the same throughout the batch.
        """

    def commit(self, plan: Plan) -> None:
        """Write the plan's state, its roots, then its leaves; return when they will survive a crash.

        Committing the same plan twice is the same as once. If it fails, any part of it may have been
        written, in that order; the same arrivals then lead to the same roots.
        """

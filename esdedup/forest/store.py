"""The contract of a store: what a forest needs of the place where its nodes live.

A store can be written from this file and the values of `model.py` alone. Each batch goes through::

    state = store.state()
    neighbours = store.find_neighbours(arrivals, state)
    leaves = store.count_leaves(neighbours, roots, state, end_ms=...)  # not at all, once, or several times
    store.commit(plan)

No call relies on what an earlier one left in memory: arguments and committed plans are all there is. A
batch may be given up after any call, and the next one then begins with `state`.
"""

from collections.abc import Sequence
from typing import Protocol

from esdedup.forest.model import Aging, Arrivals, LeafCounts, Neighbours, Plan, State
from esdedup.neighbours.relation import Relation


class Store(Protocol):
    """Keeps the nodes of one forest. Used by one forest, one call at a time."""

    @property
    def aging(self) -> Aging:
        """How long nodes live. The same for the life of the store object."""

    @property
    def relation(self) -> Relation:
        """The profile's: which nodes are near each other, and which may stand in one tree."""

    def state(self) -> State:
        """Return the state of the last committed plan; ``State()`` for a new forest.

        After a restart it is the same. If the last `commit` failed, it is that plan's state or the one
        before, whichever agrees with what was written. Changes nothing; may be repeated.
        """

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find every node near an arrival that lives at ``state.time_ms``, with its root.

        Near is what ``relation.new_index().search`` finds; and a node that has an arrival's id is near it,
        even if it is indexed under nothing. Every node of a committed plan is found, at once and after a
        restart; none are left out because they are many. Expired nodes may be among them: deciders look at
        `seen`. Changes nothing; may be repeated.

        Args:
            arrivals: A batch; the same text may occur more than once in it.
            state: As `state` returned it, with the origin of the forest's time if the batch brings it.
        """

    def count_leaves(
        self, neighbours: Neighbours, roots: Sequence[int], state: State, *, end_ms: int
    ) -> LeafCounts:
        """Count the leaves of roots that live at ``state.time_ms``, by their `seen`, as committed.

        Every committed leaf is counted exactly once, whether or not it is among the neighbours. Leaves
        that still live at `end_ms` may be counted together under any `seen` that lives then. Changes
        nothing; may be repeated, for other roots or the same.

        Args:
            neighbours: What `find_neighbours` returned for this batch.
            roots: Rows of ``neighbours.nodes``, each of them a root.
            state: What `find_neighbours` was given.
            end_ms: The forest's time at the end of the batch.

        Returns:
            The counts for each of `roots`; a `seen` without leaves may be missing.
        """

    def commit(self, plan: Plan) -> None:
        """Make a plan durable: its state, its roots, then its leaves in the order of their arrivals.

        Returns when all of it will survive a crash of the process, and of the machine if the store says
        so. Not atomic: if it fails, or the process dies, any part may have been written, but nothing
        without all that stands before it in that order. The same arrivals, assigned again, then get the
        same roots. Committing the plan that was committed last changes nothing.

        Args:
            plan: Rows of ``plan.nodes`` begin with those of the batch's ``Neighbours.nodes``, in their
                order, so a store finds its own numbers in ``plan.nodes.seqs`` and ``plan.nodes.made_ms``.
                To be written: ``plan.made_rows``, ``plan.refreshed`` and ``plan.state``.
        """

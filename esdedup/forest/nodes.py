"""The nodes and pages of a forest in memory, in which the crate decides by the laws."""

import collections
import dataclasses
from typing import Self

from esdedup import _core
from esdedup.forest.model import Aging, Arrivals, Assignment, Kind, Plan, State
from esdedup.neighbours.relation import Relation

_KINDS = list(Kind)


class Nodes(_core.Nodes):
    """All nodes and pages of a forest, or those that a batch may meet. Threads may share it.

    `assign` begins a step, which may be committed, and is kept or undone as a whole; several may have begun.
    What was seen at `live_since_ms` or later is live.
    """

    # The plans of the steps that are committed and not kept, the first one first.
    committed: collections.deque[Plan]

    def __new__(cls, relation: Relation, aging: Aging) -> Self:
        """Hold no node so far."""
        nodes = super().__new__(cls, relation.core, **dataclasses.asdict(aging))
        nodes.committed = collections.deque()
        return nodes

    def assign(self, arrivals: Arrivals, state: State, *, now_ms: int) -> Plan:
        """Begin a step, and give every arrival its root, as `decide` does.

        Arrivals come in their order, after the forest's `state`.
        """
        answers, written, log, (seq, time_ms, origin_ms) = self.assign_columns(
            arrivals.signatures.tobytes(),
            arrivals.exist.tobytes(),
            arrivals.pages.tobytes(),
            arrivals.times_ms.tobytes(),
            state=(state.seq, state.time_ms, state.origin_ms),
            now_ms=now_ms,
        )
        assignments = [
            Assignment(_KINDS[kind], node, root, number, at_ms, signature, whole, part)
            for number, (kind, node, root, at_ms, signature, whole, part) in enumerate(answers, state.seq + 1)
        ]
        after = State(seq=seq, time_ms=time_ms, origin_ms=origin_ms)
        return Plan(assignments=assignments, written=written, log=log, state=after)

    def commit(self, plan: Plan) -> None:
        """Commit the last step, whose plan this is: `undo` then leaves it alone."""
        self.committed.append(plan)

    def keep(self) -> None:
        """Keep the first step for good, and forget some of what had expired by its end."""
        super().keep()
        # Last: after an exception in between, a plan that is durable is merely read again.
        if self.committed:
            self.committed.popleft()

    def undo(self) -> None:
        """Undo the steps since the last one that was committed or kept."""
        while self.depth > len(self.committed):
            super().undo()

    def undo_all(self) -> list[Plan]:
        """Undo all steps that were not kept; return the plans of those that were committed."""
        plans, self.committed = list(self.committed), collections.deque()
        self.undo()
        return plans

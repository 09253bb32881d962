"""The nodes and content hashes of a forest in memory, to which the crate applies the rules."""

import collections
import dataclasses
from typing import Self

from esdedup import _core
from esdedup.forest.model import Aging, Arrivals, Assignment, Kind, Plan, State
from esdedup.neighbours.relation import Relation

_KINDS = list(Kind)


class Nodes(_core.Nodes):
    """All nodes and content hashes of a forest, or those that a batch may need. Threads may share the object.

    `assign` begins a step: a batch of changes that may be committed, and is kept (made permanent) or undone
    as a whole. Several steps may be open. Nodes and content hashes seen at `live_since_ms` or later are
    live.
    """

    # The plans of the steps that are committed but not kept, oldest first.
    committed: collections.deque[Plan]

    def __new__(cls, relation: Relation, aging: Aging) -> Self:
        """Create a forest without nodes."""
        nodes = super().__new__(cls, relation.core, **dataclasses.asdict(aging))
        nodes.committed = collections.deque()
        return nodes

    def assign(self, arrivals: Arrivals, state: State, *, now_ms: int) -> Plan:
        """Begin a step, and assign a root to every arrival as `decide` does, from the forest's `state`."""
        answers, written, log, after = self.assign_columns(
            arrivals.signatures.tobytes(),
            arrivals.exist.tobytes(),
            arrivals.content_hashes.tobytes(),
            arrivals.times_ms.tobytes(),
            state=state,
            now_ms=now_ms,
        )
        assignments = [
            Assignment(_KINDS[kind], node, root, number, at_ms, signature, whole, part)
            for number, (kind, node, root, at_ms, signature, whole, part) in enumerate(answers, state.seq + 1)
        ]
        return Plan(assignments, written, State(*after), log)

    def commit(self, plan: Plan) -> None:
        """Commit the latest step, which has this plan, so that `undo` no longer undoes it."""
        self.committed.append(plan)

    def keep(self) -> None:
        """Make the oldest step permanent; drop some nodes and content hashes that had expired by then."""
        super().keep()
        # This comes last: if an exception interrupts this method, a durable batch is merely read again.
        if self.committed:
            self.committed.popleft()

    def undo(self) -> None:
        """Undo all steps after the last committed or kept step."""
        while self.depth > len(self.committed):
            super().undo()

    def undo_all(self) -> list[Plan]:
        """Undo all steps that were not kept; return the plans of the committed steps."""
        plans, self.committed = list(self.committed), collections.deque()
        self.undo()
        return plans

"""The nodes and pages of a forest in memory, in which the crate decides by the laws."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.forest.model import NO_TIME, Aging, Arrivals, Assignment, Kind, Plan, State
from esdedup.neighbours.relation import Relation

_KINDS = list(Kind)


class Nodes:
    """All nodes and pages of a forest, or those that a batch may meet. Threads may share it.

    `assign` begins a step, which may be committed, and is kept or undone as a whole; several may have begun.
    What lives has been seen since `live_since_ms`, inclusive.
    """

    def __init__(self, relation: Relation, aging: Aging) -> None:
        self._relation = relation
        self._nodes = _core.Nodes(relation.core, **dataclasses.asdict(aging))
        # The plans of the steps that are committed and not kept, the first one first.
        self.committed: collections.deque[Plan] = collections.deque()

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def lone_page_count(self) -> int:
        """The number of remembered pages that made no node."""
        return self._nodes.lone_page_count

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        return self._nodes.size_bytes

    @property
    def is_torn(self) -> bool:
        """Whether a fault in the crate has stopped a change halfway."""
        return self._nodes.is_torn

    def assign(self, arrivals: Arrivals, state: State, *, now_ms: int) -> Plan:
        """Begin a step, and give every arrival its root, as `decide` does.

        Arrivals come in their order, after the forest's `state`.
        """
        found = self._nodes.assign(
            _bytes(arrivals.signatures, self._relation.dtype),
            _bytes(arrivals.exist, bool),
            _bytes(arrivals.pages, np.uint64),
            _bytes(arrivals.times_ms, np.int64),
            state=(state.seq, state.time_ms, state.origin_ms),
            now_ms=now_ms,
        )
        kinds, nodes, roots, links, times_ms, signatures, written, log, (seq, time_ms, origin_ms) = found
        size = self._relation.dtype.itemsize
        linked = [each if each.strip("0") else None for each in self._relation.written_ids(links)]
        assignments = [
            Assignment(kind, None, None, seq, at_ms, signature)
            if kind is Kind.WITHOUT_FINGERPRINT
            else Assignment(kind, node, root, seq, at_ms, signature, whole, part)
            for seq, (kind, node, root, whole, part, at_ms, signature) in enumerate(
                zip(
                    map(_KINDS.__getitem__, kinds),
                    self._relation.written_ids(nodes),
                    self._relation.written_ids(roots),
                    linked[::2],
                    linked[1::2],
                    np.frombuffer(times_ms, np.int64).tolist(),
                    [signatures[at : at + size] for at in range(0, len(signatures), size)],
                    strict=True,
                ),
                state.seq + 1,
            )
        ]
        after = State(seq=seq, time_ms=time_ms, origin_ms=origin_ms)
        return Plan(assignments=assignments, written=written, log=log, state=after)

    def contested(self) -> set[str]:
        """Return the ids of the roots whose leaves have decided something in the last step."""
        return set(self._relation.written_ids(self._nodes.contested()))

    def commit(self, plan: Plan) -> None:
        """Commit the last step, that of a plan: `undo` leaves it then."""
        self.committed.append(plan)

    def keep(self) -> None:
        """Keep the first step for good, and forget some of what had expired by its end."""
        self._nodes.keep()
        # Last: after an exception in between, what is durable is only read again.
        if self.committed:
            self.committed.popleft()

    def undo(self) -> None:
        """Undo the steps since the last one that was committed or kept."""
        while self._nodes.depth > len(self.committed):
            self._nodes.undo()

    def undo_all(self) -> list[Plan]:
        """Undo all steps that were not kept; return the plans of those that were committed."""
        plans, self.committed = list(self.committed), collections.deque()
        self.undo()
        return plans

    def load(self, packed: Sequence[bytes], *, live_since_ms: int) -> None:
        """Add nodes and pages as `Plan.written` has them, in any order, if they live.

        What is of another length is left out. Of two with one id, the later one counts. Until `settle`, every
        node is a root.
        """
        self._nodes.load(packed, live_since_ms=live_since_ms)

    def missing(self) -> tuple[list[str], list[str]]:
        """Return the ids of roots, and of the nodes of pages, that were not loaded."""
        roots, nodes = self._nodes.missing()
        return self._relation.written_ids(roots), self._relation.written_ids(nodes)

    def load_logs(self, logs: Sequence[bytes]) -> None:
        """Add the entries of logs (`Plan.log`) up to the first unreadable one of each; then `settle`."""
        self._nodes.load_logs(logs)

    def settle(self, *, live_since_ms: int = NO_TIME) -> None:
        """Give each node that was loaded its root, remember the pages, and forget what does not live.

        In a damaged forest, roots that are missing are made again from one of their leaves, and pages whose
        node is missing are left out.
        """
        self._nodes.settle(live_since_ms=live_since_ms)

    def living(self, log: bytes, *, live_since_ms: int) -> list[bytes]:
        """Return the nodes and pages that a log has whole as they are now, leaving out what does not live.

        Pages are left out that their nodes remember.
        """
        return self._nodes.living(log, live_since_ms=live_since_ms)


def _bytes(column: npt.NDArray[Any], dtype: npt.DTypeLike) -> bytes:
    return column.astype(dtype, copy=False).tobytes()

"""The contract of a store, which keeps what a forest must not forget, and a store in memory.

Each batch goes through a store in this order; it may be abandoned after any call::

    store.begin()
    left_out = store.boilerplate.filter(passages, pages)
    plan = store.nodes(arrivals, now_ms=now_ms).assign(arrivals, store.state, now_ms=now_ms)
    written = store.commit(plan)
"""

import functools
from concurrent.futures import Future
from typing import Protocol

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.forest.model import Aging, Arrivals, Plan, State
from esdedup.forest.nodes import Nodes
from esdedup.neighbours.relation import Relation


@functools.cache
def completed() -> Future[None]:
    """Return the one completed future."""
    done: Future[None] = Future()
    done.set_result(None)
    return done


class Store(Protocol):
    """Keeps the state, the nodes, the remembered pages and the boilerplate of one forest.

    Used by one forest, one call at a time. A call that cannot read or write raises an `EsdedupError`:
    `ForestLost` or `ForestMissing` if the store is of no use any more; after any other, `begin` recovers.
    """

    @property
    def aging(self) -> Aging:
        """How long nodes live. Constant for the life of the store object."""

    @property
    def state(self) -> State:
        """The state of the last committed plan, also after a restart; ``State()`` for a new forest."""

    @property
    def boilerplate(self) -> Boilerplate:
        """What pages have taught: `Boilerplate()` in a new forest, after a restart with all changes written.

        Inside a batch the caller lets it learn. Only the store calls `begin`, `apply`, `keep` and `undo`.
        Each `begin` of the store may replace the object.
        """

    def begin(self) -> None:
        """Begin a batch, and discard one that was neither committed nor learned.

        Calls `undo` of nodes that stay in memory. Of the boilerplate, undoes all steps that have begun, then
        begins one. After an error of `commit`, of its future or of `learn`, or if nodes or boilerplate are
        torn, first makes state, nodes and boilerplate what a restart would make of what was written.
        """

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:
        """Return nodes, all or at least these, on which the caller calls `assign` at `now_ms`.

        - every live node that is near an arrival or has its id,
        - every remembered page of an arrival, with its node, near or not,
        - the roots of all these,
        - if the relation counts leaves, every live leaf of the roots that are `contested` after `assign`. A
          store that has not all nodes calls `assign` itself, loads those leaves, calls `undo`, and begins
          again until no other root is contested.

        These are as all committed plans have them, durable or not; "live" and "remembered" are meant at
        ``state.time_ms``. They may be made for this call, by `load` of what was written and `settle`. A text
        may occur twice among the arrivals.
        """

    def commit(self, plan: Plan) -> Future[None]:
        """Commit what `assign` returned of the nodes that `nodes` returned last, and begin to write it.

        Waits until the plan before is durable; if that failed, raises its error and writes nothing of this
        one. Has these written in order: ``plan.state``, each of ``plan.written``, and the boilerplate's
        `changes`, all or nothing. Keeps the boilerplate's step. Of nodes that stay in memory, calls `commit`,
        and `keep` once the plan is durable.

        Returns a future that is done when all of it survives a crash of the process (and of the machine, if
        the store promises that), or has the error. Then and after a crash, any beginning of that order may be
        written: the same arrivals, assigned again, get the same roots.
        """

    def learn(self) -> None:
        """Write the boilerplate's `changes`, all or nothing; when they are durable, keep its step and return.

        For a batch whose pages only teach, in place of `nodes` and `commit`. If the plan before could not
        be written, raises its error.
        """


class MemoryStore:
    """Keeps a forest for as long as the process runs. If the crate fails, what it holds is lost with it."""

    def __init__(self, *, aging: Aging, relation: Relation) -> None:
        self.aging = aging
        self.relation = relation
        self.boilerplate = Boilerplate()
        self.state = State()
        self._nodes = Nodes(relation, aging)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        return self._nodes.size_bytes + self.boilerplate.size_bytes

    def begin(self) -> None:
        """Begin a batch, and undo uncommitted changes."""
        self._nodes.undo()
        while self.boilerplate.has_begun:
            self.boilerplate.undo()
        self.boilerplate.begin()

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:  # noqa: ARG002 - it has all of them
        """Return all nodes."""
        return self._nodes

    def commit(self, plan: Plan) -> Future[None]:
        """Keep the decisions of the batch, and what was learned."""
        self.state = plan.state
        self._nodes.keep()
        self.boilerplate.keep()
        return completed()

    def learn(self) -> None:
        """Keep what was learned."""
        self.boilerplate.keep()

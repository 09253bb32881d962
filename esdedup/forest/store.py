"""The contract of a store, which persists a forest, and a store in memory.

Each batch makes these calls to the store, in this order, and may be abandoned after any call::

    store.begin()
    passage_filter = store.boilerplate.filter(sites=sites)
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
    """Return a future that is done."""
    done: Future[None] = Future()
    done.set_result(None)
    return done


class Store(Protocol):
    """Stores the state, the nodes, the remembered content hashes and the boilerplate of one forest.

    A store belongs to one forest; its calls do not overlap. A call that cannot read or write raises an
    `EsdedupError`. After `ForestLost` or `ForestMissing` the store cannot be used again; after any other
    error, `begin` recovers.
    """

    @property
    def aging(self) -> Aging:
        """How long nodes live; constant for the lifetime of the store object."""

    @property
    def state(self) -> State:
        """The state of the last committed plan, including after a restart; ``State()`` for a new forest."""

    @property
    def boilerplate(self) -> Boilerplate:
        """The learned boilerplate: `Boilerplate()` for a new forest, all written changes after a restart.

        During a batch, the caller may use this object to filter pages and to learn. Only the store calls
        this object's `begin`, `apply`, `keep` and `undo`. The store's `begin` may replace the object.
        """

    def begin(self) -> None:
        """Begin a batch, and discard an earlier batch that was neither committed nor learned.

        Calls `undo` on nodes that stay in memory. Undoes all open steps of the boilerplate, then begins one.
        After an error from `commit`, its future or `learn`, or if nodes or boilerplate are inconsistent,
        first restores state, nodes and boilerplate from the written data, as a restart would.
        """

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:
        """Return nodes on which the caller calls `assign` at `now_ms`: all nodes, or at least the following.

        - every live node that is near an arrival or has the same id,
        - every arrival's remembered content hash with its node, whether near or not,
        - the roots of all these nodes,
        - if the relation counts leaves, every live leaf of the roots that are `contested` after `assign`. A
          store without all nodes in memory calls `assign` itself, loads these leaves, calls `undo`, and
          repeats this until no other root is contested.

        The nodes include all committed plans, durable or not. Which nodes are live, and which pages are
        remembered, depends on ``state.time_ms``. The store may create the nodes for this call, by `load` and
        `settle`. A text may occur twice among the arrivals.
        """

    def commit(self, plan: Plan) -> Future[None]:
        """Commit the plan that `assign` of the latest `nodes` returned, and begin to write it.

        Waits until the previous plan is durable; if that failed, raises the error and writes nothing of this
        plan. Writes, in this order: ``plan.state``, each record of ``plan.written``, and the boilerplate's
        `changes`, which are written completely or not at all. Keeps the boilerplate's step. For nodes that
        stay in memory, calls `commit`, and `keep` once the plan is durable.

        Returns a future that is done when the plan survives a crash of the process (and of the machine, if
        the store promises that), or fails with the error. After an error or a crash, any prefix of these
        writes may be stored: the same arrivals, when assigned again, get the same roots.
        """

    def learn(self) -> None:
        """Write the boilerplate's `changes` completely or not at all; once they are durable, keep its step.

        Called instead of `nodes` and `commit` for a batch that is only learned from. If the previous plan
        could not be written, raises its error.
        """


class MemoryStore:
    """Stores a forest in memory. If a call into the crate panics, the forest is lost."""

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
        """The memory used by nodes, content hashes and boilerplate."""
        return self._nodes.size_bytes + self.boilerplate.size_bytes

    def begin(self) -> None:
        """Begin a batch, and undo uncommitted changes."""
        self._nodes.undo()
        while self.boilerplate.has_begun:
            self.boilerplate.undo()
        self.boilerplate.begin()

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:  # noqa: ARG002 - all nodes are in memory
        """Return all nodes."""
        return self._nodes

    def commit(self, plan: Plan) -> Future[None]:
        """Keep the batch's plan and its learned boilerplate."""
        self.state = plan.state
        self._nodes.keep()
        self.boilerplate.keep()
        return completed()

    def learn(self) -> None:
        """Keep the batch's learned boilerplate."""
        self.boilerplate.keep()

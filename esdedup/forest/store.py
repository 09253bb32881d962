"""The contract of a store, which keeps what a forest must not forget, and a store in memory.

A store can be written from this file and the values of `model.py` alone. Each batch goes through::

    store.begin()
    left_out = store.boilerplate.filter(passages, pages)
    plan = store.nodes(arrivals, now_ms=now_ms).assign(arrivals, store.state, now_ms=now_ms)
    written = store.commit(plan)

A batch may be abandoned after any call, and the next one may begin before the plan of this one is durable.
`assign` begins a step of the nodes, `begin` one of the boilerplate; a step is kept or undone as a whole.
"""

from concurrent.futures import Future
from typing import Protocol

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.forest.model import Aging, Arrivals, Plan, State
from esdedup.forest.nodes import Nodes
from esdedup.neighbours.relation import Relation


def completed() -> Future[None]:
    """Return a completed future."""
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
        """What was learned from the pages of committed batches; inside a batch, with the step of `begin`.

        The caller lets it learn from the pages of the batch. Only the store keeps or undoes its steps.
        """

    def begin(self) -> None:
        """Begin a batch; may be called again before the batch is committed, to discard it.

        Undoes each step of the nodes and of the boilerplate that `commit` or `learn` has not kept, then
        begins a step of the boilerplate. After a `commit` that failed, first restores `state`, nodes and
        boilerplate to those of its plan or of the plan before, whichever agrees with what was written.
        """

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:
        """Return nodes in memory, all or at least these, on which the caller calls `assign` at `now_ms`.

        - every live node of a committed plan that is near an arrival or has its id,
        - every remembered page of an arrival, with its node, near or not,
        - the roots of all these,
        - if the relation counts leaves, every live leaf of the roots that are `contested` after `assign`.

        "Live" and "remembered" are meant at ``state.time_ms``. Committed plans count at once, also after a
        restart, and whether durable yet or not. A text may occur twice among the arrivals.
        """

    def commit(self, plan: Plan) -> Future[None]:
        """Keep the steps of the batch, and begin to make its plan durable. From then on, it is committed.

        The plan is what `assign` returned, of the nodes that `nodes` returned last. Waits until the plan
        before is durable; if that failed, raises its error and writes nothing of this one. Writes the state,
        then refreshed nodes, then new nodes and pages in the order of arrival, then the changes of the step
        of boilerplate, which are all or nothing.

        Returns a future that is done when all of it survives a crash of the process (and of the machine, if
        the store promises that), or has the error. Not atomic: after a failure or a crash any beginning of
        that order may be written, from which the same arrivals, assigned again, get the same roots.
        """

    def learn(self) -> None:
        """Keep the step of the boilerplate, and make its changes durable, all or nothing; then return.

        For a batch whose pages only teach, in place of `nodes` and `commit`.
        """


class MemoryStore:
    """Keeps a forest for as long as the process runs."""

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
        self._nodes.undo_until(0)
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

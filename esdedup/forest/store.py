"""The contract of a store, which keeps what a forest must not forget, and a store in memory.

A store can be written from this file and the values of `model.py` alone. Each batch goes through::

    store.begin()
    left_out = store.boilerplate.filter(passages, pages)
    plan = store.nodes(arrivals, now_ms=now_ms).assign(arrivals, store.state, now_ms=now_ms)
    written = store.commit(plan)

A batch may be abandoned after any call; the next one then begins with `begin`. It may begin before the plan
of the one before is durable.
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
    """Keeps the state, the nodes and pages, and the boilerplate of one forest.

    Used by one forest, one call at a time. What cannot be read or written raises an `EsdedupError`:
    `ForestLost` or `ForestMissing` if the store is of no use any more; else `begin` starts anew.
    """

    @property
    def aging(self) -> Aging:
        """How long nodes live. The same for the life of the store object."""

    @property
    def state(self) -> State:
        """That of the last committed plan; ``State()`` for a new forest. A restart does not change it."""

    @property
    def boilerplate(self) -> Boilerplate:
        """What the pages of committed batches have taught, after `begin`.

        The caller lets it learn from the pages of the batch, and leaves its steps to the store.
        """

    def begin(self) -> None:
        """Begin a batch: a step of `boilerplate`, after undoing what was not committed; may be repeated.

        To be undone are the steps of `boilerplate` and of what `nodes` returned that `commit` or `learn` has
        not kept. After a `commit` that failed, `state`, nodes and boilerplate are those of that plan, or of
        the one before, whichever agrees with what was written.
        """

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:
        """Return nodes in memory: those that the arrivals may meet, or all, and the remembered pages.

        That is every node of a committed plan that lives at ``state.time_ms`` and is near an arrival or has
        its id, at once and after a restart, however many there are; each page of an arrival that is
        remembered then, with its node, near or not; and all their roots. If the relation counts leaves, it is
        also every leaf that lives then of the roots that are `contested` when they assign the arrivals. There
        may be others. The caller lets them do that, at `now_ms`, which begins a step of theirs. A text may
        occur twice.
        """

    def commit(self, plan: Plan) -> Future[None]:
        """Keep the steps of the batch, and begin to make its plan durable; the next batch finds it at once.

        To be written are its state, the nodes it refreshes, then its new nodes and its pages in the order of
        arrival, and last the changes of the step of `boilerplate`, which are all or nothing. The plan before
        is durable by then; if that has failed, this raises the same, and nothing of this plan is written.

        Returns what waits until all of it will survive a crash of the process, and of the machine if the
        store promises that. Not atomic: if it fails, or the process dies, any part may have been written, but
        nothing without everything before it in that order. The same arrivals, assigned again, then get the
        same roots. The plan is from `assign` of what `nodes` returned last.
        """

    def learn(self) -> None:
        """Keep the step of `boilerplate`, and make its changes durable, all or nothing.

        For a batch whose pages only teach, instead of `nodes` and `commit`.
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
        """Begin a batch, and undo what was not committed."""
        self._nodes.undo_until(0)
        while self.boilerplate.has_begun:
            self.boilerplate.undo()
        self.boilerplate.begin()

    def nodes(self, arrivals: Arrivals, *, now_ms: int) -> Nodes:  # noqa: ARG002 - it has all of them
        """Return all nodes."""
        return self._nodes

    def commit(self, plan: Plan) -> Future[None]:
        """Keep what was decided, and what was learned."""
        self.state = plan.state
        self._nodes.keep()
        self.boilerplate.keep()
        return completed()

    def learn(self) -> None:
        """Keep what was learned."""
        self.boilerplate.keep()

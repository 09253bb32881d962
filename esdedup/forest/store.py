"""The contract of a store, which keeps the nodes of a forest.

A store can be written from this file and the values of `model.py` alone. Each batch goes through::

    state = store.state()
    store.boilerplate.begin()
    plan = store.nodes(arrivals, state).assign(arrivals, state, now_ms=now_ms)
    written = store.commit(plan)

A batch may be abandoned after any call; the next one then begins with `state`, which undoes what was decided
and not committed. It may begin before the plan of the one before is durable.
"""

from concurrent.futures import Future
from typing import Protocol

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.forest.model import Aging, Arrivals, Plan, State
from esdedup.forest.nodes import Nodes
from esdedup.neighbours.relation import Relation


def at_once() -> Future[None]:
    """Return what waits for nothing."""
    done: Future[None] = Future()
    done.set_result(None)
    return done


class Store(Protocol):
    """Keeps the nodes of one forest. Used by one forest, one call at a time."""

    @property
    def aging(self) -> Aging:
        """How long nodes live. The same for the life of the store object."""

    @property
    def relation(self) -> Relation:
        """The profile's: which nodes are near each other, and which may share a tree."""

    @property
    def boilerplate(self) -> Boilerplate:
        """What the pages of committed plans have taught, after `state`.

        A batch begins a step of it; `commit` or `learn` keeps it.
        """

    def state(self) -> State:
        """Return the state of the last committed plan; ``State()`` for a new forest.

        A restart does not change it. If a `commit` failed, it is that plan's state or the one before,
        whichever agrees with what was written. Changes nothing; may be repeated.
        """

    def nodes(self, arrivals: Arrivals, state: State) -> Nodes:
        """Return nodes in memory: those that the arrivals may meet, or all, and the remembered pages.

        That is every node of a committed plan that lives at ``state.time_ms`` and is near an arrival or has
        its id, at once and after a restart, however many there are; each page of an arrival that is
        remembered then, with its node, near or not; and all their roots. There may be others.

        Args:
            arrivals: A batch; the same text may occur more than once in it.
            state: As `state` returned it.
        """

    def commit(self, plan: Plan) -> Future[None]:
        """Begin to make a plan durable; the next batch finds it at once.

        That is: its state, the nodes it refreshes, then its new nodes and its pages in the order of arrival,
        and last what its pages have taught, which is all or nothing. The plan before is durable by then; if
        that has failed, this raises the same, and nothing of this plan is written.

        Returns what waits until all of it will survive a crash of the process, and of the machine if the
        store promises that. Not atomic: if it fails, or the process dies, any part may have been written, but
        nothing without everything before it in that order. The same arrivals, assigned again, then get the
        same roots. Committing the plan that was committed last changes nothing.

        Args:
            plan: From `assign` of what `nodes` returned last. To be written: `state`, `written`, `learned`.
        """

    def learn(self, changes: Changes) -> None:
        """Make durable what the pages of a batch have taught that brings no arrivals: all or nothing.

        Args:
            changes: Of the step of the boilerplate that has begun.
        """

"""The forest: arrivals in, roots out."""

import dataclasses
import itertools
from collections.abc import Iterable
from concurrent.futures import Future
from typing import NamedTuple

from esdedup.boilerplate.lesson import Lesson
from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.forest.model import Aging, Arrivals, Assignment
from esdedup.forest.store import Store, at_once


class Decided(NamedTuple):
    """Assignments, which nobody may rely on until they are durable."""

    assignments: list[Assignment]
    # Waits for that; raises why they could not be written.
    written: Future[None]


class Forest:
    """Assigns arrivals to clusters by the laws, over the nodes of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def aging(self) -> Aging:
        """How long nodes live."""
        return self._store.aging

    @property
    def time_ms(self) -> int:
        """The forest's time, milliseconds since 1970; NO_TIME before the first."""
        return self._store.state().time_ms

    def begin(
        self,
        *,
        pins: Pins = NO_PINS,
        sites: Iterable[str | None] = itertools.repeat(None),
        articles: Iterable[str | None] = itertools.repeat(None),
    ) -> Lesson:
        """Begin a batch: `Lesson.omit` finds the boilerplate in its pages, and learns from them.

        What a batch has taught is forgotten if it is not assigned.

        Args:
            pins: What counts instead for the passages that they name.
            sites: Of the pages.
            articles: The ids of their articles.
        """
        # What committed batches have taught.
        self._store.state()
        self.abandon()
        boilerplate = self._store.boilerplate
        boilerplate.begin()
        return Lesson(boilerplate, pins=pins, sites=sites, articles=articles)

    def abandon(self) -> None:
        """Forget what a batch has taught that has begun and was not assigned."""
        boilerplate = self._store.boilerplate
        while boilerplate.has_begun:
            boilerplate.undo()

    def learn(self, lesson: Lesson) -> int:
        """End a batch whose pages only teach: they get no root, and no number.

        When they arrive later, they teach nothing more, as pages that were seen before.

        Args:
            lesson: From `begin`, after `omit` went through the pages.

        Returns:
            How many of them had not been seen before.
        """
        changes = lesson.changes()
        self._store.learn(changes)
        return changes.page_count

    def end_look(self) -> None:
        """End a row of batches whose pages only teach: what is left of them teaches now."""
        lesson = self.begin()
        lesson.learn_rest()
        self._store.learn(lesson.changes())

    def assign(self, arrivals: Arrivals, *, now_ms: int, lesson: Lesson | None = None) -> list[Assignment]:
        """Give every arrival its root; return when that is durable. Parameters are those of `decide`."""
        decided = self.decide(arrivals, now_ms=now_ms, lesson=lesson)
        decided.written.result()
        return decided.assignments

    def look_up(self, arrivals: Arrivals, *, now_ms: int) -> list[Assignment]:
        """Return what `decide` would decide now, and change nothing. Parameters are those of `decide`."""
        state = self._store.state()
        nodes = self._store.nodes(arrivals, state)
        assignments = nodes.assign(arrivals, state, now_ms=now_ms).assignments
        nodes.undo()
        return assignments

    def decide(self, arrivals: Arrivals, *, now_ms: int, lesson: Lesson | None = None) -> Decided:
        """Give every arrival its root, and begin to make that durable.

        Roots do not depend on how arrivals are cut into batches.

        Args:
            arrivals: In the order in which they came.
            now_ms: The clock. A time more than a day after it is ignored.
            lesson: From `begin`, after `omit` went through the same pages. None: they teach nothing.
        """
        if not len(arrivals):
            return Decided([], at_once())
        state = self._store.state()
        plan = self._store.nodes(arrivals, state).assign(arrivals, state, now_ms=now_ms)
        if lesson is not None:
            plan = dataclasses.replace(plan, learned=lesson.changes())
        return Decided(plan.assignments, self._store.commit(plan))

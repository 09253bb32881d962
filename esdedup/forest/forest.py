"""Assigns roots to batches of arrivals, and detects clusters that grow too large for one story."""

import collections
import heapq
import itertools
from collections.abc import Iterable
from concurrent.futures import Future
from typing import NamedTuple

from esdedup._core import PassageFilter
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.forest.model import Arrivals, Assignment, Kind
from esdedup.forest.store import Store, completed

MOST_PLAUSIBLE_LEAVES = 1_024
"""The maximum number of leaves (inclusive) that a cluster of one story plausibly has.

A leaf is a distinct text, so copies add no leaves. A story that every paper edits has a few hundred leaves. A
template, such as a weather report or a table of prices, or a sentence that many unrelated texts share, adds a
few leaves every day, without end. Stories rarely come near the limit, and templates exceed it in time, so it
rarely needs changing (`most_plausible_leaves`).
"""


class Decision(NamedTuple):
    """The assignments of a batch, which are valid once they are durable."""

    assignments: list[Assignment]
    # Done when the assignments are durable; its `result` raises the error if they could not be written.
    written: Future[None]


def begin(
    store: Store,
    *,
    overrides: Overrides = NO_OVERRIDES,
    sites: Iterable[str | None] = itertools.repeat(None),
    articles: Iterable[str | None] = itertools.repeat(None),
    titles: Iterable[str | None] = itertools.repeat(None),
) -> PassageFilter:
    """Begin a batch; return a filter that omits boilerplate from its pages, in order, and learns from them.

    Boilerplate learned from a batch is discarded unless `decide` or `Store.learn` is called. `sites`,
    `articles` (the articles' ids on their sites) and `titles` are in the order of the pages. Overrides take
    precedence.
    """
    store.begin()
    return store.boilerplate.filter(overrides=overrides, sites=sites, articles=articles, titles=titles)


def decide(store: Store, arrivals: Arrivals, *, now_ms: int) -> Decision:
    """Assign a root to every arrival of the current batch, and begin to write the assignments.

    The division of arrivals into batches does not affect their roots. Times more than a day after `now_ms`,
    the clock, are ignored.
    """
    if not len(arrivals):
        return Decision([], completed())
    plan = store.nodes(arrivals, now_ms=now_ms).assign(arrivals, store.state, now_ms=now_ms)
    return Decision(plan.assignments, store.commit(plan))


class Growth:
    """Counts, in memory, the leaves that assignments add to each cluster.

    A count includes expired leaves, but not leaves added before this object was created, or leaves of slowly
    growing clusters that were forgotten because very many clusters grew.
    """

    def __init__(
        self, *, most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES, max_clusters: int = 100_000
    ) -> None:
        """Report growth beyond `most_plausible_leaves`, which must be a power of two.

        When more than `max_clusters` clusters are counted, the half with the fewest leaves is forgotten.
        """
        self._most_plausible_leaves = most_plausible_leaves
        self._max_clusters = max_clusters
        self._leaves: collections.Counter[str] = collections.Counter()

    def add(self, assignments: Iterable[Assignment]) -> list[tuple[str, int]]:
        """Count assignments; return the roots that now exceed the limit, or twice, four times … the limit.

        Each root is returned with the number that it exceeds; a number is reported once per root.
        """
        passed = []
        for assignment in assignments:
            if assignment.kind is not Kind.JOINED or assignment.root is None:
                continue
            self._leaves[assignment.root] += 1
            before = self._leaves[assignment.root] - 1
            if before >= self._most_plausible_leaves and before.bit_count() == 1:
                passed.append((assignment.root, before))
        if len(self._leaves) > self._max_clusters:
            most = heapq.nlargest(self._max_clusters // 2, self._leaves.items(), key=lambda each: each[1])
            self._leaves = collections.Counter(dict(most))
        return passed

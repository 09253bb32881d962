"""The forest: arrivals in, roots out; and which clusters outgrow what one story can have."""

import collections
import functools
import heapq
import itertools
from collections.abc import Iterable
from concurrent.futures import Future
from typing import NamedTuple

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.forest.model import Arrivals, Assignment, Kind
from esdedup.forest.store import Store, completed
from esdedup.text.parsed import PassageFilter

MOST_PLAUSIBLE_LEAVES = 1_024
"""The most leaves that a cluster of one story can have, inclusive.

A leaf is a distinct text: copies add none. A story that every paper edits has some hundreds. A template,
such as a weather report or a table of prices, or a sentence that many unrelated texts share adds a few
leaves every day, without end. The limit is far from both, so few need to change it (`most_plausible_leaves`).
"""


class Decision(NamedTuple):
    """Assignments, which count once they are durable."""

    assignments: list[Assignment]
    # Done when they are durable; raises why they could not be written.
    written: Future[None]


def begin(
    store: Store,
    *,
    overrides: Overrides = NO_OVERRIDES,
    sites: Iterable[str | None] = itertools.repeat(None),
    articles: Iterable[str | None] = itertools.repeat(None),
    titles: Iterable[str | None] = itertools.repeat(None),
) -> PassageFilter:
    """Begin a batch; return a filter that leaves boilerplate out of its pages in order, and learns from them.

    What a batch has taught is forgotten if it is neither decided nor learned from. Sites, the
    names of articles on them, and titles are in the order of the pages. Overrides take precedence for the
    passages that they name.
    """
    store.begin()
    return functools.partial(
        store.boilerplate.filter,
        overrides=overrides,
        sites=iter(sites),
        articles=iter(articles),
        titles=iter(titles),
    )


def decide(store: Store, arrivals: Arrivals, *, now_ms: int) -> Decision:
    """Give every arrival of the batch that has begun its root, and begin to make that durable.

    Roots do not depend on how arrivals are cut into batches. A time more than a day after `now_ms`, the
    clock, is ignored.
    """
    if not len(arrivals):
        return Decision([], completed())
    plan = store.nodes(arrivals, now_ms=now_ms).assign(arrivals, store.state, now_ms=now_ms)
    return Decision(plan.assignments, store.commit(plan))


class Growth:
    """Counts, in memory, the leaves that assignments add to each cluster.

    A count may be too low: earlier leaves are not in it, and slow clusters are forgotten when very many
    grow. It may exceed the live leaves, since expired ones are not subtracted.
    """

    def __init__(
        self, *, most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES, max_clusters: int = 100_000
    ) -> None:
        """Report growth beyond a number of leaves, a power of two.

        When more clusters are counted than `max_clusters`, the half that has grown least is forgotten.
        """
        self._most_plausible_leaves = most_plausible_leaves
        self._max_clusters = max_clusters
        self._leaves: collections.Counter[str] = collections.Counter()

    def add(self, assignments: Iterable[Assignment]) -> list[tuple[str, int]]:
        """Count assignments; return the roots that now exceed the limit, twice it, four times it and so on.

        Each comes with the number that it exceeds; a number is reported once for each root.
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

"""The laws of the forest, as decisions over candidates. Pure: no clock, no store.

The laws, in ARCHITECTURE.md at length: an id has at most one live node; an arrival looks at the roots of
the live nodes near it, those that it may join; without any it becomes a root; with one it becomes its
leaf; with several the one with most live leaves wins, and among equals the earliest; an arrival refreshes
its node and its root; a root once assigned never changes.
"""

import collections
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import (
    NO_TIME,
    Ages,
    Arrivals,
    Assignment,
    Kind,
    Neighbours,
    Nodes,
    Plan,
    State,
    pairs_of,
)
from esdedup.forest.saturated_keys import SaturatedKeys
from esdedup.neighbours.relation import Relation
from esdedup.times import DAY_MS

LeafCounts = Mapping[int, Mapping[int, int]]
"""For a root's row in `Neighbours.nodes`: its leaves for each value of `seen`, in milliseconds."""

CountLeaves = Callable[[list[int]], LeafCounts]
"""Counts the leaves of rows of `Neighbours.nodes`, as the store has them before the batch."""


def times(arrivals: Arrivals, state: State, *, now_ms: int) -> tuple[npt.NDArray[np.int64], int]:
    """Move the forest's time through a batch.

    An arrival without a time, or with one that lies more than a day after `now_ms`, does not move it.

    Returns:
        The forest's time at each arrival, int64 ``(n,)``, and its origin.
    """
    believed = np.where(arrivals.times_ms <= now_ms + DAY_MS, arrivals.times_ms, NO_TIME)
    moved = np.maximum.accumulate(np.concatenate(([state.time_ms], believed)))[1:]
    known = moved[moved != NO_TIME]
    origin = state.origin_ms if state.origin_ms != NO_TIME or not len(known) else int(known[0])
    return moved, origin


class Decision:
    """The laws at work on one batch.

    Nodes are numbered: first the rows of ``near.nodes``, then one for each arrival, in case it
    becomes a node.
    """

    def __init__(
        self,
        arrivals: Arrivals,
        ages: Ages,
        *,
        near: Neighbours,
        near_within: dict[int, list[int]],
        saturated_keys: SaturatedKeys,
        relation: Relation,
        state: State,
    ) -> None:
        """Prepare.

        Args:
            arrivals: The batch.
            ages: Of them.
            near: What the store found near them.
            near_within: For an arrival, the earlier ones of the batch near it, saturated keys aside.
            saturated_keys: Of the batch.
            relation: Tells which arrivals may join which roots.
            state: The forest before the batch, with its origin.
        """
        self._arrivals = arrivals
        self._ages = ages
        self._before = near.nodes
        self._state = state
        self._first = len(near.nodes)
        self._near = pairs_of(near.arrivals, near.rows)
        self._near_within = near_within
        self._saturated_keys = saturated_keys
        # All others become roots, and need no look.
        self._met = sorted(self._near.keys() | near_within.keys() | saturated_keys.met)
        self._ids = [*near.nodes.ids, *arrivals.ids]
        self._signatures = np.concatenate((near.nodes.signatures, arrivals.signatures))
        self._relation = relation
        # Pairs of an arrival and a root, whether the one may join the other; for those that were found
        # near, only where it may not.
        self._may_join = dict.fromkeys(self._refusals(near), False)
        self._seqs = np.concatenate((near.nodes.seqs, state.seq + 1 + np.arange(len(arrivals))))
        rows = self._first + np.arange(len(arrivals))
        self._roots: list[int] = np.concatenate((near.nodes.roots, rows)).tolist()
        self._seen_ms: list[int] = [*near.nodes.seen_ms.tolist(), *ages.seen_ms]
        self._refreshed: set[int] = set()
        self._joined: list[int] = []
        self._leaves: dict[int, collections.Counter[int]] = {}

    def decide(self, count_leaves: CountLeaves) -> Plan:
        """Assign every arrival, in order, as if they had come one by one.

        Args:
            count_leaves: Counts those of rows of ``near.nodes`` as the store has them. It is asked once
                for all roots that may come into conflict; again only where a crowd lets others meet.
        """
        self._count_leaves = count_leaves
        self._count(self._roots_in_conflict())
        met = set(self._met)
        # The last node of each id; of arrivals, those that become roots without a look.
        newest = {node_id: row for row, node_id in enumerate(self._ids) if row - self._first not in met}
        kinds = [Kind.WITHOUT_FINGERPRINT if each is None else Kind.NEW_ROOT for each in self._arrivals.ids]
        node_of = list(range(self._first, len(self._ids)))
        for at in self._met:
            node_id, seen_ms = self._ids[self._first + at], self._ages.seen_ms[at]
            node = newest.get(node_id, -1)
            if node >= 0 and self._seen_ms[node] >= self._ages.live_since_ms[at]:
                kinds[at] = Kind.KNOWN
                node_of[at] = node
                self._refresh(node, seen_ms)
            else:
                node = newest[node_id] = self._first + at
                root = self._choose(at, node_of)
                self._saturated_keys.enter(at)
                if root is not None:
                    kinds[at] = Kind.JOINED
                    self._roots[node] = root
                    self._joined.append(node)
                    if root >= self._first or root in self._leaves:
                        self._leaves.setdefault(root, collections.Counter())[seen_ms] += 1
            if self._roots[node] != node:
                self._refresh(self._roots[node], seen_ms)
        return self._plan(kinds, node_of)

    def _roots_in_conflict(self) -> list[int]:
        """Return the roots whose live leaves may have to be compared, as rows of ``near.nodes``.

        A superset, so that one question to the store suffices; what meets in a crowd aside.
        """
        live_since_ms = self._ages.live_since_ms
        end_ms = live_since_ms[-1] if live_since_ms else NO_TIME
        possible: dict[int, set[int]] = {}
        conflict: set[int] = set()
        for at in self._met:
            rows = self._near.get(at, [])
            near = {self._roots[row] for row in rows}
            within: set[int] = set()
            for other in self._near_within.get(at, ()):
                within |= possible.get(other) or {self._first + other}
            roots = self._joinable(at, near, within)
            if len(roots) < len(near | within) or not all(self._seen_ms[row] >= end_ms for row in rows):
                roots.add(self._first + at)
            possible[at] = roots
            if len(roots) > 1:
                conflict |= roots
        return sorted(root for root in conflict if root < self._first)

    def _choose(self, at: int, node_of: list[int]) -> int | None:
        """Return the root that an arrival joins, None where it may join none of a live node near it."""
        live_since_ms = self._ages.live_since_ms[at]
        # One that is known has a node that was there before: it is among those near, where it is indexed.
        others = [
            self._first + other for other in self._near_within.get(at, ()) if self._is_node(other, node_of)
        ]
        others += [self._first + other for other in self._saturated_keys.neighbours(at)]
        near, within = (
            {self._roots[node] for node in nodes if self._seen_ms[node] >= live_since_ms}
            for nodes in (self._near.get(at, ()), others)
        )
        roots = self._joinable(at, near, within)
        if len(roots) <= 1:
            return next(iter(roots), None)
        self._count([root for root in roots if root < self._first and root not in self._leaves])
        return min(roots, key=lambda root: (-self._count_live_leaves(root, live_since_ms), self._seqs[root]))

    def _is_node(self, at: int, node_of: list[int]) -> bool:
        return node_of[at] == self._first + at

    def _count(self, roots: list[int]) -> None:
        """Count the leaves of roots that were there before, as they are now."""
        for root, counts in self._count_leaves(roots).items():
            self._leaves[root] = leaves = collections.Counter(counts)
            # What the batch has changed so far.
            for row in self._refreshed:
                if row < self._first and self._roots[row] == root != row:
                    leaves[int(self._before.seen_ms[row])] -= 1
                    leaves[self._seen_ms[row]] += 1
            leaves.update(self._seen_ms[node] for node in self._joined if self._roots[node] == root)

    def _joinable(self, at: int, near: set[int], within: set[int]) -> set[int]:
        """Return those roots that an arrival may join: of nodes of the store, and of the batch, near it."""
        roots = {root for root in near if self._may_join.get((at, root), True)}
        for root in within - near:
            if (at, root) not in self._may_join:
                pair = self._signatures[[self._first + at]], self._signatures[[root]]
                self._may_join[at, root] = bool(self._relation.may_join(*pair)[0])
            if self._may_join[at, root]:
                roots.add(root)
        return roots

    def _refusals(self, near: Neighbours) -> list[tuple[int, int]]:
        """Return the arrivals, and the roots of nodes found near them, that they may not join."""
        arrivals, roots = near.arrivals, near.nodes.roots[near.rows]
        may = self._relation.may_join(self._arrivals.signatures[arrivals], near.nodes.signatures[roots])
        return list(zip(arrivals[~may].tolist(), roots[~may].tolist(), strict=True))

    def _count_live_leaves(self, root: int, live_since_ms: int) -> int:
        counts = self._leaves.get(root, collections.Counter())
        return sum(count for seen_ms, count in counts.items() if seen_ms >= live_since_ms)

    def _refresh(self, node: int, seen_ms: int) -> None:
        before_ms = self._seen_ms[node]
        if seen_ms <= before_ms:
            return
        counts = self._leaves.get(self._roots[node])
        if self._roots[node] != node and counts is not None:
            counts[before_ms] -= 1
            counts[seen_ms] += 1
        self._seen_ms[node] = seen_ms
        self._refreshed.add(node)

    def _plan(self, kinds: list[Kind], node_of: list[int]) -> Plan:
        roots = [
            None if kind is Kind.WITHOUT_FINGERPRINT else self._ids[self._roots[node]]
            for kind, node in zip(kinds, node_of, strict=True)
        ]
        first_seq = self._state.seq + 1
        seqs = range(first_seq, first_seq + len(kinds))
        made = np.flatnonzero([kind is Kind.NEW_ROOT or kind is Kind.JOINED for kind in kinds])
        self._signatures[self._first :] = self._relation.mark_indexed(
            self._arrivals.signatures, self._saturated_keys.indexed
        )
        size, data = self._signatures.itemsize, self._signatures.tobytes()
        signatures = (data[node * size : (node + 1) * size] for node in node_of)
        return Plan(
            assignments=list(map(Assignment, kinds, roots, seqs, self._ages.times_ms, signatures)),
            arrivals=self._arrivals,
            nodes=Nodes(
                ids=[node_id or "" for node_id in self._ids],
                signatures=self._signatures,
                roots=np.array(self._roots, np.int64),
                seqs=self._seqs,
                seen_ms=np.array(self._seen_ms, np.int64),
            ),
            made=made,
            made_seen_ms=np.array(self._ages.seen_ms, np.int64)[made],
            refreshed=np.array(sorted(row for row in self._refreshed if row < self._first), np.int64),
            state=State(
                seq=self._state.seq + len(kinds),
                time_ms=self._ages.times_ms[-1] if kinds else self._state.time_ms,
                origin_ms=self._state.origin_ms,
            ),
        )

"""The laws of the forest, as decisions over candidates. Pure: no clock, no store.

The laws, in ARCHITECTURE.md at length: an id has at most one live node; an arrival with no live
node near it becomes a root; one whose near nodes all have one root becomes its leaf; with several
roots near, the one with most live leaves wins, and among equals the earliest; an arrival refreshes
its node and its root; a root once assigned never changes.
"""

import collections
import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import NO_TIME, Aging, Arrivals, Assignment, Kind, Near, Node, Plan, State, pairs_of

_DAY_MS = 86_400_000

LeafCounts = Mapping[str, Mapping[int, int]]
"""For a root's id: how many leaves it has for each value of `seen`, in milliseconds."""


def times(arrivals: Arrivals, state: State, *, now_ms: int) -> tuple[npt.NDArray[np.int64], int]:
    """Move the forest's time through a batch.

    An arrival without a time, or with one that lies more than a day after `now_ms`, does not move it.

    Returns:
        The forest's time at each arrival, int64 ``(n,)``, and its origin.
    """
    believed = np.where(arrivals.times_ms <= now_ms + _DAY_MS, arrivals.times_ms, NO_TIME)
    moved = np.maximum.accumulate(np.concatenate(([state.time_ms], believed)))[1:]
    known = moved[moved != NO_TIME]
    origin = state.origin_ms if state.origin_ms != NO_TIME or not len(known) else int(known[0])
    return moved, origin


def roots_in_conflict(
    near: Near, near_within: Mapping[int, list[int]], *, aging: Aging, state: State, end_ms: int
) -> set[str]:
    """Return the roots whose live leaves may have to be compared: a superset, for one question a batch.

    Args:
        near: What the store found.
        near_within: For an arrival, the earlier arrivals of the batch near it.
        aging: How long nodes live.
        state: The forest before the batch, with its origin.
        end_ms: The forest's time at the batch's end.
    """
    candidates = pairs_of(near.arrivals, near.node_ids)
    possible: dict[int, set[str]] = {}
    conflict: set[str] = set()
    for arrival in sorted(candidates.keys() | near_within.keys()):
        nodes = [near.nodes[node_id] for node_id in candidates.get(arrival, ())]
        roots = {node.root for node in nodes}
        for other in near_within.get(arrival, ()):
            roots |= possible.get(other) or {f"new root {other}"}
        if not all(aging.is_live(node.seen_ms, at_ms=end_ms, origin_ms=state.origin_ms) for node in nodes):
            roots.add(f"new root {arrival}")
        possible[arrival] = roots
        if len(roots) > 1:
            conflict |= roots
    return conflict & near.nodes.keys()


@dataclasses.dataclass(kw_only=True)
class Decision:
    """The laws at work on one batch, arrival by arrival."""

    near: Near
    # For an arrival, the earlier arrivals of the batch near it.
    near_within: Mapping[int, list[int]]
    # Of the roots in conflict that the store knows.
    leaf_counts: LeafCounts
    aging: Aging
    state: State

    def decide(self, arrivals: Arrivals, times_ms: npt.NDArray[np.int64]) -> Plan:
        """Assign every arrival, in order, as if they had come one by one."""
        self._nodes = dict(self.near.nodes)
        self._leaves: dict[str, collections.Counter[int]] = {
            root: collections.Counter(counts) for root, counts in self.leaf_counts.items()
        }
        written: dict[str, Node] = {}
        candidates = pairs_of(self.near.arrivals, self.near.node_ids)
        assignments = []
        seq = self.state.seq
        for arrival, (node_id, time_ms) in enumerate(zip(arrivals.ids, times_ms.tolist(), strict=True)):
            seq += 1
            if node_id is None:
                assignments.append(Assignment(Kind.WITHOUT_FINGERPRINT, None, seq, time_ms))
                continue
            seen_ms = self.aging.round_up(time_ms)
            node = self._nodes.get(node_id)
            if node is not None and self._is_live(node, time_ms):
                kind = Kind.KNOWN
                node = self._refresh(node, seen_ms, written)
            else:
                near_ids = {*candidates.get(arrival, ())}
                near_ids.update(
                    other for at in self.near_within.get(arrival, ()) if (other := arrivals.ids[at])
                )
                root_id = self._choose(near_ids, time_ms)
                kind = Kind.NEW_ROOT if root_id is None else Kind.JOINED
                node = Node(node_id, root_id or node_id, seq, seen_ms)
                self._nodes[node_id] = written[node_id] = node
                if root_id is None:
                    self._leaves[node_id] = collections.Counter()
                elif root_id in self._leaves:
                    self._leaves[root_id][seen_ms] += 1
            if not node.is_root:
                self._refresh(self._nodes[node.root], seen_ms, written)
            assignments.append(Assignment(kind, node.root, seq, time_ms))
        return Plan(
            assignments=assignments,
            roots=[node for node in written.values() if node.is_root],
            leaves=[node for node in written.values() if not node.is_root],
            state=dataclasses.replace(
                self.state, seq=seq, time_ms=int(times_ms[-1]) if len(times_ms) else self.state.time_ms
            ),
        )

    def _choose(self, near_ids: set[str], time_ms: int) -> str | None:
        """Return the root that an arrival near those nodes joins, None where none of them lives."""
        live = (self._nodes[node_id] for node_id in near_ids)
        roots = {node.root for node in live if self._is_live(node, time_ms)}
        if len(roots) <= 1:
            return next(iter(roots), None)
        return min(roots, key=lambda root: (-self._count_live_leaves(root, time_ms), self._nodes[root].seq))

    def _count_live_leaves(self, root: str, time_ms: int) -> int:
        origin_ms = self.state.origin_ms
        return sum(
            count
            for seen_ms, count in self._leaves[root].items()
            if self.aging.is_live(seen_ms, at_ms=time_ms, origin_ms=origin_ms)
        )

    def _refresh(self, node: Node, seen_ms: int, written: dict[str, Node]) -> Node:
        if seen_ms <= node.seen_ms:
            return node
        if not node.is_root and node.root in self._leaves:
            self._leaves[node.root][node.seen_ms] -= 1
            self._leaves[node.root][seen_ms] += 1
        refreshed = Node(node.id, node.root, node.seq, seen_ms)
        self._nodes[node.id] = written[node.id] = refreshed
        return refreshed

    def _is_live(self, node: Node, time_ms: int) -> bool:
        return self.aging.is_live(node.seen_ms, at_ms=time_ms, origin_ms=self.state.origin_ms)

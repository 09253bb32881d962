"""The laws of the forest, as decisions over candidates. Pure: no clock, no store.

ARCHITECTURE.md gives the laws in full. In short: a page keeps the node that it got, or stays without one, and
an id has at most one live node. Any other arrival may join the roots of live nodes near it, as far as the
profile allows: with none it becomes a root; with one, its leaf; with several, a leaf of the one that it
resembles most, on a tie of the earliest. An arrival refreshes its page, its node and that node's root. A
root, once assigned, never changes.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.forest.batch_nodes import BatchNodes
from esdedup.forest.batch_pages import BatchPages
from esdedup.forest.joinable import JoinableRoots
from esdedup.forest.model import (
    NO_NODE,
    NO_TIME,
    Ages,
    Arrivals,
    Assignment,
    Kind,
    Neighbours,
    Plan,
    State,
    pairs_of,
)
from esdedup.forest.saturated_keys import SaturatedKeys
from esdedup.neighbours.relation import Relation
from esdedup.times import DAY_MS


def advance_time(arrivals: Arrivals, state: State, *, now_ms: int) -> tuple[npt.NDArray[np.int64], int]:
    """Advance the forest's time through a batch.

    An arrival without a time, or with a time more than a day after `now_ms`, does not advance it.

    Returns:
        The forest's time at each arrival, int64 ``(n,)``, and its origin.
    """
    accepted = np.where(arrivals.times_ms <= now_ms + DAY_MS, arrivals.times_ms, NO_TIME)
    moved = np.maximum.accumulate(np.concatenate(([state.time_ms], accepted)))[1:]
    known = moved[moved != NO_TIME]
    origin = state.origin_ms if state.origin_ms != NO_TIME or not len(known) else int(known[0])
    return moved, origin


@dataclasses.dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of arrivals, with everything that deciding it needs."""

    arrivals: Arrivals
    ages: Ages
    # The forest before the batch, with the origin of its time after it.
    state: State
    relation: Relation
    # The nodes that the store found near the arrivals.
    neighbours: Neighbours
    # For a position in the batch, the earlier positions near it, except through saturated keys.
    earlier_neighbours: dict[int, list[int]]


class Decision:
    """Decides a batch in order, as if its arrivals had come one by one. Used once."""

    def __init__(self, batch: Batch, saturated_keys: SaturatedKeys) -> None:
        """Settle the certain cases: an arrival of a new page with nothing near it becomes a root.

        Without a fingerprint it gets no node.
        """
        self._batch = batch
        self._saturated_keys = saturated_keys
        self._nodes = BatchNodes(
            batch.neighbours.nodes, batch.arrivals, batch.ages, first_seq=batch.state.seq + 1
        )
        self._joinable = JoinableRoots(
            batch.arrivals,
            batch.neighbours,
            batch.relation,
            signatures=self._nodes.before.signatures,
            earlier_neighbours=batch.earlier_neighbours,
        )
        self._pages = BatchPages(batch.neighbours.pages, batch.arrivals, batch.ages)
        self._found = pairs_of(batch.neighbours.arrivals, batch.neighbours.rows)
        # The positions of arrivals that have something near them, or whose page has come before.
        self._open = sorted(
            self._found.keys()
            | batch.earlier_neighbours.keys()
            | saturated_keys.near_arrivals
            | self._pages.open
        )
        self._kinds = [
            Kind.WITHOUT_FINGERPRINT if node_id is None else Kind.NEW_ROOT for node_id in batch.arrivals.ids
        ]
        # The row of each arrival's node; NO_NODE if it has none.
        self._rows = [
            NO_NODE if node_id is None else self._nodes.row_of(at)
            for at, node_id in enumerate(batch.arrivals.ids)
        ]
        still_open = {self._nodes.row_of(at) for at in self._open}
        # The row of the newest node of each id.
        self._newest = {
            node_id: row for row, node_id in enumerate(self._nodes.before.ids) if row not in still_open
        }
        for at in set(range(len(batch.arrivals))).difference(self._open):
            self._pages.remember(at, self._rows[at])

    def decide(self) -> Plan:
        """Assign every arrival."""
        for at in self._open:
            node_id = self._batch.arrivals.ids[at]
            row, seen_ms = self._pages.node_row(at), self._batch.ages.seen_ms[at]
            if row is None:
                row = NO_NODE if node_id is None else self._node(at, node_id)
            elif row == NO_NODE:
                self._kinds[at] = Kind.WITHOUT_FINGERPRINT
            else:
                self._kinds[at] = Kind.KNOWN
                self._nodes.refresh_page(row, seen_ms, self._pages.of(at))
            if row != NO_NODE:
                self._nodes.refresh(row, seen_ms)
            self._rows[at] = row
            self._pages.remember(at, row)
        return self._plan()

    def _node(self, at: int, node_id: str) -> int:
        """Return the row of the live node with an arrival's id, which is made if there is none."""
        row = self._live_node(at, node_id)
        if row is None:
            return self._make_node(at, node_id)
        self._kinds[at] = Kind.KNOWN
        return row

    def _live_node(self, at: int, node_id: str) -> int | None:
        """Return the row of the live node with an arrival's id; None if there is none."""
        row = self._newest.get(node_id)
        is_live = row is not None and self._nodes.seen_ms[row] >= self._batch.ages.live_since_ms[at]
        return row if is_live else None

    def _make_node(self, at: int, node_id: str) -> int:
        """Make the arrival a node, and return its row."""
        row = self._nodes.row_of(at)
        self._newest[node_id] = row
        root = self._choose_root(at)
        self._saturated_keys.add_postings(at)
        if root is not None:
            self._kinds[at] = Kind.JOINED
            self._nodes.join(row, root)
        return row

    def _choose_root(self, at: int) -> int | None:
        """Return the root that an arrival joins; None if there is none that it may join."""
        since_ms = self._batch.ages.live_since_ms[at]
        # An earlier arrival that was known made no node: if the one of its id is near, it was found too.
        earlier = [each for each in self._batch.earlier_neighbours.get(at, ()) if self._became_node(each)]
        earlier += self._saturated_keys.neighbours(at)
        roots = self._joinable.among(
            at,
            self._nodes.live_roots(self._found.get(at, ()), since_ms),
            self._nodes.live_roots(map(self._nodes.row_of, earlier), since_ms),
        )
        if len(roots) <= 1:
            return next(iter(roots), None)
        return self._joinable.most_alike(at, self._nodes.by_age(roots))

    def _became_node(self, at: int) -> bool:
        return self._rows[at] == self._nodes.row_of(at)

    def _plan(self) -> Plan:
        batch = self._batch
        nodes = self._nodes.after(
            batch.relation.mark_indexed(batch.arrivals.signatures, self._saturated_keys.indexed)
        )
        pages, paged = self._pages.after(self._rows)
        return Plan(
            assignments=[
                Assignment(
                    kind,
                    None if row == NO_NODE else nodes.ids[row],
                    None if row == NO_NODE else nodes.ids[self._nodes.roots[row]],
                    seq,
                    time_ms,
                    nodes.signatures[row].tobytes(),
                )
                for seq, (kind, row, time_ms) in enumerate(
                    zip(self._kinds, self._rows, batch.ages.times_ms, strict=True), batch.state.seq + 1
                )
            ],
            arrivals=batch.arrivals,
            nodes=nodes,
            made=np.flatnonzero([kind in {Kind.NEW_ROOT, Kind.JOINED} for kind in self._kinds]),
            refreshed=self._nodes.refreshed,
            pages=pages,
            paged=paged,
            state=State(
                seq=batch.state.seq + len(batch.arrivals),
                time_ms=batch.ages.times_ms[-1],
                origin_ms=batch.state.origin_ms,
            ),
        )

"""A store in memory, for files and tests: eight bytes per node besides its signature, and its pages."""

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.changes import Changes
from esdedup.errors import SettingError
from esdedup.forest.model import (
    NO_NODE,
    NO_PAGE,
    NO_TIME,
    Aging,
    Arrivals,
    Neighbours,
    Nodes,
    Pages,
    Plan,
    State,
)
from esdedup.neighbours.columns import grow
from esdedup.neighbours.key_table import KeyTable
from esdedup.neighbours.relation import Relation

_NONE = np.uint32(0xFFFF_FFFF)
_NODE = np.dtype(
    [
        # The row of its root.
        ("root", np.uint32),
        # `Nodes.seen_ms` as a number: 0 if no time was known, else 1 plus the steps of the granularity
        # after the origin.
        ("seen", np.uint32),
    ]
)


class MemoryStore:
    """Keeps a forest for as long as the process runs. At most 4,294,967,294 nodes.

    When the id of an expired node arrives again, it gets a new row; the old one stays.
    """

    def __init__(self, *, aging: Aging, relation: Relation) -> None:
        """Make an empty forest.

        Args:
            aging: How long nodes live.
            relation: The profile's.
        """
        self.aging = aging
        self.relation = relation
        self.boilerplate = Boilerplate()
        self._index = relation.new_index()
        self._columns = {name: np.zeros(0, _NODE[name]) for name in _NODE.names or ()}
        self._count = 0
        # For each page: the row of its node, `_NONE` if it got none, and `seen` as nodes have it.
        self._pages = KeyTable(2)
        # The rows of nodes that are indexed under nothing and found by their id alone.
        self._unindexed: dict[str, int] = {}
        # The `seen` that nodes got when they were made: the rows at which it changes, and its values there.
        self._made_from = np.zeros(1, np.int64)
        self._made_seen_ms = np.full(1, NO_TIME)
        self._state = State()

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        columns = sum(column.nbytes for column in self._columns.values())
        return self._index.size_bytes + self._pages.size_bytes + self.boilerplate.size_bytes + columns

    def state(self) -> State:
        """Return the state of the last plan that was committed."""
        return self._state

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:
        """Find the nodes near the arrivals, with their roots."""
        positions = arrivals.with_node
        matches = self._index.search(arrivals.signatures[positions])
        queries, rows = self._with_unindexed(arrivals, matches.positions, matches.rows)
        pages = np.unique(arrivals.pages)
        is_remembered, remembered = self._pages.get(pages)
        page_rows, page_seen = remembered[is_remembered].T
        has_node = page_rows != _NONE
        paged = page_rows[has_node]
        all_roots = self._columns["root"]
        kept = np.unique(np.concatenate((rows, all_roots[rows], paged, all_roots[paged])))
        # Rows serve as seqs: they cost no memory and, since no node is removed, have the same order.
        signatures = self._index.signatures(kept)
        nodes = Nodes(
            ids=self.relation.ids(signatures),
            signatures=signatures,
            roots=np.searchsorted(kept, all_roots[kept]),
            seqs=kept,
            made_ms=self._made_seen(kept),
            seen_ms=self._seen_ms(self._columns["seen"][kept], state.origin_ms),
            pages=np.full(len(kept), NO_PAGE, np.uint64),
            pages_seen_ms=np.full(len(kept), NO_TIME),
        )
        return Neighbours(
            arrivals=positions[queries],
            rows=np.searchsorted(kept, rows),
            nodes=nodes,
            posting_keys=matches.posting_keys,
            postings_seen_ms=self._made_seen(matches.postings),
            pages=Pages(
                ids=pages[is_remembered],
                rows=np.where(has_node, np.searchsorted(kept, page_rows), NO_NODE),
                seen_ms=self._seen_ms(page_seen, state.origin_ms),
            ),
        )

    def commit(self, plan: Plan) -> None:
        """Apply the plan; repeating the last commit changes nothing."""
        if plan.state == self._state:
            return
        before = plan.nodes.seqs[: len(plan.nodes) - len(plan.arrivals)]
        seen = self._seen_steps(plan.nodes.seen_ms, plan.state.origin_ms)
        made = self._index.add(plan.nodes.signatures[plan.made_rows])
        rows = np.concatenate((before, np.full(len(plan.arrivals), -1)))
        rows[plan.made_rows] = made
        roots = rows[plan.nodes.roots]
        self._count += len(made)
        for column in self._columns.values():
            grow(column, self._count)
        self._columns["root"][made] = roots[plan.made_rows]
        self._columns["seen"][made] = seen[plan.made_rows]
        self._columns["seen"][rows[plan.refreshed]] = seen[plan.refreshed]
        page_seen = self._seen_steps(plan.pages.seen_ms, plan.state.origin_ms)
        page_rows = np.where(plan.pages.rows == NO_NODE, _NONE, rows[plan.pages.rows])
        self._pages.put(plan.pages.ids, np.stack((page_rows, page_seen), axis=1).astype(np.uint32))
        unindexed = np.flatnonzero(~self.relation.indexed(plan.nodes.signatures[plan.made_rows]).any(axis=1))
        self._unindexed |= {plan.nodes.ids[plan.made_rows[at]]: int(made[at]) for at in unindexed.tolist()}
        # The forest's time rarely advances by a step, so only the steps are stored.
        made_seen_ms = self.aging.round_up(plan.nodes.made_ms[plan.made_rows])
        changes = np.flatnonzero(np.diff(made_seen_ms, prepend=self._made_seen_ms[-1:]))
        self._made_from = np.append(self._made_from, made[changes])
        self._made_seen_ms = np.append(self._made_seen_ms, made_seen_ms[changes])
        self._state = plan.state
        if plan.learned is not None:
            self.boilerplate.keep()

    def learn(self, changes: Changes) -> None:  # noqa: ARG002 - the boilerplate has them
        """Keep what the pages of a batch have taught."""
        self.boilerplate.keep()

    def _with_unindexed(
        self, arrivals: Arrivals, queries: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Add pairs of an arrival and the unindexed node of its id."""
        if not self._unindexed:
            return queries, rows
        ids = (arrivals.ids[at] for at in arrivals.with_node.tolist())
        same = [(at, self._unindexed[each]) for at, each in enumerate(ids) if each in self._unindexed]
        pairs = np.unique(
            np.concatenate((np.stack((queries, rows), axis=1), np.array(same).reshape(-1, 2))), axis=0
        )
        return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)

    def _made_seen(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the `seen` that nodes got when they were made."""
        return self._made_seen_ms[np.searchsorted(self._made_from, rows, side="right") - 1]

    def _seen_ms(self, steps: npt.NDArray[np.uint32], origin_ms: int) -> npt.NDArray[np.int64]:
        first_ms = int(self.aging.round_up(np.array(origin_ms)))
        return np.where(steps == 0, NO_TIME, first_ms + (steps - np.int64(1)) * self.aging.granularity_ms)

    def _seen_steps(self, seen_ms: npt.NDArray[np.int64], origin_ms: int) -> npt.NDArray[np.int64]:
        first_ms = int(self.aging.round_up(np.array(origin_ms)))
        steps = np.where(seen_ms == NO_TIME, 0, (seen_ms - first_ms) // self.aging.granularity_ms + 1)
        if len(steps) and steps.max() > _NONE:
            raise SettingError(
                f"a granularity of {self.aging.granularity_ms} ms is too fine for the time that this forest "
                "spans; make it coarser"
            )
        return steps

"""All nodes and pages of a forest in memory: 24 bytes per node besides its signature, and its pages."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.forest.model import NO_NODE, NO_PAGE, NO_TIME, Aging, Arrivals, Neighbours, Nodes, Pages, Plan
from esdedup.neighbours.columns import grow
from esdedup.neighbours.key_table import KeyTable
from esdedup.neighbours.relation import Relation

NONE = np.uint32(0xFFFF_FFFF)
"""Stands for the row of no node."""

_NODE = np.dtype(
    [
        # The row of its root; `NONE` for a row without a node.
        ("root", np.uint32),
        # `Nodes.seen_ms` in steps, see `_steps`.
        ("seen", np.uint32),
        ("seq", np.int64),
        ("made", np.int64),
    ]
)
# What the documents of nodes need besides.
_DOCUMENT = np.dtype([*_NODE.descr, ("page", np.uint64), ("page_seen", np.uint32)])
_PAGES_AT_ONCE = 100_000
# The number of the first known `seen`; nodes that are loaded may come in any order.
_FIRST_STEP = 2**31

Ints = npt.NDArray[np.int64]
Steps = npt.NDArray[np.uint32]


class MemoryNodes:
    """Keeps the nodes and pages of committed plans. At most 4,294,967,294 nodes.

    When the id of an expired node arrives again, it gets a new row; the old one stays until `forget`.
    """

    def __init__(self, *, aging: Aging, relation: Relation, for_documents: bool = False) -> None:
        """Keep nothing yet.

        Args:
            aging: How long nodes live.
            relation: The profile's.
            for_documents: Whether nodes are found with the pages that their documents remember.
        """
        self._aging = aging
        self._relation = relation
        self._index = relation.new_index()
        kept = _DOCUMENT if for_documents else _NODE
        self._columns = {name: np.zeros(0, kept[name]) for name in kept.names or ()}
        # The rows in use end before this one.
        self._end = 0
        # For each page: the row of its node, `NONE` if it got none, and `seen` in steps.
        self._pages = KeyTable(2)
        # The rows of nodes that are found by their id alone: they are indexed under nothing, or have the
        # signature of another node.
        self._by_id: dict[str, int] = {}
        # The ids of the latter, by row.
        self._ids: dict[int, str] = {}
        # The first known `seen`, which has the number `_FIRST_STEP`; NO_TIME before there is one.
        self._first_ms = NO_TIME

    def __len__(self) -> int:
        return len(self._index)

    @property
    def page_count(self) -> int:
        """How many pages are remembered."""
        return len(self._pages)

    @property
    def size_bytes(self) -> int:
        """The memory that all nodes and pages take."""
        columns = sum(column.nbytes for column in self._columns.values())
        return self._index.size_bytes + self._pages.size_bytes + columns

    def find_neighbours(self, arrivals: Arrivals, *, live_since_ms: int) -> Neighbours:
        """Find the nodes near the arrivals, and their remembered pages, as `Store.find_neighbours` does.

        Args:
            arrivals: A batch.
            live_since_ms: The `seen` from which on (inclusive) nodes and pages live.
        """
        positions = arrivals.with_node
        matches = self._index.search(arrivals.signatures[positions])
        queries, rows = self._with_those_by_id(arrivals, matches.positions, matches.rows)
        pages, page_rows, pages_seen_ms = self._remembered(np.unique(arrivals.pages), live_since_ms)
        has_node = page_rows != NONE
        all_roots = self._columns["root"]
        found = np.concatenate((rows, page_rows[has_node]))
        kept = _Kept.of(np.concatenate((found, all_roots[found])), self._columns["seq"])
        page_positions = np.full(len(pages), NO_NODE)
        page_positions[has_node] = kept.positions(page_rows[has_node])
        return Neighbours(
            arrivals=positions[queries],
            rows=kept.positions(rows),
            nodes=self._nodes(kept),
            posting_keys=matches.posting_keys,
            postings_seen_ms=self._aging.round_up(self._columns["made"][matches.postings]),
            pages=Pages(ids=pages, rows=page_positions, seen_ms=pages_seen_ms),
        )

    def put(self, plan: Plan) -> None:
        """Apply a plan that was made from what `find_neighbours` found."""
        nodes = plan.nodes
        rows = nodes.places.copy()
        rows[plan.made_rows] = made = self.add(nodes, plan.made_rows)
        self._columns["root"][made] = rows[nodes.roots[plan.made_rows]]
        for name, seen_ms in (("seen", nodes.seen_ms), ("page_seen", nodes.pages_seen_ms)):
            if name in self._columns:
                self._columns[name][rows[plan.refreshed]] = self._steps(seen_ms[plan.refreshed])
        page_rows = np.where(plan.pages.rows == NO_NODE, NONE, rows[plan.pages.rows])
        self.put_pages(plan.pages.ids, page_rows, plan.pages.seen_ms)

    def add(self, nodes: Nodes, at: Ints) -> Ints:
        """Add some of `nodes`, each as a root for now; return their rows."""
        signatures = nodes.signatures[at]
        rows = self._index.add(signatures)
        self._end = max(self._end, int(rows.max(initial=-1)) + 1)
        values = {
            "root": rows,
            "seen": self._steps(nodes.seen_ms[at]),
            "seq": nodes.seqs[at],
            "made": nodes.made_ms[at],
            "page": nodes.pages[at],
            "page_seen": self._steps(nodes.pages_seen_ms[at]),
        }
        for name, column in self._columns.items():
            grow(column, self._end)
            column[rows] = values[name]
        unindexed = np.flatnonzero(~self._relation.indexed(signatures).any(axis=1))
        self._by_id |= {nodes.ids[at[each]]: int(rows[each]) for each in unindexed.tolist()}
        return rows

    def seqs(self, rows: Ints) -> Ints:
        """Return the numbers of the arrivals that made nodes, by their rows."""
        return self._columns["seq"][rows] if self._end else np.zeros(len(rows), np.int64)

    def refresh(self, rows: Ints, seen_ms: Ints, pages: npt.NDArray[np.uint64], pages_seen_ms: Ints) -> None:
        """Set when nodes were last needed, and the pages of their documents."""
        self._columns["seen"][rows] = self._steps(seen_ms)
        self._columns["page"][rows] = pages
        self._columns["page_seen"][rows] = self._steps(pages_seen_ms)

    def hang(self, rows: Ints, roots: Ints) -> None:
        """Make nodes leaves of roots, by their rows."""
        self._columns["root"][rows] = roots

    def name(self, row: int, node_id: str) -> None:
        """Set the id of a node that has the signature of another."""
        self._ids[row] = node_id
        self._by_id[node_id] = row

    def put_pages(self, pages: npt.NDArray[np.uint64], rows: Ints, seen_ms: Ints) -> None:
        """Remember pages.

        Args:
            pages: Each of them once.
            rows: Of the nodes that they got; `NONE` for those that got none.
            seen_ms: When they were seen, rounded up.
        """
        self._pages.put(pages, np.stack((rows, self._steps(seen_ms)), axis=1).astype(np.uint32))

    def forget(self, live_since_ms: int) -> None:
        """Remove nodes and pages that have expired; their memory stays for those to come.

        Args:
            live_since_ms: The `seen` from which on (inclusive) nodes and pages live.
        """
        if live_since_ms == NO_TIME:
            return
        roots, seen = (self._columns[name][: self._end] for name in ("root", "seen"))
        is_live = (roots != NONE) & (self._seen_ms(seen) >= live_since_ms)
        # In a damaged forest a root may have expired before a leaf.
        is_live[roots[is_live]] = True
        gone = np.flatnonzero((roots != NONE) & ~is_live)
        self._index.remove(gone)
        roots[gone] = NONE
        self._ids = {row: each for row, each in self._ids.items() if is_live[row]}
        self._by_id = {each: row for each, row in self._by_id.items() if is_live[row]}
        self._forget_pages(live_since_ms)

    def _forget_pages(self, live_since_ms: int) -> None:
        pages, values = self._pages.all()
        is_live = self._seen_ms(values[:, 1]) >= live_since_ms
        if 2 * is_live.sum() > len(pages):
            # A new table is made only if that frees much. Until then, `_remembered` leaves them out.
            return
        pages, values, self._pages = pages[is_live], values[is_live], self._pages.emptied()
        for start in range(0, len(pages), _PAGES_AT_ONCE):
            some = slice(start, start + _PAGES_AT_ONCE)
            self._pages.put(pages[some], values[some])

    def _remembered(
        self, pages: npt.NDArray[np.uint64], live_since_ms: int
    ) -> tuple[npt.NDArray[np.uint64], Ints, Ints]:
        """Return those of some pages that are remembered, the rows of their nodes, and their `seen`."""
        is_known, values = self._pages.get(pages)
        seen_ms = self._seen_ms(values[:, 1])
        is_remembered = is_known & (seen_ms >= live_since_ms)
        return pages[is_remembered], values[is_remembered, 0].astype(np.int64), seen_ms[is_remembered]

    def _with_those_by_id(self, arrivals: Arrivals, queries: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Add pairs of an arrival and the node of its id that is found by that alone."""
        if not self._by_id:
            return queries, rows
        ids = (arrivals.ids[at] for at in arrivals.with_node.tolist())
        same = [(at, self._by_id[each]) for at, each in enumerate(ids) if each in self._by_id]
        pairs = np.unique(
            np.concatenate((np.stack((queries, rows), axis=1), np.array(same, np.int64).reshape(-1, 2))),
            axis=0,
        )
        return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)

    def _nodes(self, kept: "_Kept") -> Nodes:
        rows = kept.rows
        signatures = self._index.signatures(rows)
        ids: Sequence[str] = self._relation.ids(signatures)
        if self._ids:
            ids = [self._ids.get(row, each) for row, each in zip(rows.tolist(), ids, strict=True)]
        columns = {name: column[rows] for name, column in self._columns.items()}
        return Nodes(
            ids=ids,
            signatures=signatures,
            roots=kept.positions(columns["root"]),
            seqs=columns["seq"],
            made_ms=columns["made"],
            seen_ms=self._seen_ms(columns["seen"]),
            pages=columns.get("page", np.full(len(rows), NO_PAGE, np.uint64)),
            pages_seen_ms=self._seen_ms(columns.get("page_seen", np.zeros(len(rows), np.uint32))),
            places=rows,
        )

    def _seen_ms(self, steps: Steps) -> Ints:
        after_ms = (steps - np.int64(_FIRST_STEP)) * self._aging.granularity_ms
        return np.where(steps == 0, NO_TIME, self._first_ms + after_ms)

    def _steps(self, seen_ms: Ints) -> Steps:
        """Return times as numbers of steps of the granularity; 0 for NO_TIME."""
        is_known = seen_ms != NO_TIME
        if self._first_ms == NO_TIME and is_known.any():
            self._first_ms = int(self._aging.round_up(seen_ms[is_known].min()))
        since_ms = np.where(is_known, seen_ms - self._first_ms, 0)
        steps = _FIRST_STEP - (-since_ms // self._aging.granularity_ms)
        if len(steps) and not 0 < steps.min() <= steps.max() <= NONE:
            raise SettingError(
                f"a granularity of {self._aging.granularity_ms} ms is too fine for the time that this forest "
                "spans; make it coarser"
            )
        return np.where(is_known, steps, 0).astype(np.uint32)


@dataclasses.dataclass(frozen=True)
class _Kept:
    """Rows of nodes in the order in which these were made, since the order of rows says nothing."""

    rows: Ints
    # All of them, ascending, and the position of each in `rows`.
    _ascending: Ints
    _positions: Ints

    @classmethod
    def of(cls, rows: Ints, seqs: Ints) -> "_Kept":
        ascending = np.unique(rows).astype(np.int64)
        order = np.argsort(seqs[ascending], kind="stable")
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order))
        return cls(ascending[order], ascending, positions)

    def positions(self, rows: npt.NDArray[np.generic]) -> Ints:
        return self._positions[np.searchsorted(self._ascending, rows)]

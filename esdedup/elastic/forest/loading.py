"""Loads the live nodes and pages of a forest's index into memory."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.documents import Hit, live_filter
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.packing import Packing
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.forest.stored import Stored, StoredNode, StoredPage, recreate_root
from esdedup.elastic.requests import Query
from esdedup.forest.memory_nodes import NONE, MemoryNodes
from esdedup.forest.model import NO_NODE, NO_PAGE, Aging, Nodes
from esdedup.neighbours.relation import Relation

_PAGES_AT_ONCE = 100_000
# Stands for the place of a node that is missing.
_GONE = -2
# Later than every time.
_NEVER = 2**63 - 1

Ints = npt.NDArray[np.int64]
Records = npt.NDArray[Any]
_Columns = tuple[npt.NDArray[Any], ...]
# Ids as two numbers each, uint64 (n, 2).
_Ids = npt.NDArray[np.uint64]


def load_nodes(
    index: ForestIndex,
    *,
    aging: Aging,
    live_since_ms: int,
    memory_bytes: int,
    is_ended: Callable[[], bool],
) -> "Loading | None":
    """Load all that lives, as far as a refresh has shown it; None if it takes too much memory.

    Args:
        index: The forest's.
        aging: How long nodes live.
        live_since_ms: The `seen` from which on (inclusive) they do.
        memory_bytes: The most that they may take.
        is_ended: Asked now and then; whether nobody wants them any more. Then the result is None.

    Raises:
        ServerError: Elasticsearch does not answer, or refuses.
    """
    lives = live_filter(live_since_ms)
    node_count = index.run(index.search.count({"bool": {"filter": [EVERY_NODE, *lives]}}))
    if node_count * index.relation.dtype.itemsize > memory_bytes:
        # The signatures alone take more.
        return None
    query: Query = {"bool": {"filter": [{"exists": {"field": "packed"}}, *lives]}}
    nodes = MemoryNodes(aging=aging, relation=index.relation, for_documents=True)
    loading = Loading(nodes, index.relation)
    for hits in index.hit_pages(query):
        loading.add(hits)
        if nodes.size_bytes > memory_bytes or is_ended():
            return None
    _add_missing_roots(loading, index)
    loading.end()
    return loading if nodes.size_bytes <= memory_bytes else None


class Loading:
    """Puts nodes and pages into memory as they come, in any order; at the end each gets its root.

    In a damaged forest, roots that are missing are made again from one of their leaves, and pages whose node
    is missing are left out.
    """

    def __init__(self, nodes: MemoryNodes, relation: Relation) -> None:
        """Load into `nodes`, which are empty."""
        self.nodes = nodes
        self._relation = relation
        self._packing = Packing(relation)
        # Of each node: its row, its id and its root's, and its `seen`.
        self._loaded: list[_Columns] = []
        # Of each page that made a node: its id, its `seen`, and the place of that node among those loaded.
        self._own_pages: list[_Columns] = []
        # Of each page that has a document of its own: its id, its `seen`, and the id of its node.
        self._pages: list[_Columns] = []
        # Of each page without a node: its id, and its `seen`.
        self._bare_pages: list[_Columns] = []
        # After `end`: the nodes by their ids, and the rows of those that came later.
        self._found: _Found
        self._added: dict[str, int] = {}
        self._add([])

    def add(self, hits: Sequence[Hit]) -> None:
        """Add what hits of `search_body` hold, leaving out what is damaged."""
        self._add([values[0] for hit in hits if len(values := hit.get("fields", {}).get("packed", [])) == 1])

    def add_nodes(self, nodes: Iterable[StoredNode]) -> None:
        """Add nodes."""
        self._add([self._packing.pack(node) for node in nodes])

    def missing_roots(self) -> dict[str, str]:
        """Return the ids of roots that have not come, each with the id of a leaf."""
        rows, ids, roots, _ = _joined(self._loaded)
        missing = np.flatnonzero(_root_places(_Found(ids, rows), ids, roots) == NO_NODE)
        return dict(zip(self._hex(roots[missing]), self._hex(ids[missing]), strict=True))

    def end(self) -> None:
        """Give each node its root, and remember the pages."""
        rows, ids, roots, seen_ms = _joined(self._loaded)
        self._found = _Found(ids, rows)
        places = _root_places(self._found, ids, roots)
        row_of_root = np.where(places == NO_NODE, rows, rows[places])
        self.nodes.hang(rows, row_of_root)
        # In a damaged forest a root may be a leaf of another tree; where its own tree counts, it is a root.
        self.nodes.hang(row_of_root, row_of_root)
        self._remember_pages(rows, seen_ms)

    def update(self, written: Sequence[Stored]) -> None:
        """Put in what was written meanwhile, in its order, after `end`; some of it may have come before."""
        newest: dict[str, Stored] = {}
        for each in written:
            newest.pop(each.document_id, None)
            newest[each.document_id] = each
        self._update_nodes([each for each in newest.values() if isinstance(each, StoredNode)])
        pages = [each if isinstance(each, StoredPage) else each.own_page for each in newest.values()]
        latest = {each.page: each for each in pages if each is not None}
        ids = np.array([int(page, 16) for page in latest], np.uint64)
        rows = [
            int(NONE) if each.node is None else self._row(each.node, int(NONE)) for each in latest.values()
        ]
        seen_ms = np.array([each.seen_ms for each in latest.values()], np.int64)
        self.nodes.put_pages(ids, np.array(rows, np.int64), seen_ms)

    def _update_nodes(self, stored: Sequence[StoredNode]) -> None:
        records = self._packing.records([self._packing.pack(each) for each in stored]).nodes
        rows = np.array([self._row(each.id, NO_NODE) for each in stored], np.int64)
        # Where a node expired and its text came again, a new one has its id.
        is_same = (rows != NO_NODE) & (self.nodes.seqs(np.maximum(rows, 0)) == records["seq"])
        same, new = records[is_same], records[~is_same]
        self.nodes.refresh(rows[is_same], same["seen"], same["page"], same["page_seen"])
        rows[~is_same] = added = self._add_records(new)
        self._added |= {stored[at].id: rows[at] for at in np.flatnonzero(~is_same).tolist()}
        roots = [self._row(stored[at].root, rows[at]) for at in np.flatnonzero(~is_same).tolist()]
        self.nodes.hang(added, np.array(roots, np.int64))

    def _row(self, node_id: str, otherwise: int) -> int:
        """Return the row of a node after `end`."""
        if (row := self._added.get(node_id)) is not None:
            return row
        sought = np.frombuffer(bytes.fromhex(node_id), f"V{self._relation.id_bytes}")
        (place,) = self._found.places(_ids_of(sought)).tolist()
        return otherwise if place == NO_NODE else int(self._found.rows[place])

    def _remember_pages(self, rows: Ints, seen_ms: Ints) -> None:
        lone, lone_seen_ms, of_nodes = _joined(self._pages)
        bare, bare_seen_ms = _joined(self._bare_pages)
        found = self._found.places(of_nodes)
        columns = [
            _joined(self._own_pages),
            (lone, lone_seen_ms, np.where(found == NO_NODE, _GONE, found)),
            (bare, bare_seen_ms, np.full(len(bare), NO_NODE)),
        ]
        pages, pages_seen_ms, places = _latest(*_joined(columns))
        exist = places != _GONE
        pages, pages_seen_ms, places = pages[exist], pages_seen_ms[exist], places[exist]
        page_rows = np.append(rows, NONE)[places]
        # In a damaged forest a page may have been seen later than its node.
        until_ms = np.minimum(pages_seen_ms, np.append(seen_ms, _NEVER)[places])
        for start in range(0, len(pages), _PAGES_AT_ONCE):
            some = slice(start, start + _PAGES_AT_ONCE)
            self.nodes.put_pages(pages[some], page_rows[some], until_ms[some])

    def _add(self, packed: Sequence[str]) -> None:
        nodes, pages, bare_pages = self._packing.records(packed)
        made = np.flatnonzero(nodes["page"] != NO_PAGE)
        self._own_pages.append((nodes["page"][made], nodes["page_seen"][made], made + len(self.nodes)))
        rows = self._add_records(nodes)
        # A view would keep all that was read.
        self._loaded.append((rows, _ids_of(nodes["id"]), _ids_of(nodes["root"]), nodes["seen"].copy()))
        self._pages.append((pages["page"], pages["seen"], _ids_of(pages["node"])))
        self._bare_pages.append((bare_pages["page"], bare_pages["seen"]))

    def _add_records(self, nodes: Records) -> Ints:
        """Add nodes, each as a root for now; return their rows."""
        ids, every = _ids_of(nodes["id"]), np.arange(len(nodes))
        stored = Nodes(
            ids=self._hex(ids),
            signatures=nodes["signature"],
            roots=every,
            seqs=nodes["seq"],
            made_ms=nodes["made"],
            seen_ms=nodes["seen"],
            pages=nodes["page"],
            pages_seen_ms=nodes["page_seen"],
            places=every,
        )
        rows = self.nodes.add(stored, every)
        computed = self._relation.ids(stored.signatures)
        if computed != stored.ids:
            for row, node_id, other in zip(rows.tolist(), stored.ids, computed, strict=True):
                if node_id != other:
                    self.nodes.name(row, node_id)
        return rows

    def _hex(self, ids: _Ids) -> list[str]:
        digits = 2 * self._relation.id_bytes
        whole = np.ascontiguousarray(ids.astype("<u8")).tobytes().hex()
        return [whole[start : start + digits] for start in range(0, len(whole), 32)]


def _add_missing_roots(loading: Loading, index: ForestIndex) -> None:
    """Add the roots that are not among the live nodes; only a damaged forest has such."""
    missing = loading.missing_roots()
    found = {node.id: node for node in index.run(index.search.by_id([*missing, *missing.values()]))}
    for root_id, leaf_id in missing.items():
        root = found.get(root_id)
        if root is not None and root.is_root:
            loading.add_nodes([root])
        elif node := root or found.get(leaf_id):
            loading.add_nodes([recreate_root(root_id, node, index.relation)])


def _joined(parts: Sequence[_Columns]) -> _Columns:
    """Return columns that were loaded in parts."""
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _latest(pages: npt.NDArray[np.uint64], seen_ms: Ints, *others: npt.NDArray[Any]) -> _Columns:
    """Return columns of pages with each page once, as it was when it was seen last."""
    order = np.lexsort((seen_ms, pages))
    last = order[np.diff(pages[order], append=np.uint64(NO_PAGE)) != 0]
    return tuple(column[last] for column in (pages, seen_ms, *others))


def _ids_of(column: npt.NDArray[np.void]) -> _Ids:
    """Return ids of 8 or 16 bytes as numbers."""
    numbers = np.zeros((len(column), 2), np.uint64)
    each = np.ascontiguousarray(column).view("<u8").reshape(len(column), column.dtype.itemsize // 8)
    numbers[:, : each.shape[1]] = each
    return numbers


def _root_places(found: "_Found", ids: _Ids, roots: _Ids) -> Ints:
    """Return where the root of each node is among them, NO_NODE if it is not: int64 ``(n,)``."""
    places = np.arange(len(ids))
    are_leaves = (ids != roots).any(axis=1)
    places[are_leaves] = found.places(roots[are_leaves])
    return places


class _Found:
    """Finds nodes by their ids."""

    def __init__(self, ids: _Ids, rows: Ints) -> None:
        self.rows = rows
        self._order = np.lexsort((ids[:, 1], ids[:, 0]))
        self._ordered = ids[self._order]

    def places(self, sought: _Ids) -> Ints:
        """Return where each id is among them, NO_NODE for those that are not: int64 ``(n,)``."""
        places = np.full(len(sought), NO_NODE)
        at = np.searchsorted(self._ordered[:, 0], sought[:, 0])
        left = np.arange(len(sought))
        # Nearly always one step: ids whose first halves are equal follow each other.
        while len(left := left[at[left] < len(self._ordered)]):
            candidates = self._ordered[at[left]]
            is_found = (candidates == sought[left]).all(axis=1)
            places[left[is_found]] = self._order[at[left[is_found]]]
            left = left[~is_found & (candidates[:, 0] == sought[left, 0])]
            at[left] += 1
        return places

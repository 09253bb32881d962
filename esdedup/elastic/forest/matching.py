"""The nodes near a batch's arrivals, from the index and from memory."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.forest.stored import StoredNode, StoredPage, page_name, recreate_root, signatures_of
from esdedup.elastic.requests import Requests
from esdedup.forest.model import NO_NODE, Aging, Arrivals, Neighbours, Nodes, Pages
from esdedup.neighbours.relation import Relation


def find_neighbours(
    search: NodeSearch, arrivals: Arrivals, *, recent: NodeCache, live_since_ms: int, aging: Aging
) -> Requests[Neighbours]:
    """Find the live nodes near a batch's arrivals, and the remembered pages with their nodes; and all roots.

    Args:
        search: The forest's nodes and pages, as far as a refresh has shown them.
        arrivals: The batch.
        recent: Nodes and pages in memory, which may be newer than those that a search shows.
        live_since_ms: The `seen` from which on (inclusive) a node lives.
        aging: How long nodes live.
    """
    visible = NodeCache(search.relation)
    signatures = arrivals.signatures[arrivals.with_node]
    names = list(map(page_name, np.unique(arrivals.pages).tolist()))
    visible.put((yield from search.candidates_and_pages(signatures, names, live_since_ms=live_since_ms)))
    pages = _latest(names, (visible, recent), live_since_ms=live_since_ms)
    # The nodes of most pages are near them, and so among the candidates.
    of_pages = {page.node for page in pages if page.node is not None}
    far = {node_id for node_id in of_pages if not (visible.get(node_id) or recent.get(node_id))}
    visible.put((yield from search.by_id(far)))
    matched = MatchedNodes.of(arrivals, (visible, recent), pages=pages, live_since_ms=live_since_ms)
    missing = matched.missing_roots
    roots = {root: node for root in missing if (node := recent.get(root))}
    roots |= {node.id: node for node in (yield from search.by_id(missing - roots.keys()))}
    return matched.neighbours(roots, relation=search.relation, aging=aging)


def _latest(names: Sequence[str], caches: Sequence[NodeCache], *, live_since_ms: int) -> list[StoredPage]:
    """Return the pages of those names that are remembered, each as it was when it was seen last."""
    found = [[page for cache in caches if (page := cache.pages.get(name))] for name in names]
    latest = (max(pages, key=lambda page: page.seen_ms) for pages in found if pages)
    return [page for page in latest if page.seen_ms >= live_since_ms]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchedNodes:
    """Which live nodes match which arrivals, before all of their roots are known. Pure."""

    # Positions of arrivals, and ids of nodes near them; not all of these live.
    pairs: set[tuple[int, str]]
    # The live nodes, by id.
    live: dict[str, StoredNode]
    # For a representative of the batch and the id of a node indexed under it: when the node was made.
    postings: dict[tuple[int, str], int]
    # The remembered pages of the batch: with live nodes, or with none.
    pages: list[StoredPage]

    @classmethod
    def of(
        cls,
        arrivals: Arrivals,
        caches: Sequence[NodeCache],
        *,
        pages: Sequence[StoredPage] = (),
        live_since_ms: int,
    ) -> "MatchedNodes":
        """Match arrivals with cached nodes; if several caches have a node, the last cache wins."""
        positions = arrivals.with_node
        signatures = arrivals.signatures[positions]
        ids = [arrivals.ids[at] or "" for at in positions.tolist()]
        pairs: set[tuple[int, str]] = set()
        found: dict[str, StoredNode] = {}
        made_ms: dict[tuple[int, str], int] = {}
        for cache in caches:
            neighbours, postings = cache.search(signatures)
            # A node whose keys were all saturated is indexed under nothing and found by its id.
            neighbours += [(at, node) for at, node_id in enumerate(ids) if (node := cache.get(node_id))]
            remembering = [node for page in pages if page.node and (node := cache.get(page.node))]
            found |= {node.id: node for node in [*(node for _, node in neighbours), *remembering]}
            pairs.update((int(positions[at]), node.id) for at, node in neighbours)
            made_ms |= {(key, node.id): node.made_ms for key, node in postings}
        # Expired nodes must go: the root of one may have expired too, and be a leaf of another tree by now.
        live = {node_id: node for node_id, node in found.items() if node.seen_ms >= live_since_ms}
        # In a damaged forest the node of a page may be gone.
        remembered = [page for page in pages if page.node is None or page.node in live]
        return cls(pairs=pairs, live=live, postings=made_ms, pages=remembered)

    @property
    def missing_roots(self) -> set[str]:
        """The ids of roots that are not among the live nodes."""
        return {node.root for node in self.live.values()} - self.live.keys()

    def neighbours(self, roots: dict[str, StoredNode], *, relation: Relation, aging: Aging) -> Neighbours:
        """Return the matches as `Store.find_neighbours` does.

        Args:
            roots: Those of the missing roots that exist, by id.
            relation: The profile's.
            aging: How long nodes live.
        """
        nodes = self._with_roots(roots, relation)
        rows = {node_id: row for row, node_id in enumerate(nodes)}
        live_pairs = sorted((at, rows[node_id]) for at, node_id in self.pairs if node_id in self.live)
        pairs = np.array(live_pairs, np.int64).reshape(-1, 2)
        return Neighbours(
            arrivals=pairs[:, 0],
            rows=pairs[:, 1],
            nodes=_columns(nodes.values(), rows, relation),
            posting_keys=np.array([key for key, _ in self.postings], np.uint64),
            postings_seen_ms=aging.round_up(np.array(list(self.postings.values()), np.int64)),
            pages=Pages(
                ids=np.array([int(page.page, 16) for page in self.pages], np.uint64),
                rows=np.array(
                    [NO_NODE if page.node is None else rows[page.node] for page in self.pages], np.int64
                ),
                seen_ms=np.array(list(map(self._seen_ms, self.pages)), np.int64),
            ),
        )

    def _seen_ms(self, page: StoredPage) -> int:
        # In a damaged forest a page may have been seen later than its node.
        return page.seen_ms if page.node is None else min(page.seen_ms, self.live[page.node].seen_ms)

    def _with_roots(self, roots: dict[str, StoredNode], relation: Relation) -> dict[str, StoredNode]:
        """Return the live nodes and all their roots."""
        complete = dict(roots)
        for node in self.live.values():
            root = self.live.get(node.root) or complete.get(node.root)
            if root is None or not root.is_root:
                # Damaged: the root is missing, or is a leaf. It is recreated when its tree is written.
                complete[node.root] = recreate_root(node.root, root or node, relation)
        return self.live | complete


def _columns(nodes: Collection[StoredNode], rows: Mapping[str, int], relation: Relation) -> Nodes:
    def column(values: Iterable[int]) -> npt.NDArray[np.int64]:
        return np.fromiter(values, np.int64, count=len(nodes))

    return Nodes(
        ids=list(rows),
        signatures=signatures_of(nodes, relation),
        roots=column(rows[node.root] for node in nodes),
        seqs=column(node.seq for node in nodes),
        made_ms=column(node.made_ms for node in nodes),
        seen_ms=column(node.seen_ms for node in nodes),
        pages=np.array([int(node.page or "0", 16) for node in nodes], np.uint64),
        pages_seen_ms=column(node.page_seen_ms for node in nodes),
        # They are written by their ids.
        places=np.full(len(nodes), NO_NODE),
    )

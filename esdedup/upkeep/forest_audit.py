"""The laws of the forest, checked afterwards on its nodes, tree by tree."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator

from esdedup.elastic.forest_index import ForestIndex
from esdedup.elastic.node_cache import NodeCache
from esdedup.elastic.node_search import EVERY_NODE
from esdedup.elastic.nodes import StoredNode, chunks
from esdedup.forest.model import NO_TIME, Aging
from esdedup.forest.near import HammingIndex
from esdedup.simhash import from_hex
from esdedup.upkeep.breaches import Breach, BreachKind

# Whose neighbours are looked for at once.
_NODES_AT_ONCE = 5_000
# In one tree, where each may be near very many.
_LEAVES_AT_ONCE = 500


@dataclasses.dataclass(kw_only=True)
class Tree:
    """The nodes of one root: all of the same `root`, whether they live or not."""

    root: str
    # By seq.
    nodes: list[StoredNode]

    @property
    def root_node(self) -> StoredNode | None:
        """The root itself, None if it is gone."""
        return next((node for node in self.nodes if node.is_root), None)


class ForestAudit:
    """Goes through all nodes of a forest."""

    def __init__(
        self, index: ForestIndex, aging: Aging, *, on_nodes: Callable[[int], None] = lambda _: None
    ) -> None:
        """Prepare.

        Args:
            index: The forest's; read only.
            aging: How long nodes live: what has expired is excused.
            on_nodes: Told how many nodes more have been looked at.
        """
        self._index = index
        self._aging = aging
        self._on_nodes = on_nodes

    def breaches(self) -> Iterator[Breach]:
        """Yield every breach that the nodes show. A forest that is being written to may be looked at."""
        self._index.refresh()
        nodes = self._index.search.scan(EVERY_NODE, sort=["root", "seq"])
        first = list(itertools.islice(nodes, 1))
        # Read after the nodes are fixed: whatever lives at this time lived when they were made.
        self._live_since_ms = self._index.state().live_since_ms(self._aging)
        self._ordered_since = self._index.ordered_since()
        for trees in _batches(_trees(itertools.chain(first, nodes)), _NODES_AT_ONCE):
            members = [node for tree in trees for node in tree.nodes]
            yield from self._wrong_keys(members)
            for tree in trees:
                yield from self._of_tree(tree)
            yield from self._near_roots(trees)
            self._on_nodes(len(members))

    def _of_tree(self, tree: Tree) -> Iterator[Breach]:
        live = [node for node in tree.nodes if node.seen_ms >= self._live_since_ms]
        root = tree.root_node
        if not live:
            return
        seen_ms = max(node.seen_ms for node in live)
        if root is None:
            first = tree.nodes[0]
            yield Breach(
                kind=BreachKind.ROOT_GONE,
                subject=first.id,
                detail=f"there is no root {tree.root}, and it has {len(live)} live leaves",
                nodes=(first._replace(id=tree.root, seen_ms=seen_ms),),
            )
            return
        if root.seen_ms < seen_ms:
            yield Breach(
                kind=BreachKind.ROOT_SEEN_TOO_LOW,
                subject=root.id,
                detail=f"it is seen until {root.seen_ms}, a leaf until {seen_ms}",
                nodes=(root._replace(seen_ms=seen_ms),),
            )
        first = tree.nodes[0]
        if first.seq < root.seq:
            yield Breach(
                kind=BreachKind.LEAF_BEFORE_ROOT,
                subject=first.id,
                detail=f"it is arrival {first.seq}, its root {root.id} arrival {root.seq}",
                nodes=(root._replace(seq=first.seq, made_ms=min(first.made_ms, root.made_ms)),),
            )
        # Where something may have expired, what a leaf was near may be gone.
        if self._live_since_ms == NO_TIME:
            yield from self._nothing_near(tree)

    def _nothing_near(self, tree: Tree) -> Iterator[Breach]:
        leaves = [node for node in tree.nodes if not node.is_root and node.seq > self._ordered_since]
        if not leaves:
            return
        cache = self._cache(tree.nodes)
        for chunk in chunks(leaves, _LEAVES_AT_ONCE):
            positions, near = cache.near(from_hex(leaf.id for leaf in chunk))
            fine = {at for at, node in zip(positions.tolist(), near, strict=True) if node.seq < chunk[at].seq}
            for at in sorted(set(range(len(chunk))) - fine):
                yield Breach(
                    kind=BreachKind.NOTHING_NEAR,
                    subject=chunk[at].id,
                    detail=f"no earlier node of the tree of {tree.root} is near it",
                )

    def _near_roots(self, trees: list[Tree]) -> Iterator[Breach]:
        roots = [
            root
            for tree in trees
            if (root := tree.root_node)
            and root.seen_ms >= self._live_since_ms
            and root.seq > self._ordered_since
        ]
        if not roots:
            return
        fingerprints = from_hex(root.id for root in roots)
        cache = self._cache(self._index.search.candidates(fingerprints, live_since_ms=self._live_since_ms))
        positions, near = cache.near(fingerprints)
        earlier: dict[str, StoredNode] = {}
        for at, node in zip(positions.tolist(), near, strict=True):
            if node.root != roots[at].id and node.seq < roots[at].seq:
                found = earlier.setdefault(roots[at].id, node)
                if node.seq < found.seq:
                    earlier[roots[at].id] = node
        for later, node in earlier.items():
            yield Breach(
                kind=BreachKind.NEAR_ROOTS,
                subject=later,
                detail=f"{node.id}, of the tree of {node.root}, is near it and was there before",
                joins=node.root,
            )

    def _wrong_keys(self, nodes: list[StoredNode]) -> Iterator[Breach]:
        for node in self._index.search.with_wrong_keys(nodes):
            yield Breach(
                kind=BreachKind.WRONG_KEYS,
                subject=node.id,
                detail="no search would find it",
                nodes=(node,),
            )

    def _cache(self, nodes: Iterable[StoredNode]) -> NodeCache:
        cache = NodeCache(lambda: HammingIndex(max_distance_bits=self._index.meta.max_distance_bits))
        cache.put(nodes)
        return cache


def _trees(nodes: Iterable[StoredNode]) -> Iterator[Tree]:
    """Group nodes that come sorted by root, then by seq."""
    for root, members in itertools.groupby(nodes, key=lambda node: node.root):
        yield Tree(root=root, nodes=list(members))


def _batches(trees: Iterable[Tree], size: int) -> Iterator[list[Tree]]:
    """Put trees together until they have `size` nodes at least."""
    batch: list[Tree] = []
    count = 0
    for tree in trees:
        batch.append(tree)
        count += len(tree.nodes)
        if count >= size:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch

"""Checks the nodes of a forest against its laws, one tree at a time."""

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, itemgetter

from esdedup.elastic.forest.batch import read_batch
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedLog, read_learned
from esdedup.elastic.forest.search import NodeCache
from esdedup.elastic.forest.status import read_ordered_since
from esdedup.elastic.forest.stored import Hit, Stored, StoredNode, genuine, recreate_root, signatures_of
from esdedup.elastic.requests import chunks
from esdedup.errors import ForestDamaged, ServerBusy
from esdedup.forest.model import NO_TIME, Aging
from esdedup.maintenance.violations import Remedy, Violation, ViolationKind, repairable

# The minimum number of nodes in a batch. The neighbours of a batch are searched for together.
AUDIT_BATCH = 5_000
# Maximum number of leaves that are compared together, since each may have very many neighbours.
_LEAVES_AT_ONCE = 500
# The maximum number of snapshots that are taken because a batch began meanwhile.
_SNAPSHOTS = 100


@dataclasses.dataclass(kw_only=True)
class Tree:
    """All nodes with the same root, which may itself be missing."""

    root: str
    # Sorted by seq.
    nodes: list[StoredNode]

    @property
    def root_node(self) -> StoredNode | None:
        """The root's own node, None if it is missing."""
        return next((node for node in self.nodes if node.is_root), None)

    @property
    def seen_ms(self) -> int:
        """The latest `seen` of its nodes."""
        return max(node.seen_ms for node in self.nodes)

    def living(self, live_since_ms: int) -> "Tree":
        """Return the tree without its expired nodes."""
        return Tree(root=self.root, nodes=[node for node in self.nodes if node.seen_ms >= live_since_ms])


@dataclasses.dataclass
class ForestAudit:
    """Checks all nodes of one forest."""

    _index: ForestIndex
    _aging: Aging
    _: dataclasses.KW_ONLY
    on_nodes: Callable[[int], None]

    def violations(self) -> Iterator[Violation]:
        """Yield every violation that can be found without articles. The forest may be in use."""
        nodes = self._snapshot()
        # Read the status after the snapshot of nodes: a node that is live now was live in the snapshot.
        self._live_since_ms = self._index.status().live_since_ms(self._aging)
        self._ordered_since = self._index.run(read_ordered_since(self._index.name))
        by_root = itertools.groupby(nodes, key=lambda node: node.root)
        every_tree = (Tree(root=root, nodes=list(own)) for root, own in by_root)
        for trees in _batches(every_tree, AUDIT_BATCH):
            batch = [node for tree in trees for node in tree.nodes]
            yield from map(_unfindable, self._index.run(self._index.nodes.unfindable(batch)))
            live = [each for tree in trees if (each := tree.living(self._live_since_ms)).nodes]
            yield from self._without_root([tree for tree in live if tree.root_node is None])
            for tree in live:
                yield from self._of_tree(tree)
            yield from self._near_roots(live)
            self.on_nodes(len(batch))
        yield from map(_unfindable, self._misplaced)
        yield from self._stray_hashes()
        yield from self._damaged_learning()
        for hit in self._damaged:
            detail = "it is missing or unreadable; a repair drops it and restores it from articles"
            yield repairable(ViolationKind.DAMAGED_NODE, hit["_id"], detail, Remedy())

    def _snapshot(self) -> Iterator[StoredNode]:
        """Return the nodes by root, then by seq, at one point in time.

        Shards are refreshed one after the other. If the last batch is the same before and after the snapshot
        was taken, the snapshot can lack parts of this batch only; these are added.
        """
        index = self._index
        for _ in range(_SNAPSHOTS):
            batch, is_fresh = self._last_batch(), index.refresh_if_allowed()
            if index.log is not None:
                index.run(index.log.update())
            self._damaged: list[Hit] = []
            self._misplaced: list[StoredNode] = []
            nodes = index.nodes.by_tree(damaged=self._damaged, misplaced=self._misplaced)
            first = list(itertools.islice(nodes, 1))
            if not is_fresh or self._last_batch() == batch:
                break
        else:
            raise ServerBusy(f"the forest {index.name!r} is written to too fast: verify it later")
        added = {each.id: each for each in batch if is_fresh and isinstance(each, StoredNode)}
        others = (node for node in itertools.chain(first, nodes) if node.id not in added)
        by_tree = attrgetter("root", "seq")
        return heapq.merge(others, sorted(added.values(), key=by_tree), key=by_tree)

    def _last_batch(self) -> list[Stored]:
        index = self._index
        return index.run(read_batch(index.name, index.meta)).stored(index.relation)

    def _without_root(self, trees: list[Tree]) -> Iterator[Violation]:
        # The root may be a leaf of another tree.
        roots = self._index.run(self._index.nodes.by_id(tree.root for tree in trees))
        found = {node.id: node for node in roots}
        for tree in trees:
            first = tree.nodes[0]
            root = found.get(tree.root)
            if root is not None and not root.is_root:
                right = root._replace(root=root.id, seen_ms=max(root.seen_ms, tree.seen_ms))
                detail = f"it is a leaf of {root.root}, and has {len(tree.nodes)} live leaves"
                yield repairable(ViolationKind.ROOT_IS_LEAF, root.id, detail, Remedy(stored=(right,)))
            elif root is None:
                right = recreate_root(tree.root, first, self._index.relation)._replace(seen_ms=tree.seen_ms)
                detail = f"its root {tree.root} is missing, and has {len(tree.nodes)} live leaves"
                yield repairable(ViolationKind.ROOT_GONE, first.id, detail, Remedy(stored=(right,)))

    def _of_tree(self, tree: Tree) -> Iterator[Violation]:
        root = tree.root_node
        if root is None:
            return
        first, repaired = tree.nodes[0], root
        if root.seen_ms < tree.seen_ms:
            repaired = repaired._replace(seen_ms=tree.seen_ms)
            detail = f"its `seen` is {root.seen_ms}, but a leaf has {tree.seen_ms}"
            yield repairable(ViolationKind.ROOT_SEEN_TOO_LOW, root.id, detail, Remedy(stored=(repaired,)))
        if first.seq < root.seq:
            repaired = repaired._replace(seq=first.seq, made_ms=min(first.made_ms, root.made_ms))
            detail = f"it is arrival {first.seq}, but its root {root.id} is arrival {root.seq}"
            yield repairable(ViolationKind.LEAF_BEFORE_ROOT, first.id, detail, Remedy(stored=(repaired,)))
        # Check this only while no node can have expired; later, a leaf's neighbour may have been deleted.
        if self._live_since_ms == NO_TIME:
            yield from self._nothing_near(tree)

    def _nothing_near(self, tree: Tree) -> Iterator[Violation]:
        leaves = [node for node in tree.nodes if not node.is_root and node.seq > self._ordered_since]
        relation = self._index.relation
        # A recreated root has lost its signature; its neighbours cannot be checked.
        root = genuine([node for node in tree.nodes if node.is_root], relation)
        if not leaves or not root:
            return
        cache = NodeCache(tree.nodes, relation)
        for chunk in chunks(leaves, _LEAVES_AT_ONCE):
            found = cache.find_pairs(signatures_of(chunk, relation))
            # A recreated root has the seq of its first leaf.
            near = [(chunk[at], node) for at, node in found if node.seq < chunk[at].seq + node.is_root]
            with_neighbour = {leaf.id for leaf, _ in near}
            # If the neighbour of a leaf is missing, assume the best: a neighbour equal to the leaf.
            pairs = near + [(leaf, leaf) for leaf in chunk if leaf.id not in with_neighbour]
            texts, members = (signatures_of(each, relation) for each in zip(*pairs, strict=True))
            ways, _ = relation.joining(texts, members, signatures_of(root * len(pairs), relation))
            may_join = {leaf.id for (leaf, _), way in zip(pairs, ways, strict=True) if way}
            for leaf in chunk:
                if leaf.id not in may_join:
                    detail = f"its text does not resemble the text of its root {tree.root} enough"
                    yield Violation(kind=ViolationKind.UNLIKE_ROOT, subject=leaf.id, detail=detail)
                if leaf.id not in with_neighbour:
                    detail = f"no earlier node of the tree of {tree.root} is its neighbour"
                    yield Violation(kind=ViolationKind.NOTHING_NEAR, subject=leaf.id, detail=detail)

    def _near_roots(self, trees: list[Tree]) -> Iterator[Violation]:
        relation = self._index.relation
        roots = genuine([root for tree in trees if (root := tree.root_node)], relation)
        if not roots:
            return
        signatures = signatures_of(roots, relation)
        near_them = self._index.nodes.candidates(signatures, live_since_ms=self._live_since_ms)
        candidates = [each for each in self._index.run(near_them) if isinstance(each, StoredNode)]
        cache = NodeCache(genuine(candidates, relation), relation)
        near = [(roots[at], node) for at, node in cache.find_pairs(signatures)]
        # For each root: its oldest neighbour in the tree that it resembles most, preceded by the sort key.
        earlier: dict[str, tuple[float, int, StoredNode]] = {}
        for root, node, resemblance in self._joinable(near):
            # Two roots must never be neighbours. A leaf may be a neighbour of a root that it did not join,
            # and the order of rebuilt nodes is unknown.
            is_ordered = root.seq > self._ordered_since or node.is_root
            if node.root != root.id and node.seq < root.seq and is_ordered:
                found = -resemblance, node.seq, node
                earlier[root.id] = min(earlier.get(root.id, found), found, key=itemgetter(0, 1))
        for later, (_, _, node) in earlier.items():
            detail = f"its neighbour {node.id}, in the tree of {node.root}, is older"
            yield repairable(ViolationKind.NEAR_ROOTS, later, detail, Remedy(joins=node.root))

    def _joinable(
        self, near: list[tuple[StoredNode, StoredNode]]
    ) -> Iterator[tuple[StoredNode, StoredNode, float]]:
        """Yield each text with a neighbour whose tree it may join, and its resemblance to the tree's root."""
        roots = {node.id: node for _, node in near if node.is_root}
        missing = {node.root for _, node in near} - roots.keys()
        others, relation = self._index.run(self._index.nodes.by_id(missing)), self._index.relation
        roots |= {node.id: node for node in genuine(others, relation)}
        pairs = [(text, node) for text, node in near if node.root in roots]
        texts = signatures_of((text for text, _ in pairs), relation)
        members = signatures_of((node for _, node in pairs), relation)
        their_roots = signatures_of((roots[node.root] for _, node in pairs), relation)
        for pair, way, resemblance in zip(pairs, *relation.joining(texts, members, their_roots), strict=True):
            # Whether a text may join as a version depends on other nodes, which may have expired.
            if way in {"root", "member"}:
                yield *pair, float(resemblance)

    def _stray_hashes(self) -> Iterator[Violation]:
        """Yield the documents of content hashes that refer to a missing node, or are damaged."""
        index = self._index
        for extra in index.nodes.extra_hashes():
            named = {each.node for _, each in extra if each and each.node}
            gone = named - {node.id for node in index.run(index.nodes.by_id(named))}
            if gone and index.meta.shards > 1:
                # Another shard may have been refreshed too early to show a hash's node.
                batch, _ = self._last_batch(), index.refresh_if_allowed()
                gone -= {each.document_id for each in (*batch, *index.run(index.nodes.by_id(gone)))}
            # Read the status after the nodes: if a content hash is live now, its node was live when read.
            live_since_ms = index.status().live_since_ms(self._aging)
            for hit, each in extra:
                if each is None or (each.node in gone and each.seen_ms >= live_since_ms):
                    flaw = "its document is damaged" if each is None else f"its node {each.node} is missing"
                    detail = f"{flaw}; a repair drops it and restores it from articles"
                    yield repairable(ViolationKind.STRAY_PAGE, hit["_id"], detail, Remedy(damaged=hit))

    def _damaged_learning(self) -> Iterator[Violation]:
        try:
            LearnedLog(self._index.name, self._index.run(read_learned(self._index.name)))
        except ForestDamaged as error:
            detail = (
                f"it is {error.flaw}; a repair drops learned boilerplate; stored articles keep their roots"
            )
            yield repairable(ViolationKind.LEARNED_DAMAGED, error.document, detail, Remedy())


def _unfindable(node: StoredNode) -> Violation:
    detail = "its neighbours would not find it, or its tree would be counted wrongly"
    return repairable(ViolationKind.UNFINDABLE, node.id, detail, Remedy(stored=(node,)))


def _batches(trees: Iterable[Tree], size: int) -> Iterator[list[Tree]]:
    """Group trees so that each group except the last one has at least `size` nodes."""
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

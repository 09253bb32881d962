"""The nodes near a batch's arrivals, from those at hand. Pure."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from esdedup.elastic.forest.documents import StoredNode, root_again, signatures_of
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.forest.model import Aging, Arrivals, Neighbours, Nodes
from esdedup.neighbours.relation import Relation


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchedNodes:
    """Who is near whom, before their roots are at hand."""

    # Positions of arrivals, and ids of nodes near them.
    pairs: set[tuple[int, str]]
    # The live ones, by id.
    found: dict[str, StoredNode]
    # For a representative of the batch, and the id of a node indexed under it: when that was made.
    posting_keys: dict[tuple[int, str], int]

    @classmethod
    def of(cls, arrivals: Arrivals, caches: Sequence[NodeCache], *, live_since_ms: int) -> "MatchedNodes":
        """Find them among nodes at hand; where several caches have a node, the last is right."""
        positions = arrivals.with_node
        signatures = arrivals.signatures[positions]
        ids = [arrivals.ids[at] or "" for at in positions.tolist()]
        pairs: set[tuple[int, str]] = set()
        found: dict[str, StoredNode] = {}
        posting_keys: dict[tuple[int, str], int] = {}
        for known in caches:
            met, postings = known.search(signatures)
            # A node may be indexed under nothing, since saturated_keys carry all that represents it.
            met += [(at, node) for at, each in enumerate(ids) if (node := known.get(each))]
            found |= {node.id: node for _, node in met}
            pairs.update((int(positions[at]), node.id) for at, node in met)
            posting_keys |= {(value, node.id): node.made_ms for value, node in postings}
        # The root of one that has expired may have started anew, in another tree.
        found = {node_id: node for node_id, node in found.items() if node.seen_ms >= live_since_ms}
        return cls(pairs=pairs, found=found, posting_keys=posting_keys)

    @property
    def missing_roots(self) -> set[str]:
        """The ids of roots that are not among the nodes found."""
        return {node.root for node in self.found.values()} - self.found.keys()

    def with_roots(self, roots: dict[str, StoredNode], relation: Relation) -> dict[str, StoredNode]:
        """Return the nodes found, and their roots, of which `roots` are at hand."""
        roots = dict(roots)
        for node in self.found.values():
            root = self.found.get(node.root) or roots.get(node.root)
            if root is None or not root.is_root:
                # Damaged: the root is gone, or another's leaf. It is made again when its tree is touched.
                roots[node.root] = root_again(node.root, root or node, relation)
        return self.found | roots

    def near(self, nodes: dict[str, StoredNode], *, relation: Relation, aging: Aging) -> Neighbours:
        """Return what a store answers, with the nodes that `with_roots` returned."""
        rows = {node_id: row for row, node_id in enumerate(nodes)}
        pairs = sorted((at, rows[node_id]) for at, node_id in self.pairs if node_id in self.found)
        near = np.array(pairs, np.int64).reshape(-1, 2)
        return Neighbours(
            arrivals=near[:, 0],
            rows=near[:, 1],
            nodes=Nodes(
                ids=list(rows),
                signatures=signatures_of(nodes.values(), relation),
                roots=np.array([rows[node.root] for node in nodes.values()], np.int64),
                seqs=np.array([node.seq for node in nodes.values()], np.int64),
                made_ms=np.array([node.made_ms for node in nodes.values()], np.int64),
                seen_ms=np.array([node.seen_ms for node in nodes.values()], np.int64),
            ),
            posting_keys=np.array([value for value, _ in self.posting_keys], np.uint64),
            postings_seen_ms=aging.round_up(np.array(list(self.posting_keys.values()), np.int64)),
        )

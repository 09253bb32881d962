"""Nodes in memory: a whole forest for files and tests, and what Elasticsearch cannot show yet."""

import numpy as np
import numpy.typing as npt

from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import Aging, Arrivals, Near, Node, Plan, State
from esdedup.forest.near import HammingIndex
from esdedup.simhash import from_hex


class Nodes:
    """Nodes by id and by nearness. An id is 16 hex digits: the node's fingerprint."""

    def __init__(self, *, max_distance_bits: int = 3) -> None:
        self._index = HammingIndex(max_distance_bits=max_distance_bits)
        # By row of the index.
        self._ids: list[str] = []
        self._nodes: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, node_id: str) -> Node | None:
        """Return the node, None if there is none."""
        return self._nodes.get(node_id)

    def near(self, fingerprints: npt.NDArray[np.uint64]) -> list[tuple[int, str]]:
        """Return all pairs of a position in `fingerprints` and the id of a node near it."""
        queries, rows = self._index.search(fingerprints)
        return [(query, self._ids[row]) for query, row in zip(queries.tolist(), rows.tolist(), strict=True)]

    def put(self, nodes: list[Node]) -> None:
        """Add nodes, or replace those of the same id."""
        new = [node.id for node in nodes if node.id not in self._nodes]
        self._index.add(from_hex(new))
        self._ids += new
        self._nodes.update((node.id, node) for node in nodes)


class MemoryStore:
    """Keeps a forest in the process, and nothing of it after it."""

    def __init__(self, *, max_distance_bits: int = 3) -> None:
        self._nodes = Nodes(max_distance_bits=max_distance_bits)
        self._leaves: dict[str, dict[str, Node]] = {}
        self._state = State()

    def __len__(self) -> int:
        return len(self._nodes)

    def state(self) -> State:
        """Return the state of the last plan."""
        return self._state

    def find_near(self, arrivals: Arrivals, *, aging: Aging, state: State) -> Near:  # noqa: ARG002
        """Find the nodes near the arrivals, with their roots."""
        positions = arrivals.with_node
        pairs = self._nodes.near(arrivals.fingerprints[positions])
        nodes = {node_id: self._known(node_id) for _, node_id in pairs}
        nodes |= {node.root: self._known(node.root) for node in nodes.values()}
        return Near(
            arrivals=positions[[query for query, _ in pairs]],
            node_ids=[node_id for _, node_id in pairs],
            nodes=nodes,
        )

    def count_leaves(
        self,
        roots: set[str],
        *,
        aging: Aging,
        state: State,
        end_ms: int,  # noqa: ARG002
    ) -> LeafCounts:
        """Count the live leaves of each of `roots`, by their `seen`."""
        counts: dict[str, dict[int, int]] = {root: {} for root in roots}
        for root in roots:
            for leaf in self._leaves.get(root, {}).values():
                if aging.is_live(leaf.seen_ms, at_ms=state.time_ms, origin_ms=state.origin_ms):
                    counts[root][leaf.seen_ms] = counts[root].get(leaf.seen_ms, 0) + 1
        return counts

    def commit(self, plan: Plan) -> None:
        """Keep the plan."""
        self._state = plan.state
        nodes = [*plan.roots, *plan.leaves]
        for node in nodes:
            before = self._nodes.get(node.id)
            if before is not None and not before.is_root:
                del self._leaves[before.root][before.id]
            if not node.is_root:
                self._leaves.setdefault(node.root, {})[node.id] = node
        self._nodes.put(nodes)

    def _known(self, node_id: str) -> Node:
        node = self._nodes.get(node_id)
        assert node is not None, node_id
        return node

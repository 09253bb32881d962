"""The forest in memory: for files, for tests, and for what Elasticsearch cannot show yet."""

from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import Aging, Arrivals, Near, Node, Plan, State
from esdedup.forest.near import HammingIndex
from esdedup.simhash import from_hex


class MemoryStore:
    """Keeps nodes in the process, and nothing of them after it."""

    def __init__(self, *, max_distance_bits: int = 3) -> None:
        self._index = HammingIndex(max_distance_bits=max_distance_bits)
        # By row of the index: the node that was added there; a later row of the same id replaces it.
        self._ids: list[str] = []
        self._nodes: dict[str, Node] = {}
        self._leaves: dict[str, set[str]] = {}
        self._state = State()

    def __len__(self) -> int:
        return len(self._nodes)

    def state(self) -> State:
        """Return the state of the last plan."""
        return self._state

    def find_near(self, arrivals: Arrivals, *, aging: Aging, state: State) -> Near:  # noqa: ARG002
        """Find all nodes near the arrivals, with their roots."""
        positions = arrivals.with_node
        queries, rows = self._index.search(arrivals.fingerprints[positions])
        node_ids = [self._ids[row] for row in rows.tolist()]
        nodes = {node_id: self._nodes[node_id] for node_id in node_ids}
        nodes |= {node.root: self._nodes[node.root] for node in nodes.values()}
        return Near(arrivals=positions[queries], node_ids=node_ids, nodes=nodes)

    def count_leaves(self, roots: set[str], *, aging: Aging, state: State, end_ms: int) -> LeafCounts:  # noqa: ARG002
        """Count the live leaves of each of `roots`, by their `seen`."""
        counts: dict[str, dict[int, int]] = {root: {} for root in roots}
        for root in roots:
            for leaf_id in self._leaves.get(root, ()):
                seen_ms = self._nodes[leaf_id].seen_ms
                if aging.is_live(seen_ms, at_ms=state.time_ms, origin_ms=state.origin_ms):
                    counts[root][seen_ms] = counts[root].get(seen_ms, 0) + 1
        return counts

    def commit(self, plan: Plan) -> None:
        """Keep the plan."""
        self._state = plan.state
        self.put([*plan.roots, *plan.leaves])

    def put(self, nodes: list[Node]) -> None:
        """Add nodes, or replace those of the same id."""
        new = [node.id for node in nodes if node.id not in self._nodes]
        self._index.add(from_hex(new))
        self._ids += new
        for node in nodes:
            before = self._nodes.get(node.id)
            if before is not None and not before.is_root:
                self._leaves[before.root].discard(node.id)
            if not node.is_root:
                self._leaves.setdefault(node.root, set()).add(node.id)
            self._nodes[node.id] = node

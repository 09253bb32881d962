"""Operations that read nodes from a forest's index, by key, id or root. Results are complete unless noted."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from esdedup.elastic.forest.candidates import CandidateSearch
from esdedup.elastic.forest.stored import (
    Hit,
    Stored,
    StoredHash,
    StoredNode,
    agrees,
    columns_of,
    interleaved,
    is_node_id,
    keys_of,
    live_filter,
    live_leaves,
    nodes_of,
    packed_of,
    search_body,
    stored_in,
    stored_of,
    unpacked,
)
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.elastic.pages import Hits, all_hits
from esdedup.elastic.requests import Query, Requests, aggregate, chunks, count, search
from esdedup.fingerprint.bands import Layout
from esdedup.forest.model import NO_TIME
from esdedup.neighbours.relation import NeighbourIndex, Relation


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeCounts:
    """Numbers of nodes in a forest, by kind."""

    # All nodes, live or expired.
    nodes: int
    # Nodes that are roots.
    trees: int
    # Nodes that have not expired.
    live: int
    # Nodes made since `new_since_ms`.
    new: int
    # Nodes made, or last seen, on each UTC day. A key is the day's beginning, milliseconds since 1970.
    made_by_day: Mapping[int, int]
    seen_by_day: Mapping[int, int]


Scan = Callable[..., Iterator[Hits]]
"""A function that yields the hits of a query in pages, as `ForestIndex.hit_pages` does."""

EVERY_NODE: Query = {"exists": {"field": "root"}}
"""Matches all nodes, live or expired."""

_WITH_KEYS: Query = {"exists": {"field": "keys"}}

ROOTLESS: Query = {"bool": {"filter": _WITH_KEYS, "must_not": EVERY_NODE}}
"""Matches damaged nodes. Other documents of the forest, such as the lease, have no keys."""

EVERY_HASH: Query = {"bool": {"filter": {"exists": {"field": "page"}}, "must_not": [EVERY_NODE, _WITH_KEYS]}}
"""Matches the documents of content hashes, live or expired."""

# The maximum number of trees in one response, below MAX_BUCKETS.
_TREES_AT_ONCE = 10_000


class NodeSearch:
    """Reads the nodes of one forest, as of the last refresh of its index."""

    def __init__(
        self,
        *,
        forest: str,
        relation: Relation,
        layout: Layout,
        limits: Limits = DEFAULT_LIMITS,
        scan: Scan | None = None,
    ) -> None:
        """Search in a forest's index. The methods that return iterators need `scan`."""
        self.forest = forest
        self.relation = relation
        self._layout = layout
        self._limits = limits
        self._scan = scan
        self._candidates = CandidateSearch(forest=forest, relation=relation, layout=layout, limits=limits)

    def candidates(
        self, signatures: npt.NDArray[Any], *, hashes: Sequence[str] = (), live_since_ms: int
    ) -> Requests[list[Stored]]:
        """Find live nodes that may be near one of `signatures` or have its node id. Nodes may be repeated.

        Also find live nodes made from one of `hashes` (16 hex digits each), and live documents of `hashes`.
        The content hash of a live node may have expired.
        """
        found = yield from self.packed_candidates(signatures, hashes=hashes, live_since_ms=live_since_ms)
        return unpacked(found, self.relation)

    def packed_candidates(
        self, signatures: npt.NDArray[Any], *, hashes: Sequence[str] = (), live_since_ms: int
    ) -> Requests[list[bytes]]:
        """Find the same as `candidates`, in packed form."""
        return self._candidates.find(signatures, hashes=hashes, live_since_ms=live_since_ms)

    def by_id(self, node_ids: Iterable[str]) -> Requests[list[StoredNode]]:
        """Read the existing nodes with these ids."""
        found: list[StoredNode] = []
        # Damaged articles may name invalid ids; Elasticsearch refuses to search for an empty id.
        for ids in chunks(sorted(filter(is_node_id, node_ids)), self._limits.max_hits):
            found += yield from self._first({"ids": {"values": ids}})
        return found

    def documents(self, ids: Iterable[str]) -> Requests[list[bytes]]:
        """Read the packed nodes and content hashes in the documents with these ids, if they exist."""
        found: list[bytes] = []
        for some in chunks(sorted(ids), self._limits.max_hits):
            body = search_body({"ids": {"values": some}}, size=self._limits.max_hits)
            (answer,) = yield from search(self.forest, body)
            found += packed_of(answer["hits"]["hits"])
        return found

    def hashes(self, hashes: Iterable[str]) -> Requests[dict[str, StoredHash]]:
        """Read a record of each known hash of `hashes`, by hash; of two, the one with the later `seen`."""
        latest: dict[str, StoredHash] = {}
        for some in chunks(sorted(hashes), self._limits.max_terms):
            body = search_body({"terms": {"page": some}}, size=self._limits.max_hits)
            for each in stored_of((yield from all_hits(self.forest, body)), self.relation):
                last = each if isinstance(each, StoredHash) else each.own_hash
                before = last and latest.get(last.content_hash)
                if last and (not before or before.seen_ms <= last.seen_ms):
                    latest[last.content_hash] = last
        return latest

    def roots_with_leaves(self, roots: Iterable[str]) -> Requests[set[str]]:
        """Return those of `roots` that have a leaf, live or expired."""
        found: set[str] = set()
        for some in chunks(sorted(roots), self._limits.max_terms):
            by_root = {"roots": {"terms": {"field": "root", "size": len(some)}}}
            answer = yield from aggregate(self.forest, live_leaves(some, NO_TIME), by_root)
            found.update(bucket["key"] for bucket in answer["roots"]["buckets"])
        return found

    def unfindable(self, stored: Sequence[StoredNode]) -> Requests[list[StoredNode]]:
        """Return the nodes that lack a key of their signature, or are wrongly marked as leaf or root."""
        wrong: list[StoredNode] = []
        keys = keys_of(stored, self.relation, self._layout)
        # Skip nodes that are not indexed under any key.
        indexed = [(node, own) for node, own in zip(stored, keys, strict=True) if own]
        # Keys are checked per group, so a swap of keys between adjacent nodes would pass; interleave nodes.
        for group in interleaved(indexed, self._limits.checked_nodes):
            correct = {node.id for node in (yield from self._first(_correct_nodes(group)))}
            wrong += [node for node, _ in group if node.id not in correct]
        # Some nodes may have been deleted or written since they were read.
        unchanged = set((yield from self.by_id(node.id for node in wrong)))
        return [node for node in wrong if node in unchanged]

    def random_nodes(self, size: int) -> Requests[list[StoredNode]]:
        """Return randomly chosen nodes, at most 10,000."""
        at_random = {"function_score": {"query": EVERY_NODE, "random_score": {"seed": 0, "field": "seq"}}}
        return (yield from self._first(at_random, sort="_score"))[:size]

    def tree(self, root: str) -> Requests[list[StoredNode]]:
        """Return the nodes of the tree with this root, live or expired."""
        body = search_body({"term": {"root": root}}, size=self._limits.max_hits)
        return nodes_of((yield from all_hits(self.forest, body)), self.relation)

    def some_leaves(self, root: str, live_since_ms: int) -> Requests[list[StoredNode]]:
        """Return the live leaves of a root, at most 10,000 of them."""
        return self._first(live_leaves([root], live_since_ms))

    def leaves(self, roots: Iterable[str], live_since_ms: int) -> Requests[list[StoredNode]]:
        """Return the live leaves of these roots."""
        found: list[StoredNode] = []
        for some in chunks(sorted(roots), self._limits.max_terms):
            body = search_body(live_leaves(some, live_since_ms), size=self._limits.max_hits)
            found += nodes_of((yield from all_hits(self.forest, body)), self.relation)
        return found

    def count_leaves(self, root: str, live_since_ms: int) -> Requests[int]:
        """Count the live leaves of a root."""
        return self.count(live_leaves([root], live_since_ms))

    def leaves_by_root(self, live_since_ms: int = NO_TIME) -> Requests[dict[str, int]]:
        """Count the leaves last seen at `live_since_ms` or later, by root, omitting roots that have none."""
        found: dict[str, int] = {}
        after: dict[str, Any] = {}
        query = {"bool": {"filter": [{"term": {"leaf": True}}, *live_filter(live_since_ms)]}}
        while True:
            composite = {"size": _TREES_AT_ONCE, "sources": [{"root": {"terms": {"field": "root"}}}], **after}
            answer = yield from aggregate(self.forest, query, {"roots": {"composite": composite}})
            buckets = answer["roots"]["buckets"]
            found |= {bucket["key"]["root"]: bucket["doc_count"] for bucket in buckets}
            if len(buckets) < _TREES_AT_ONCE:
                return found
            after = {"after": answer["roots"]["after_key"]}

    def count_nodes(self) -> Requests[int]:
        """Count all nodes, live or expired."""
        return self.count(EVERY_NODE)

    def counts(self, *, new_since_ms: int, live_since_ms: int) -> Requests[NodeCounts]:
        """Count the nodes of each kind.

        Args:
            new_since_ms: The earliest time at which a new node was made; with NO_TIME, all nodes are new.
            live_since_ms: The minimum `seen` of a live node.
        """
        by_day: Query = {"calendar_interval": "day", "min_doc_count": 1}
        aggregations = {
            "trees": {"filter": {"term": {"leaf": False}}},
            "live": {"filter": _since("seen", live_since_ms)},
            "new": {"filter": _since("made", new_since_ms)},
            **{field: {"date_histogram": {"field": field, **by_day}} for field in ("made", "seen")},
        }
        answer = yield from aggregate(self.forest, EVERY_NODE, aggregations)
        made, seen = (
            {bucket["key"]: bucket["doc_count"] for bucket in answer[field]["buckets"]}
            for field in ("made", "seen")
        )
        return NodeCounts(
            nodes=(yield from self.count_nodes()),
            **{kind: answer[kind]["doc_count"] for kind in ("trees", "live", "new")},
            made_by_day=made,
            seen_by_day=seen,
        )

    def count(self, query: Query) -> Requests[int]:
        """Count the documents that match."""
        return count(self.forest, query)

    def by_tree(self, *, damaged: list[Hit], misplaced: list[StoredNode]) -> Iterator[StoredNode]:
        """Yield all nodes by root, then by seq.

        Args:
            damaged: Collects the hits of unreadable nodes.
            misplaced: Collects nodes whose other fields differ from their packed form; they are not yielded.
        """
        for query in (ROOTLESS, EVERY_NODE):
            pages = self._scanned(query, sort=["root", "seq"], versions=True, repeated=True)
            for hit in itertools.chain.from_iterable(pages):
                node = stored_in(hit, self.relation)
                if not isinstance(node, StoredNode):
                    damaged.append(hit)
                elif agrees(hit, node):
                    yield node
                else:
                    misplaced.append(node)

    def extra_hashes(self) -> Iterator[list[tuple[Hit, StoredHash | None]]]:
        """Yield lists of the documents of content hashes, each with its record, or None if it is damaged."""
        for hits in self._scanned(EVERY_HASH, sort=["page"], versions=True, repeated=True):
            found = (stored_in(hit, self.relation) for hit in hits)
            yield [
                (hit, each if isinstance(each, StoredHash) and agrees(hit, each) else None)
                for hit, each in zip(hits, found, strict=True)
            ]

    def later_than(self, *, made_ms: int, seen_ms: int) -> Iterator[list[Stored]]:
        """Yield lists of the nodes made after `made_ms`, and of nodes and hashes seen after `seen_ms`."""
        times = (("made", made_ms), ("seen", seen_ms))
        later = [{"range": {name: {"gt": time_ms, "format": "epoch_millis"}}} for name, time_ms in times]
        for hits in self._scanned({"bool": {"should": later}}, sort=["seq", "page"]):
            yield stored_of(hits, self.relation)

    def all(self) -> Iterator[Stored]:
        """Yield all readable nodes and content hashes."""
        for hits in self._scanned({"bool": {"should": [EVERY_NODE, ROOTLESS, EVERY_HASH]}}, versions=True):
            yield from stored_of(hits, self.relation)

    def _scanned(self, query: Query, **how: Any) -> Iterator[Hits]:
        assert self._scan is not None
        return self._scan(query, **how)

    def _first(self, query: Query, *, sort: str = "_doc") -> Requests[list[StoredNode]]:
        body = search_body(query, sort=[sort], size=self._limits.max_hits)
        (answer,) = yield from search(self.forest, body)
        return nodes_of(answer["hits"]["hits"], self.relation)


def _correct_nodes(group: Sequence[tuple[StoredNode, list[str]]]) -> Query:
    """Return a query for those nodes of a group that are marked correctly and have the group's keys."""
    marked: list[Query] = []
    for is_leaf in (True, False):
        ids = [node.id for node, _ in group if node.is_root is not is_leaf]
        marked.append({"bool": {"filter": [{"ids": {"values": ids}}, {"term": {"leaf": is_leaf}}]}})
    keyed: list[Query] = [{"terms": {"keys": column}} for column in columns_of([own for _, own in group])]
    return {"bool": {"filter": [{"bool": {"should": marked}}, *keyed]}}


def _since(field: str, time_ms: int) -> Query:
    return {"match_all": {}} if time_ms == NO_TIME else {"range": {field: {"gte": time_ms}}}


class NodeCache:
    """Holds a few thousand nodes, and finds near nodes among them."""

    def __init__(self, nodes: Iterable[Stored], relation: Relation) -> None:
        """Hold each node once, and skip content hashes."""
        self._nodes = list({node.id: node for node in nodes if isinstance(node, StoredNode)}.values())
        self._index = NeighbourIndex(relation)
        self._index.add(b"".join(node.signature for node in self._nodes))

    def find_pairs(self, signatures: npt.NDArray[Any]) -> list[tuple[int, StoredNode]]:
        """Return all pairs of a position in `signatures` and a node near the signature there."""
        positions, rows = self._index.find_pairs(signatures)
        return [(at, self._nodes[row]) for at, row in zip(positions.tolist(), rows.tolist(), strict=True)]

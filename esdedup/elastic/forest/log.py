"""A forest's log: documents with many nodes and content hashes each, in the order in which they were written.

A forest with the lookup `memory` has a log instead of a document for each node, since its owner has all nodes
in memory and never searches for them. If a node or content hash has several entries, the last one is valid; a
short entry only updates a node's `seen`. Expired nodes are deleted together with their document, after the
document's other nodes have been appended to the log.
"""

import base64
import collections
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from esdedup.elastic.forest.search import NodeCounts
from esdedup.elastic.forest.stored import (
    Hit,
    JsonDocument,
    Stored,
    StoredHash,
    StoredNode,
    is_node_id,
    packed_of,
    search_body,
    unpack,
)
from esdedup.elastic.limits import MAX_HITS
from esdedup.elastic.pages import Hits, all_hits, each_page
from esdedup.elastic.requests import Query, Requests, aggregate
from esdedup.forest.model import NO_TIME, State
from esdedup.neighbours.relation import NeighbourIndex, Relation
from esdedup.times import DAY_MS

FIELD = "log"
"""The field with a document's number in the log."""

EVERY_LOG: Query = {"exists": {"field": FIELD}}

# Up to this size, the last document also gets the next batch, since many small documents are slow to read.
_ENOUGH_BYTES = 8_000
# The maximum number of documents in one response.
_READ_AT_ONCE = 100


class LogDocument(NamedTuple):
    """One document of a log."""

    number: int
    log: bytes = b""
    # The latest `seen` of its entries; NO_TIME if unknown.
    seen_ms: int = NO_TIME
    # The forest's state after the last batch in it.
    state: State = State()

    def json(self) -> JsonDocument:
        """Return the document's id and source."""
        # Include the forest's time, so that the last document, which has the state, never expires.
        seen_ms = max(self.seen_ms, self.state.time_ms)
        times_ms = [each for each in (self.state.origin_ms, self.state.time_ms) if each != NO_TIME]
        source: dict[str, Any] = {FIELD: self.number, "packed": base64.b64encode(self.log).decode()}
        if self.state.seq:
            source["seq"] = self.state.seq
        if times_ms:
            source["made"] = times_ms
        if seen_ms != NO_TIME:
            source["seen"] = seen_ms
        return f"{FIELD}-{self.number}", json.dumps(source)


class LogDocuments:
    """Builds the documents of a log, for the forest's owner."""

    def __init__(self, relation: Relation, *, last: int) -> None:
        self._relation = relation
        self._last = LogDocument(last + 1)

    @property
    def number(self) -> int:
        """The number of the document that is being filled, which may not have been written yet."""
        return self._last.number

    def begin_another(self) -> None:
        """Begin another document, for example because the last document's content is uncertain."""
        self._last = LogDocument(self.number + 1)

    def add(self, packed: Sequence[bytes], log: bytes | None, state: State | None) -> LogDocument:
        """Return the document to write for a batch: a new one, or the last document with the batch added.

        `log` contains the batch as entries of a log. Without `log`, each item of `packed` gets a full entry.
        """
        written, seen_ms = self._relation.core.log(packed)
        added = written if log is None else log
        if self._last.log and len(self._last.log) + len(added) > _ENOUGH_BYTES:
            self.begin_another()
        last = self._last
        self._last = LogDocument(
            last.number, last.log + added, max(last.seen_ms, seen_ms), last.state if state is None else state
        )
        return self._last


def read_last_number(forest: str) -> Requests[int]:
    """Read the number of the last document visible to searches; 0 if there is none."""
    answer = yield from aggregate(forest, EVERY_LOG, {"last": {"max": {"field": FIELD}}})
    return int(answer["last"]["value"] or 0)


def log_body(query: Query, *, versions: bool = False, repeated: bool = False) -> Query:
    """Return the body of a search for documents in the order of the log; `packed_of` reads the hits."""
    return search_body(query, size=_READ_AT_ONCE, sort=[FIELD], versions=versions, repeated=repeated)


def read_logs(forest: str, *, first: int) -> Requests[Iterator[bytes]]:
    """Read the contents of the documents numbered from `first` that searches can see."""
    hits = yield from all_hits(forest, log_body({"range": {FIELD: {"gte": first}}}))
    return iter(packed_of(hits))


def stored_in_log(log: bytes, relation: Relation) -> Iterator[Stored]:
    """Yield the nodes and content hashes with a full entry in a log, up to the first unreadable entry."""
    entries, _ = relation.core.entries(log)
    found = (unpack(entry, relation) for entry in entries if isinstance(entry, bytes))
    return (each for each in found if each is not None)


class LogNodes:
    """The nodes and content hashes in one log, as far as its documents are visible to searches.

    Has the methods of `NodeSearch` that maintenance uses. The first call reads the whole log, and takes about
    500 bytes of memory per node; later calls read the documents written since.
    """

    def __init__(self, *, forest: str, relation: Relation) -> None:
        self.relation = relation
        self._forest = forest
        # The number of the last document, which may still grow, and how many of its bytes have been read.
        self._number, self._read = 0, 0
        self._nodes: dict[str, bytes] = {}
        self._hashes: dict[str, StoredHash] = {}
        # The id of the latest node made from each content hash.
        self._own: dict[str, str] = {}
        self._damaged: dict[str, Hit] = {}
        # The ids of the nodes in `_neighbours`, in the same order.
        self._indexed: list[str] = []
        self._neighbours = NeighbourIndex(relation)

    def update(self) -> Requests[None]:
        """Read the documents that were added to the log since the last call."""
        # Include the last document read, which may have grown.
        body = log_body({"range": {FIELD: {"gte": self._number}}}, versions=True)
        yield from each_page(self._forest, body, self._add)

    def candidates(self, signatures: npt.NDArray[Any], *, live_since_ms: int) -> Requests[list[Stored]]:
        """Find the live nodes that are near one of `signatures` or have its node id."""
        yield from self.update()
        added = list(self._nodes)[len(self._indexed) :]
        self._neighbours.add(b"".join(self._node(each).signature for each in added))
        self._indexed += added
        _, places = self._neighbours.find_pairs(signatures)
        ids = {self._indexed[place] for place in places.tolist()} | set(self.relation.ids(signatures))
        found = (self._node(each) for each in sorted(ids & self._nodes.keys()))
        return [node for node in found if node.seen_ms >= live_since_ms]

    def by_id(self, node_ids: Iterable[str]) -> Requests[list[StoredNode]]:
        """Return the existing nodes with these ids."""
        yield from self.update()
        return [self._node(each) for each in sorted(filter(is_node_id, node_ids)) if each in self._nodes]

    def hashes(self, hashes: Iterable[str]) -> Requests[dict[str, StoredHash]]:
        """Return a record of each known hash of `hashes`, by hash; of two, the one with the later `seen`."""
        yield from self.update()
        found: dict[str, StoredHash] = {}
        for content_hash in hashes:
            own = None if content_hash not in self._own else self._node(self._own[content_hash]).own_hash
            extra = self._hashes.get(content_hash)
            # In a damaged forest, the node of a content hash may be missing.
            if extra is not None and extra.node is not None and extra.node not in self._nodes:
                extra = None
            # A repair may have given the node another content hash.
            both = [each for each in (extra, own) if each is not None and each.content_hash == content_hash]
            if both:
                found[content_hash] = max(both, key=lambda each: each.seen_ms)
        return found

    def unfindable(self, stored: Sequence[StoredNode]) -> Requests[list[StoredNode]]:  # noqa: ARG002
        """Return no nodes, since nodes of a log are never searched for."""
        yield from ()
        return []

    def random_nodes(self, size: int) -> Requests[list[StoredNode]]:
        """Return randomly chosen nodes."""
        yield from self.update()
        ids = sorted(self._nodes)
        return [self._node(each) for each in random.Random(0).sample(ids, min(size, len(ids)))]  # noqa: S311

    def tree(self, root: str) -> Requests[list[StoredNode]]:
        """Return the nodes of the tree with this root, live or expired."""
        yield from self.update()
        return [node for node in map(self._node, self._nodes) if node.root == root]

    def some_leaves(self, root: str, live_since_ms: int) -> Requests[list[StoredNode]]:
        """Return the live leaves of a root, at most 10,000 of them."""
        found = yield from self.tree(root)
        live = (node for node in found if not node.is_root and node.seen_ms >= live_since_ms)
        return list(itertools.islice(live, MAX_HITS))

    def count_leaves(self, root: str, live_since_ms: int) -> Requests[int]:
        """Count the live leaves of a root."""
        return (yield from self.leaves_by_root(live_since_ms)).get(root, 0)

    def leaves_by_root(self, live_since_ms: int = NO_TIME) -> Requests[dict[str, int]]:
        """Count the leaves last seen at `live_since_ms` or later, by root, omitting roots that have none."""
        yield from self.update()
        leaves = (node for node in map(self._node, self._nodes) if not node.is_root)
        return collections.Counter(node.root for node in leaves if node.seen_ms >= live_since_ms)

    def count_nodes(self) -> Requests[int]:
        """Count all nodes, live or expired."""
        yield from self.update()
        return len(self._nodes)

    def counts(self, *, new_since_ms: int, live_since_ms: int) -> Requests[NodeCounts]:
        """Count the nodes of each kind; arguments as for `NodeSearch.counts`."""
        yield from self.update()
        trees = live = new = 0
        made: collections.Counter[int] = collections.Counter()
        seen: collections.Counter[int] = collections.Counter()
        for node in map(self._node, self._nodes):
            trees += node.is_root
            live += node.seen_ms >= live_since_ms
            new += node.made_ms >= new_since_ms
            for counter, time_ms in ((made, node.made_ms), (seen, node.seen_ms)):
                if time_ms != NO_TIME:
                    counter[time_ms // DAY_MS * DAY_MS] += 1
        return NodeCounts(
            nodes=len(self._nodes), trees=trees, live=live, new=new, made_by_day=made, seen_by_day=seen
        )

    def by_tree(
        self,
        *,
        damaged: list[Hit],
        misplaced: list[StoredNode],  # noqa: ARG002
    ) -> Iterator[StoredNode]:
        """Yield all nodes by root, then by seq; arguments as for `NodeSearch.by_tree`."""
        damaged += self._damaged.values()
        places = sorted((node.root, node.seq, node.id) for node in map(self._node, self._nodes))
        yield from (self._node(node_id) for _, _, node_id in places if node_id in self._nodes)

    def extra_hashes(self) -> Iterator[list[tuple[Hit, StoredHash | None]]]:
        """Yield nothing to audit: an owner does not load content hashes whose node is missing."""
        yield from ()

    def later_than(self, *, made_ms: int, seen_ms: int) -> Iterator[list[Stored]]:
        """Yield the nodes made after `made_ms`, and the nodes and content hashes seen after `seen_ms`."""
        yield [
            each
            for each in self.all()
            if each.seen_ms > seen_ms or (isinstance(each, StoredNode) and each.made_ms > made_ms)
        ]

    def all(self) -> Iterator[Stored]:
        """Yield all nodes and content hashes."""
        yield from map(self._node, self._nodes)
        yield from self._hashes.values()

    def living(self, log: bytes, live_since_ms: int) -> list[bytes]:
        """Return the latest records, packed, of the live nodes and content hashes in a document's log."""
        found: list[Stored] = []
        for each in stored_in_log(log, self.relation):
            if isinstance(each, StoredNode) and each.id in self._nodes:
                found.append(self._node(each.id))
            elif isinstance(each, StoredHash) and each.content_hash in self._hashes:
                found.append(self._hashes[each.content_hash])
        return [self.relation.core.pack(each) for each in found if each.seen_ms >= live_since_ms]

    def _node(self, node_id: str) -> StoredNode:
        node = unpack(self._nodes[node_id], self.relation)
        assert isinstance(node, StoredNode)
        return node

    def _add(self, hits: Hits) -> None:
        for hit in hits:
            number = hit["sort"][0]
            read = self._read if number == self._number else 0
            self._number, self._read = number, 0
            logs = packed_of([hit])  # empty if the document is damaged
            log = b"".join(logs)
            self._read = len(log)
            entries, is_whole = self.relation.core.entries(log[read:])
            for entry in entries:
                self._add_entry(entry)
            if not (logs and is_whole):
                self._damaged[hit["_id"]] = hit

    def _add_entry(self, entry: bytes | tuple[str, int, int]) -> None:
        if isinstance(entry, tuple):
            node_id, seen_ms, hash_seen_ms = entry
            # In a damaged forest, the node may be missing.
            if node_id in self._nodes:
                node = self._node(node_id)._replace(seen_ms=seen_ms, hash_seen_ms=hash_seen_ms)
                self._nodes[node_id] = self.relation.core.pack(node)
            return
        stored = unpack(entry, self.relation)
        if isinstance(stored, StoredNode):
            before = self._nodes.get(stored.id)
            if before is not None and self._node(stored.id).signature != stored.signature:
                self._indexed, self._neighbours = [], NeighbourIndex(self.relation)
            self._nodes[stored.id] = entry
            if stored.content_hash:
                self._own[stored.content_hash] = stored.id
        elif stored is not None:
            self._hashes[stored.content_hash] = stored

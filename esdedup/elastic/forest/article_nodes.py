"""`ArticleNodes`: the nodes of a forest, reconstructed from its articles in an index.

Readers use it for a forest with a log. It is an approximation: articles may have been deleted or be in
another index, and if there are very many candidates, only the best matches are read.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy.typing as npt

from esdedup.elastic.forest.stored import Hit, Stored, StoredHash, StoredNode, is_node_id
from esdedup.elastic.requests import Query, Requests, aggregate, chunks, search
from esdedup.fields import Fields, signature_of
from esdedup.fingerprint.bands import ARTICLES
from esdedup.forest.model import NO_TIME, Aging
from esdedup.neighbours.relation import Relation

# Maximum number of candidates for a signature: the distinct texts with the most keys in common with it.
_MAX_CANDIDATES = 500
_READ = ("fingerprint", "root", "part_of", "has_part", "seq", "page")


class ArticleNodes:
    """Reads nodes from the dedup objects of articles. Has the methods of `NodeSearch` that readers use."""

    def __init__(self, *, index: str, fields: Fields, profile: str, relation: Relation, aging: Aging) -> None:
        """Read only the articles in `index` that have the profile with the label `profile`."""
        self.relation = relation
        self._index = index
        self._fields = fields
        self._object = fields.dedup
        self._profile = profile
        self._aging = aging

    def candidates(
        self, signatures: npt.NDArray[Any], *, hashes: Sequence[str] = (), live_since_ms: int
    ) -> Requests[list[Stored]]:
        """Find live nodes that may be near one of `signatures` or have its node id; also look up `hashes`."""
        found: list[Stored] = []
        for at, node_id in enumerate(self.relation.ids(signatures)):
            keys = self.relation.search_terms(signatures[at : at + 1], ARTICLES)
            # Rank articles by the number of keys in common with the text.
            alike = [{"term": {f"{self._object}.bands": key}} for key in keys]
            same = {"term": {f"{self._object}.fingerprint": {"value": node_id, "boost": len(keys) + 1}}}
            scored = [{"constant_score": {"filter": each}} for each in alike]
            hits = yield from self._latest([*scored, same], live_since_ms, size=_MAX_CANDIDATES)
            found += self._nodes(hits)
        if hashes:
            found += (yield from self.hashes(hashes)).values()
        return found

    def packed_candidates(
        self, signatures: npt.NDArray[Any], *, hashes: Sequence[str] = (), live_since_ms: int
    ) -> Requests[list[bytes]]:
        """Find the same as `candidates`, in packed form."""
        found = yield from self.candidates(signatures, hashes=hashes, live_since_ms=live_since_ms)
        return list(map(self.relation.core.pack, found))

    def by_id(self, node_ids: Iterable[str]) -> Requests[list[StoredNode]]:
        """Return the nodes with these ids, leaving out ids that no article has."""
        found: list[StoredNode] = []
        for some in chunks(sorted(filter(is_node_id, node_ids)), _MAX_CANDIDATES):
            of_ids = {"terms": {f"{self._object}.fingerprint": list(some)}}
            found += self._nodes((yield from self._latest([of_ids], NO_TIME, size=len(some))))
        return found

    def hashes(self, hashes: Iterable[str]) -> Requests[dict[str, StoredHash]]:
        """Return a record of each known hash of `hashes`, by hash, from the latest article with that hash."""
        latest: dict[str, StoredHash] = {}
        for some in chunks(sorted(hashes), _MAX_CANDIDATES):
            of_hashes = {"terms": {f"{self._object}.page": list(some)}}
            hits = yield from self._latest([of_hashes], NO_TIME, size=len(some), by="page")
            for hit in hits:
                name = self._value(hit, "page")
                latest[name] = StoredHash(name, self._value(hit, "fingerprint"), self._seen_ms(hit))
        return latest

    def leaves(self, roots: Iterable[str], live_since_ms: int) -> Requests[list[StoredNode]]:
        """Return live leaves of these roots; at most 500 in total."""
        of_roots = {"terms": {f"{self._object}.root": sorted(roots)}}
        return self._nodes((yield from self._latest([of_roots], live_since_ms, size=_MAX_CANDIDATES)))

    def count_leaves(self, root: str, live_since_ms: int) -> Requests[int]:
        """Count the live leaves of a root as distinct texts; high counts may be off by a few per cent."""
        cardinality = {"cardinality": {"field": f"{self._object}.fingerprint"}}
        query = self._query([{"term": {f"{self._object}.root": root}}], live_since_ms)
        query["bool"]["must_not"] = {"term": {f"{self._object}.fingerprint": root}}
        answer = yield from aggregate(self._index, query, {"leaves": cardinality})
        return int(answer["leaves"]["value"])

    def _latest(
        self, matching: list[Query], live_since_ms: int, *, size: int, by: str = "fingerprint"
    ) -> Requests[list[Hit]]:
        """Return the latest matching article for each value of `by`, the best match first."""
        body = {
            "query": self._query(matching, live_since_ms),
            "collapse": {"field": f"{self._object}.{by}"},
            "sort": ["_score", {f"{self._object}.seq": "desc"}],
            "size": size,
            "_source": [self._fields.signature],
            "docvalue_fields": [
                *(f"{self._object}.{name}" for name in _READ),
                {"field": f"{self._object}.seen", "format": "epoch_millis"},
            ],
            "track_total_hits": False,
        }
        (answer,) = yield from search(self._index, body)
        return list(answer["hits"]["hits"])

    def _query(self, matching: list[Query], live_since_ms: int) -> Query:
        filters: list[Query] = [{"term": {f"{self._object}.profile": self._profile}}]
        if live_since_ms != NO_TIME:
            # The times of articles, unlike those of nodes, are not rounded up.
            since_ms = live_since_ms - self._aging.granularity_ms
            of_time = {"gte": since_ms, "format": "epoch_millis"}
            filters.append({"range": {f"{self._object}.seen": of_time}})
        return {"bool": {"filter": filters, "should": matching, "minimum_should_match": 1}}

    def _nodes(self, hits: Iterable[Hit]) -> list[StoredNode]:
        return [node for hit in hits if (node := self._node(hit)) is not None]

    def _node(self, hit: Hit) -> StoredNode | None:
        """Return the node of an article's text; None if the article's dedup object is damaged."""
        signature = signature_of(hit["_source"], self._fields)
        node_id, root = self._value(hit, "fingerprint"), self._value(hit, "root")
        if len(signature) != self.relation.dtype.itemsize or not (is_node_id(node_id) and is_node_id(root)):
            return None
        seen_ms, content_hash = self._seen_ms(hit), self._value(hit, "page") or ""
        seq = int(self._value(hit, "seq") or 0)
        links = ("part_of", "has_part") if node_id == root else ()
        of_root = [self._value(hit, each) or "" for each in links]
        return StoredNode(node_id, root, signature, seq, seen_ms, seen_ms, content_hash, seen_ms, *of_root)

    def _seen_ms(self, hit: Hit) -> int:
        seen_ms = self._value(hit, "seen")
        return NO_TIME if seen_ms is None else self._aging.round_up(int(seen_ms))

    def _value(self, hit: Hit, name: str) -> Any:
        values = hit.get("fields", {}).get(f"{self._object}.{name}", [])
        return values[0] if len(values) == 1 else None

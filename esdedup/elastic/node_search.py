"""Finding nodes in a forest's index: by key, by id, by root; all of them, however many."""

import collections
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch

from esdedup.bands import Layout
from esdedup.elastic import nodes
from esdedup.elastic.errors import patiently, translated
from esdedup.elastic.nodes import FIELDS, StoredNode, chunks, live_filter, node_of
from esdedup.errors import ForestError
from esdedup.forest.model import NO_TIME
from esdedup.simhash import from_hex

# A key is common if so many nodes of one page have it: then it is narrowed down by others.
_COMMON = 1_000
# Nodes that are looked for in one request by keys that are too common: a clause or four each.
_NARROWED_AT_ONCE = 200
_KEEP_ALIVE = "5m"
_SHARED_SEEN = 2**62

Query = dict[str, Any]

EVERY_NODE: Query = {"exists": {"field": "root"}}


class NodeSearch:
    """Reads the nodes of one forest. What no refresh has shown it does not see."""

    def __init__(self, client: Elasticsearch, *, forest: str, layout: Layout) -> None:
        self._client = client
        self._forest = forest
        self._layout = layout
        # Terms that very many nodes share; what is common once stays so.
        self._common: set[str] = set()

    def candidates(self, fingerprints: npt.NDArray[np.uint64], *, live_since_ms: int) -> Iterator[StoredNode]:
        """Yield the live nodes that share a key with one of `fingerprints`, and may be near it.

        Some may come twice.
        """
        fingerprints = np.unique(fingerprints)
        owners: dict[str, list[int]] = collections.defaultdict(list)
        for fingerprint, terms in zip(fingerprints.tolist(), self._layout.terms(fingerprints), strict=True):
            for term in terms:
                owners[term].append(fingerprint)
        live = live_filter(live_since_ms)
        for chunk in chunks(sorted(owners), nodes.MAX_TERMS):
            yield from self._rare(chunk, live)
        narrowed = [
            self._narrowed(fingerprint, term)
            for term in sorted(self._common & owners.keys())
            for fingerprint in owners[term]
        ]
        for clauses in chunks(narrowed, _NARROWED_AT_ONCE):
            yield from self.scan({"bool": {"filter": [{"bool": {"should": clauses}}, *live]}})

    def by_id(self, node_ids: Iterable[str]) -> Iterator[StoredNode]:
        """Yield the nodes of those ids that there are."""
        for chunk in chunks(sorted(node_ids), nodes.MAX_HITS):
            yield from self.scan(nodes.ids_filter(chunk))

    def scan(self, query: Query, *, sort: Sequence[Any] = ("_doc",)) -> Iterator[StoredNode]:
        """Yield all nodes that match, as the index was when this began."""
        return itertools.chain.from_iterable(self.pages(query, sort=sort))

    def pages(self, query: Query, *, sort: Sequence[Any] = ("_doc",)) -> Iterator[list[StoredNode]]:
        """Yield all nodes that match, as the index was when this began, page by page."""
        for hits in self.hit_pages(query, sort=sort):
            yield [node_of(hit) for hit in hits]

    def hit_pages(
        self, query: Query, *, sort: Sequence[Any] = ("_doc",), versions: bool = False
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield the hits themselves; with `versions`, with ``_seq_no`` and ``_primary_term``."""
        request = {"query": query, "sort": list(sort), "seq_no_primary_term": versions}
        # Nearly always one page is all.
        hits = self._search(**request, index=self._forest)
        if len(hits) < nodes.MAX_HITS:
            yield hits
            return
        with translated(f"search the forest {self._forest!r}"):
            pit = self._client.open_point_in_time(index=self._forest, keep_alive=_KEEP_ALIVE)["id"]
        try:
            after = None
            while hits:
                at = {"pit": {"id": pit, "keep_alive": _KEEP_ALIVE}, "search_after": after}
                hits = self._search(**request, **at)
                if hits:
                    yield hits
                    after = hits[-1]["sort"]
        finally:
            with translated(f"search the forest {self._forest!r}"):
                self._client.options(ignore_status=404).close_point_in_time(id=pit)

    def count_leaves(
        self, roots: Iterable[str], *, live_since_ms: int, end_since_ms: int, steps: int
    ) -> dict[str, dict[int, int]]:
        """Count the live leaves of `roots` by their `seen`.

        Args:
            roots: Their ids.
            live_since_ms: The `seen` from which on a leaf lives now.
            end_since_ms: The one from which on it will live until the batch's end: those are counted
                together, under a `seen` of their own.
            steps: How many values of `seen` there may be between the two.
        """
        # Only those that expire within the batch are told apart: one bucket a step of `seen`.
        steps = min(steps, nodes.MAX_BUCKETS // 2)
        expiring: Query = {
            "filter": {"range": {"seen": {"lt": end_since_ms}}}
            if end_since_ms != NO_TIME
            else {"match_none": {}},
            "aggs": {"seen": {"terms": {"field": "seen", "size": steps}}},
        }
        counts: dict[str, dict[int, int]] = {root: {} for root in roots}
        for chunk in chunks(sorted(counts), max(1, nodes.MAX_BUCKETS // (steps + 2))):
            leaves = [{"terms": {"root": chunk}}, {"term": {"leaf": True}}, *live_filter(live_since_ms)]
            by_root: Query = {
                "terms": {"field": "root", "size": len(chunk)},
                "aggs": {"expiring": expiring, "timeless": {"missing": {"field": "seen"}}},
            }
            for bucket in self._aggregate({"bool": {"filter": leaves}}, {"roots": by_root})["roots"][
                "buckets"
            ]:
                counted = {each["key"]: each["doc_count"] for each in bucket["expiring"]["seen"]["buckets"]}
                if bucket["expiring"]["seen"]["sum_other_doc_count"]:
                    raise ForestError(
                        f"cannot count the leaves of {bucket['key']}: they expire at more than {steps:,} "
                        "different times within one batch; use smaller batches"
                    )
                counted[NO_TIME] = bucket["timeless"]["doc_count"]
                counted[_SHARED_SEEN] = bucket["doc_count"] - sum(counted.values())
                counts[bucket["key"]] = counted
        return counts

    def _rare(self, terms: Sequence[str], live: list[Query]) -> Iterator[StoredNode]:
        """Yield the nodes with one of `terms`, except for those that turn out to be common."""
        while True:
            rare = [term for term in terms if term not in self._common]
            query = {"bool": {"filter": [{"terms": {"keys": rare}}, *live]}}
            found: list[StoredNode] = []
            known = len(self._common)
            for page in self.pages(query):
                found += page
                if len(page) == nodes.MAX_HITS and self._note_common(page, set(rare)):
                    break
            if len(self._common) == known:
                yield from found
                return

    def _note_common(self, page: list[StoredNode], asked: set[str]) -> bool:
        """Note which of the terms asked for are common on a full page; return whether any is."""
        shared = collections.Counter(
            itertools.chain.from_iterable(self._layout.terms(from_hex(node.id for node in page)))
        )
        common = {term for term in asked if shared[term] >= _COMMON}
        self._common |= common
        return bool(common)

    def _narrowed(self, fingerprint: int, term: str) -> Query:
        """Match nodes with the term that two of three other keys, or neighbours of theirs, confirm."""
        table = self._layout.table_of(term)
        beside = [
            {"terms": {"keys": self._layout.terms_beside(fingerprint, table=table, other=other)}}
            for other in self._layout.beside(table)
        ]
        return {"bool": {"filter": {"term": {"keys": term}}, "should": beside, "minimum_should_match": 2}}

    @patiently
    def _aggregate(self, query: Query, aggregations: Query) -> dict[str, Any]:
        with translated(f"count in the forest {self._forest!r}"):
            answer = self._client.search(
                index=self._forest, query=query, aggs=aggregations, size=0, allow_partial_search_results=False
            )
        result: dict[str, Any] = answer["aggregations"]
        return result

    @patiently
    def _search(self, **request: Any) -> list[dict[str, Any]]:
        with translated(f"search the forest {self._forest!r}"):
            answer = self._client.search(
                **request,
                size=nodes.MAX_HITS,
                source=False,
                docvalue_fields=FIELDS,
                track_total_hits=False,
                allow_partial_search_results=False,
            )
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

"""Finding nodes in a forest's index: by key, by id, by root; all of them, however many."""

import collections
import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch

from esdedup.elastic import limits
from esdedup.elastic.errors import translated
from esdedup.elastic.forest.documents import (
    FIELDS,
    StoredNode,
    apart,
    chunks,
    columns_of,
    keys_of,
    live_filter,
    live_leaves,
    nodes_of,
)
from esdedup.elastic.pages import hit_pages
from esdedup.errors import ForestError
from esdedup.fingerprint.bands import Layout
from esdedup.forest.model import NO_TIME
from esdedup.neighbours.relation import Relation

# To read so many nodes costs as much as to go around one key of one simhash.
_WORTH = 30
# Fewer nodes than this are read.
_COMMON = 1_000
_KEYS_CHECKED_AT_ONCE = 1_000
# So many keys are counted at once.
_SUSPECTS = 100
# So often a search begins anew because keys turn out to be common.
_ATTEMPTS = 4
# Keys that are remembered as too common.
_MAX_COMMON = 100_000
# Of a query; more than one only where keys are common.
_CLAUSES_AT_ONCE = 100
_SHARED_SEEN = 2**62

Query = dict[str, Any]

EVERY_NODE: Query = {"exists": {"field": "root"}}
# Damaged nodes; what has no keys either was never one: the lease, the state.
ROOTLESS: Query = {"bool": {"filter": {"exists": {"field": "keys"}}, "must_not": EVERY_NODE}}


class NodeSearch:
    """Reads the nodes of one forest. What no refresh has shown it does not see."""

    def __init__(self, client: Elasticsearch, *, forest: str, relation: Relation, layout: Layout) -> None:
        self._client = client
        self._forest = forest
        self._relation = relation
        self._layout = layout
        # Terms that very many nodes share; what is common once stays so.
        self._common: set[str] = set()

    def candidates(self, signatures: npt.NDArray[Any], *, live_since_ms: int) -> list[StoredNode]:
        """Find the live nodes that share a key or the id with one of `signatures`, and may be near it.

        Some may come twice.
        """
        simhashes = np.unique(self._relation.simhashes(signatures))
        terms = self._layout.terms(simhashes)
        # A node may be indexed under nothing.
        ids = self._relation.ids(signatures)
        owners = collections.Counter(itertools.chain.from_iterable(terms))
        live = live_filter(live_since_ms)
        for attempt in itertools.count(1):
            found: list[StoredNode] = []
            for each in self._queries(simhashes.tolist(), terms, ids):
                query = {"bool": {"filter": [each, *live]}}
                # Nearly always one page is all.
                page, is_all = self._page(query)
                if not is_all:
                    if attempt < _ATTEMPTS and self._note_common(page, owners):
                        break
                    page = list(self.scan(query))
                found += page
            else:
                break
        return found

    def by_id(self, node_ids: Iterable[str]) -> Iterator[StoredNode]:
        """Yield the nodes of those ids that there are."""
        for chunk in chunks(sorted(node_ids), limits.MAX_HITS):
            yield from self._page({"ids": {"values": chunk}})[0]

    def scan(self, query: Query, *, sort: Sequence[Any] = ("_doc",)) -> Iterator[StoredNode]:
        """Yield all nodes that match, as the index was when this began."""
        for hits in self.pages(query, sort=sort):
            yield from nodes_of(hits, self._relation)

    def pages(
        self, query: Query, *, sort: Sequence[Any] = ("_doc",), versions: bool = False
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield all hits, as the index was when this began; with `versions`, with ``_seq_no`` too."""
        search = functools.partial(self._search, query=query, sort=list(sort), seq_no_primary_term=versions)
        return hit_pages(self._client, self._forest, search, task=f"search the forest {self._forest!r}")

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
        steps = min(steps, limits.MAX_BUCKETS // 2)
        expiring: Query = {
            "filter": {"range": {"seen": {"lt": end_since_ms}}}
            if end_since_ms != NO_TIME
            else {"match_none": {}},
            "aggs": {"seen": {"terms": {"field": "seen", "size": steps}}},
        }
        counts: dict[str, dict[int, int]] = {root: {} for root in roots}
        for chunk in chunks(sorted(counts), max(1, limits.MAX_BUCKETS // (steps + 2))):
            leaves = live_leaves(chunk, live_since_ms)
            by_root: Query = {
                "terms": {"field": "root", "size": len(chunk)},
                "aggs": {"expiring": expiring, "timeless": {"missing": {"field": "seen"}}},
            }
            for bucket in self.aggregate(leaves, {"roots": by_root})["roots"]["buckets"]:
                counted = {each["key"]: each["doc_count"] for each in bucket["expiring"]["seen"]["buckets"]}
                if bucket["expiring"]["seen"]["sum_other_doc_count"]:
                    raise ForestError(
                        f"cannot count the leaves of {bucket['key']}: they expire at more than {steps:,} "
                        "different times within one batch; use smaller batches",
                        forest=self._forest,
                    )
                counted[NO_TIME] = bucket["timeless"]["doc_count"]
                counted[_SHARED_SEEN] = bucket["doc_count"] - sum(counted.values())
                counts[bucket["key"]] = counted
        return counts

    def roots_with_leaves(self, roots: Iterable[str]) -> set[str]:
        """Return those of `roots`, ids, that have a leaf, live or not."""
        found: set[str] = set()
        for chunk in chunks(sorted(roots), limits.MAX_TERMS):
            leaves = live_leaves(chunk, NO_TIME)
            answer = self.aggregate(leaves, {"roots": {"terms": {"field": "root", "size": len(chunk)}}})
            found.update(bucket["key"] for bucket in answer["roots"]["buckets"])
        return found

    def not_to_be_found(self, stored: Sequence[StoredNode]) -> list[StoredNode]:
        """Return those that lack a key that their signature gives them, or are marked wrongly as leaves."""
        wrong: list[StoredNode] = []
        # A group must have the right keys, whoever of it has them: so neighbours, whose keys a slip
        # would exchange, do not come into one group.
        keys = keys_of(stored, self._relation, self._layout)
        # What is indexed under nothing has none.
        findable = [(node, own) for node, own in zip(stored, keys, strict=True) if own]
        for pairs in apart(findable, _KEYS_CHECKED_AT_ONCE):
            group = [node for node, _ in pairs]
            marked = [
                {
                    "bool": {
                        "filter": [
                            {"ids": {"values": [node.id for node in group if node.is_root is not is_leaf]}},
                            {"term": {"leaf": is_leaf}},
                        ]
                    }
                }
                for is_leaf in (True, False)
            ]
            query: Query = {"bool": {"filter": [{"bool": {"should": marked}}]}}
            query["bool"]["filter"] += [
                {"terms": {"keys": column}} for column in columns_of([own for _, own in pairs])
            ]
            fine = {node.id for node in self._page(query)[0]}
            wrong += [node for node in group if node.id not in fine]
        # Some may have been deleted or written since they were read.
        still = set(self.by_id(node.id for node in wrong))
        return [node for node in wrong if node in still]

    def count_nodes(self) -> int:
        """Count all nodes, live or not."""
        return self.count(EVERY_NODE)

    def random_nodes(self, size: int) -> list[StoredNode]:
        """Return nodes taken at random, at most 10,000."""
        at_random = {"function_score": {"query": EVERY_NODE, "random_score": {"seed": 0, "field": "seq"}}}
        hits = self._search(query=at_random, sort=["_score"], index=self._forest)
        return nodes_of(hits[:size], self._relation)

    def count_by_key(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the nodes that have each key; some thousand keys at most."""
        filters = {term: {"term": {"keys": term}} for term in terms}
        if not filters:
            return {}
        answer = self.aggregate({"match_all": {}}, {"terms": {"filters": {"filters": filters}}})
        return {term: bucket["doc_count"] for term, bucket in answer["terms"]["buckets"].items()}

    def count(self, query: Query) -> int:
        """Count the nodes that match."""
        with translated(f"count in the forest {self._forest!r}"):
            return int(self._client.count(index=self._forest, query=query)["count"])

    def _queries(self, simhashes: list[int], terms: list[list[str]], ids: list[str]) -> Iterator[Query]:
        """Yield queries that together match what may be near one of the simhashes, or has one of the ids."""
        # By the common terms that an arrival has: its other terms, which are asked for without them.
        rare: dict[frozenset[str], set[str]] = collections.defaultdict(set)
        around: set[str] = set()
        for simhash, own in zip(simhashes, terms, strict=True):
            common = self._common.intersection(own)
            rare[frozenset(common)].update(own)
            for term in common:
                around.update(self._layout.terms_around(simhash, self._layout.table_of(term)))
        clauses: list[Query] = [{"ids": {"values": chunk}} for chunk in chunks(ids, limits.MAX_HITS)]
        for without, others in rare.items():
            excluded = {"must_not": {"terms": {"keys": sorted(without)}}} if without else {}
            clauses += (
                {"bool": {"filter": {"terms": {"keys": chunk}}, **excluded}}
                for chunk in chunks(sorted(others - without), limits.MAX_TERMS)
            )
        for several in chunks(clauses, _CLAUSES_AT_ONCE):
            yield {"bool": {"should": several}}
        for chunk in chunks(sorted(around), limits.MAX_TERMS):
            yield {"terms": {"keys": chunk}}

    def _note_common(self, page: list[StoredNode], owners: Mapping[str, int]) -> bool:
        """Note which terms have so many nodes that it is cheaper to go around them than to read all.

        Args:
            page: A full one, of hits for the terms.
            owners: How many simhashes ask for each term.

        Returns:
            Whether there are any that were not known yet.
        """
        shared = collections.Counter(
            term for terms in keys_of(page, self._relation, self._layout) for term in terms
        )
        # One page may mislead; the index knows exactly.
        suspects = heapq.nlargest(_SUSPECTS, owners, key=lambda term: shared[term])
        counts = self.count_by_key(suspects)
        new = {term for term in suspects if counts[term] > max(_COMMON, _WORTH * owners[term])} - self._common
        if len(self._common) > _MAX_COMMON:
            self._common.clear()
        self._common |= new
        return bool(new)

    def _page(self, query: Query) -> tuple[list[StoredNode], bool]:
        """Return the nodes of the first page, and whether that is all."""
        hits = self._search(query=query, sort=["_doc"], index=self._forest)
        return nodes_of(hits, self._relation), len(hits) < limits.MAX_HITS

    def aggregate(self, query: Query, aggregations: Query) -> dict[str, Any]:
        """Aggregate the nodes that match."""
        with translated(f"count in the forest {self._forest!r}"):
            answer = self._client.search(
                index=self._forest, query=query, aggs=aggregations, size=0, allow_partial_search_results=False
            )
        result: dict[str, Any] = answer["aggregations"]
        return result

    def _search(self, **request: Any) -> list[dict[str, Any]]:
        with translated(f"search the forest {self._forest!r}"):
            answer = self._client.search(
                **request,
                size=limits.MAX_HITS,
                source=False,
                docvalue_fields=FIELDS,
                track_total_hits=False,
                allow_partial_search_results=False,
            )
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

"""The search for candidates: nodes with a signature's node id, or with a key that nodes near it have.

The same search finds content hashes, in their own documents or in the documents of nodes made from them.

A key that very many nodes share is *frequent*: reading all of its nodes would be expensive. Near nodes that
share a key (blocks of a simhash's bits) differ in few other bits, so a few hundred finer keys find them
(`terms_around`). The search then requires the frequent key together with a finer key. A key is suspected to
be frequent when a page of hits is full; frequent keys are remembered.
"""

import collections
import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.elastic.forest.stored import StoredNode, keys_of, live_filter, packed_of, search_body, unpacked
from esdedup.elastic.limits import Limits
from esdedup.elastic.pages import all_hits
from esdedup.elastic.requests import Query, Requests, aggregate, chunks, search
from esdedup.fingerprint.bands import Layout, around_counts, terms_around
from esdedup.neighbours.relation import Relation

# How many times a search may start over because keys turn out to be frequent.
_RESTARTS = 3
# How many keys, the most frequent in a full page of hits, are counted in the index.
_SUSPECTS = 100
# A query has at most and at least these shares of `Limits.max_terms`. Even in one shard, the server runs
# several queries at the same time, but it looks the terms of one query up one after the other.
_MOST_SHARE, _LEAST_SHARE = 8, 64
# How many queries one request has, which the server runs at the same time.
_AT_ONCE = 8

_Clause = tuple[int, Query]
"""The number of terms in a clause, and the clause."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Targets:
    """The keys, ids and content hashes to search for."""

    simhashes: list[int]
    # For each simhash, the keys to search for.
    keys: list[list[str]]
    # The keys of minhashes and links. They are never frequent, since the number of nodes per key is limited
    # (`Agreement.max_postings`).
    exact_keys: list[str]
    # Ids of nodes; a node that is not indexed under any key can only be found by its id.
    ids: list[str]
    # Content hashes.
    hashes: Sequence[str]

    def count_terms(self) -> int:
        """Count the terms to search for."""
        return sum(map(len, (self.exact_keys, self.ids, self.hashes, *self.keys)))

    def finer_counts(self, layout: Layout) -> collections.Counter[str]:
        """Return how many finer keys replace each key."""
        counts: collections.Counter[str] = collections.Counter()
        for keys in self.keys:
            for key, count in zip(keys, around_counts(layout), strict=True):
                counts[key] += count
        return counts


class CandidateSearch:
    """Searches one forest's index, and remembers which of its keys are frequent."""

    def __init__(self, *, forest: str, relation: Relation, layout: Layout, limits: Limits) -> None:
        self._forest = forest
        self._relation = relation
        self._layout = layout
        self._limits = limits
        # Keys stay in this set even when their nodes have expired.
        self._frequent: set[str] = set()
        # How many terms a query has at most, so that its hits fit in one page.
        self._max_terms = max(1, limits.max_terms // _MOST_SHARE)

    def find(
        self, signatures: npt.NDArray[Any], *, hashes: Sequence[str] = (), live_since_ms: int
    ) -> Requests[list[bytes]]:
        """Find packed candidates; see `NodeSearch.candidates`."""
        representatives = np.unique(self._relation.representatives(signatures))
        are_exact = self._relation.are_exact(representatives)
        simhashes = representatives[~are_exact].tolist()
        keys = self._layout.terms(simhashes)
        terms = self._relation.terms(signatures.tobytes(), self._layout, are_indexed=False)
        exact_keys = {*itertools.chain.from_iterable(terms)}.difference(*keys)
        targets = _Targets(
            simhashes=simhashes,
            keys=keys,
            exact_keys=sorted(exact_keys),
            ids=self._relation.ids(signatures),
            hashes=hashes,
        )
        filters = live_filter(live_since_ms)
        restarts = _RESTARTS
        while (found := (yield from self._read(targets, filters, may_stop=restarts > 0))) is None:
            restarts -= 1
        return found

    def _read(
        self, targets: _Targets, filters: list[Query], *, may_stop: bool
    ) -> Requests[list[bytes] | None]:
        """Read the candidates. If `may_stop`, return None when new frequent keys are detected."""
        found: list[bytes] = []
        queries = [*self._queries(targets, filters)]
        # If some signatures have more candidates than this, one of their keys is probably frequent.
        expected = self._limits.frequent_nodes * max(len(targets.ids), len(targets.hashes))
        size = min(self._limits.max_hits, expected)
        for some in chunks(queries, _AT_ONCE):
            answers = yield from search(self._forest, *(search_body(each, size=size) for each in some))
            for query, answer in zip(some, answers, strict=True):
                page = packed_of(hits := answer["hits"]["hits"])
                # The first page is nearly always the only one.
                if len(hits) >= size:
                    if may_stop and (yield from self._learn(page, targets)):
                        return None
                    # In a large forest, nodes share keys by chance, and each page searches for all terms.
                    least = max(1, self._limits.max_terms // _LEAST_SHARE)
                    self._max_terms = max(least, min(self._max_terms, targets.count_terms()) // 2)
                    body = search_body(query, size=self._limits.max_hits)
                    page = packed_of((yield from all_hits(self._forest, body)))
                found += page
        return found

    def _queries(self, targets: _Targets, filters: list[Query]) -> Iterator[Query]:
        clauses = (
            *((len(ids), {"ids": {"values": ids}}) for ids in chunks(targets.ids, self._limits.max_hits)),
            *self._terms("page", targets.hashes),
            *self._terms("keys", targets.exact_keys),
            *self._clauses_by_key(targets),
        )
        for group in (clauses, self._clauses_by_frequent_key(targets)):
            for several in self._packed(group):
                yield {"bool": {"filter": [{"bool": {"should": several}}, *filters]}}

    def _packed(self, clauses: Iterable[_Clause]) -> Iterator[list[Query]]:
        group: list[Query] = []
        total = 0
        for terms, clause in clauses:
            if group and (len(group) == self._limits.max_clauses or total + terms > self._max_terms):
                yield group
                group, total = [], 0
            group.append(clause)
            total += terms
        if group:
            yield group

    def _terms(self, field: str, values: Sequence[str], **also: Query | list[Query]) -> Iterator[_Clause]:
        """Yield clauses for documents with one of `values`; `also` has further parts of a `bool` query."""
        groups = -(-len(values) // self._max_terms)
        # Deal the values, since those that many nodes have are next to each other.
        for some in (values[first::groups] for first in range(groups)):
            terms = {"terms": {field: some}}
            yield len(some), {"bool": {"must": terms, **also}} if also else terms

    def _clauses_by_key(self, targets: _Targets) -> Iterator[_Clause]:
        """Yield clauses for the keys that are not frequent, excluding nodes that also have a frequent key.

        Finer keys find such nodes if they are near.
        """
        by_frequent: dict[frozenset[str], set[str]] = collections.defaultdict(set)
        for keys in targets.keys:
            by_frequent[frozenset(self._frequent.intersection(keys))].update(keys)
        for frequent, searched in by_frequent.items():
            yield from self._terms("keys", sorted(searched - frequent), **_excluding(frequent))

    def _clauses_by_frequent_key(self, targets: _Targets) -> Iterator[_Clause]:
        """Yield clauses for the nodes that have a frequent key and one of its finer keys.

        Both keys are required, since a finer key may also be frequent.
        """
        by_frequent: dict[str, list[int]] = collections.defaultdict(list)
        for simhash, keys in zip(targets.simhashes, targets.keys, strict=True):
            for key in self._frequent.intersection(keys):
                by_frequent[key].append(simhash)
        for key, simhashes in sorted(by_frequent.items()):
            finer = {term for simhash in simhashes for term in terms_around(self._layout, simhash, key)}
            yield from self._terms("keys", sorted(finer), filter={"term": {"keys": key}})

    def _learn(self, page: list[bytes], targets: _Targets) -> Requests[bool]:
        """Detect frequent keys from a full page of hits; return whether any of them is new."""
        nodes = [each for each in unpacked(page, self._relation) if isinstance(each, StoredNode)]
        shared = collections.Counter(
            itertools.chain.from_iterable(keys_of(nodes, self._relation, self._layout))
        )
        finer_counts = targets.finer_counts(self._layout)
        # One page of hits may mislead, so count the nodes of each key in the index.
        suspects = heapq.nlargest(_SUSPECTS, finer_counts, key=lambda key: shared[key])
        node_counts = yield from count_by_key(self._forest, suspects)
        frequent = {
            key
            for key in suspects
            if node_counts[key] > self._limits.frequent_nodes
            and node_counts[key] * self._limits.finer_keys_per_node > finer_counts[key]
        }
        new = frequent - self._frequent
        if len(self._frequent) > self._limits.remembered_keys:
            self._frequent.clear()
        self._frequent |= new
        return bool(new)


def count_by_key(forest: str, keys: Iterable[str]) -> Requests[dict[str, int]]:
    """Count the nodes that have each key. `keys` may contain a few thousand keys."""
    filters = {key: {"term": {"keys": key}} for key in keys}
    if not filters:
        return {}
    answer = yield from aggregate(forest, {"match_all": {}}, {"keys": {"filters": {"filters": filters}}})
    return {key: bucket["doc_count"] for key, bucket in answer["keys"]["buckets"].items()}


def _excluding(keys: frozenset[str]) -> dict[str, Query]:
    return {"must_not": {"terms": {"keys": sorted(keys)}}} if keys else {}

"""Rows sorted by the number of articles in their clusters.

A terms aggregation gives the exact order on one shard, and on several shards if each cluster lies on one
of them (articles routed by root). Otherwise each shard has only part of each count. Then the roots that the
shards sent are counted again, exactly, and the shards' smallest counts bound the count of every root that
was not sent (Fagin's threshold algorithm). Until that bound proves the order, each shard sends more roots,
up to a limit. If the order is not proved at the limit, the result says that it is not exact.
"""

import dataclasses
from typing import Any

from esdedup.elastic import limits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.reading import list_bodies as bodies
from esdedup.reading.hits import root_of
from esdedup.reading.list_request import ListRequest, SortResult
from esdedup.reading.paging import Cursor
from esdedup.reading.queries import within
from esdedup.reading.scope import ReadyIndex, Tuning

_Bucket = dict[str, Any]


def rows_by_count(
    request: ListRequest, start: Cursor, ready: ReadyIndex, tuning: Tuning
) -> Requests[SortResult]:
    """Find the articles that a page shows."""
    end = min(start.offset + request.size, limits.MAX_HITS)
    (answer,) = yield from search(request.index, bodies.count_articles(request.query, fields=request.fields))
    total_articles = answer["hits"]["total"]["value"]
    ranking = _Ranking(
        request=request,
        tuning=tuning,
        is_routed_by_root=ready.is_routed_by_root,
        counted=within(request.query, request.fields),
    )
    # One more than the page needs shows whether there is a next page.
    if request.query is None or request.counting == "matching":
        ranked = yield from ranking.first(end + 1)
    else:
        ranked = yield from _whole_clusters(ranking, end + 1, total_articles=total_articles)
    return SortResult(
        hits=(yield from _heads(request, ranked.roots[start.offset : end])),
        has_more=end < min(len(ranked.roots), limits.MAX_HITS),
        total_articles=total_articles,
        order_exact=ranked.is_exact,
        are_heads=True,
    )


def _heads(request: ListRequest, roots: list[str]) -> Requests[list[dict[str, Any]]]:
    """Find the article that each root's row shows, in the order of `roots`."""
    if not roots:
        return []
    (answer,) = yield from search(
        request.index,
        bodies.heads(roots, query=request.query, by=request.order_of_heads, fields=request.fields),
    )
    heads = {root_of(hit, request.fields): hit for hit in answer["hits"]["hits"]}
    # A cluster that was deleted meanwhile has no head.
    return [heads[root] for root in roots if root in heads]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RankedRoots:
    """Roots sorted by count."""

    roots: list[str]
    is_exact: bool
    # Whether no other roots exist.
    is_complete: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Ranking:
    """Clusters ranked by how many of their articles match a query."""

    request: ListRequest
    tuning: Tuning
    is_routed_by_root: bool
    # Matches the articles that are counted.
    counted: Query
    # Clusters without an article that matches this are skipped; None skips none.
    required: Query | None = None

    def first(self, depth: int) -> Requests[_RankedRoots]:
        """Rank the first `depth` clusters, requesting as few roots from each shard as suffice."""
        from_shard = depth
        while True:
            ranked = yield from self._from_shards(depth, from_shard)
            if ranked.is_exact or from_shard >= self.tuning.max_roots:
                return ranked
            from_shard = min(self.tuning.max_roots, max(8 * from_shard, self.tuning.first_roots))

    def _from_shards(self, depth: int, from_shard: int) -> Requests[_RankedRoots]:
        """Rank clusters from the first `from_shard` roots of each shard."""
        answer = yield from self._search(self.counted, size=from_shard, from_shard=from_shard)
        sent = answer["aggregations"]["roots"]
        buckets: list[_Bucket] = sent["buckets"]
        is_on_one_shard = answer["_shards"]["total"] == 1 or self.is_routed_by_root
        # If no shard left out a root, the sums are exact.
        is_exact = is_on_one_shard or sent["doc_count_error_upper_bound"] == 0
        is_complete = is_exact and not sent["sum_other_doc_count"] and len(buckets) <= depth
        if not is_exact and self._is_descending and buckets:
            buckets, is_exact = yield from self._recounted(sent, depth, is_cut=len(buckets) == from_shard)
        roots = [
            bucket["key"]
            for bucket in buckets[:depth]
            if self.required is None or bucket["required"]["doc_count"]
        ]
        return _RankedRoots(roots=roots, is_exact=is_exact, is_complete=is_complete)

    def _recounted(
        self, sent: dict[str, Any], depth: int, *, is_cut: bool
    ) -> Requests[tuple[list[_Bucket], bool]]:
        """Count exactly the roots that the shards sent; return them, and whether their order is proved.

        `is_cut` is whether the answer may leave out roots that the shards sent.
        """
        names = [bucket["key"] for bucket in sent["buckets"]]
        named = {"bool": {"must": [self.counted], "filter": [bodies.with_roots(names, self.request.fields)]}}
        answer = yield from self._search(named, size=min(depth, len(names)), from_shard=len(names))
        buckets = answer["aggregations"]["roots"]["buckets"]
        # A root that no shard sent has at most `doc_count_error_upper_bound` articles. A root that was sent
        # but left out of the answer also has at most the last bucket's count, on the shards that sent it.
        most_elsewhere = sent["doc_count_error_upper_bound"]
        if is_cut:
            most_elsewhere += sent["buckets"][-1]["doc_count"]
        return buckets, bool(buckets) and buckets[-1]["doc_count"] > most_elsewhere

    @property
    def _is_descending(self) -> bool:
        return self.request.sort == "similar-desc"

    def _search(self, counted: Query, *, size: int, from_shard: int) -> Requests[Any]:
        body = bodies.roots_by_count(
            counted,
            descending=self._is_descending,
            size=size,
            from_shard=from_shard,
            fields=self.request.fields,
            required=self.required,
        )
        (answer,) = yield from search(self.request.index, body)
        return answer


def _whole_clusters(ranking: _Ranking, depth: int, *, total_articles: int) -> Requests[_RankedRoots]:
    """Rank the clusters with a match by all their articles, matching or not."""
    if total_articles > ranking.tuning.few_articles:
        ranked = yield from _sifted(ranking, depth)
        if ranked is not None:
            return ranked
    roots = yield from _roots_with_a_match(ranking)
    named = bodies.with_roots(roots, ranking.request.fields)
    return (yield from dataclasses.replace(ranking, counted=named).first(depth))


def _sifted(ranking: _Ranking, depth: int) -> Requests[_RankedRoots | None]:
    """Rank all clusters, and skip those without a match; None if too few remain.

    Fast if very many articles match: then most of the largest clusters have a match.
    """
    every_cluster = dataclasses.replace(
        ranking, counted=within(None, ranking.request.fields), required=ranking.counted
    )
    tuning = ranking.tuning
    for wide in (max(tuning.first_roots, 2 * depth), tuning.max_roots):
        ranked = yield from every_cluster.first(wide)
        if len(ranked.roots) >= depth or ranked.is_complete:
            return dataclasses.replace(ranked, roots=ranked.roots[:depth])
    return None


def _roots_with_a_match(ranking: _Ranking) -> Requests[list[str]]:
    """Return the roots of all matching articles.

    Raises:
        SettingError: There are more than fit in one request.
    """
    request, most = ranking.request, ranking.tuning.max_roots
    body = bodies.roots_of(request.query, size=most, fields=request.fields)
    (answer,) = yield from search(request.index, body)
    roots = answer["aggregations"]["roots"]
    if roots["sum_other_doc_count"]:
        raise SettingError(
            f"the query matches more than {most:,} clusters, too many to sort by the size of whole clusters: "
            "sort by the count of matching articles, narrow the query, or sort by time or relevance"
        )
    return [bucket["key"] for bucket in roots["buckets"]]

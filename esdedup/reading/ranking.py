"""Ranks clusters by a count.

A terms aggregation gives the exact order on one shard, and on several shards if each cluster lies on one of
them (articles routed by root). Otherwise each shard has only part of each count. In that case, the roots that
the shards sent are counted again, exactly, and the shards' smallest counts bound the count of every root that
was not sent (Fagin's threshold algorithm). Until that bound proves the order, each shard sends more roots,
up to a limit. If the order is not proved at the limit, the result says that it is not exact.
"""

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, aggregate, recent, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading import list_request as bodies
from esdedup.reading.list_request import ListRequest
from esdedup.reading.queries import aggregation, within
from esdedup.reading.scope import Tuning


def ranked(request: ListRequest, depth: int) -> Requests["RankedRoots"]:
    """Return the roots of the first `depth` rows of a list by count."""
    ranking = _Ranking(request=request, counted=request.articles)
    return _by_sources(ranking, depth) if request.sort == "sources-desc" else _filtered(ranking, depth)


def _filtered(ranking: "_Ranking", depth: int) -> Requests["RankedRoots"]:
    """Rank until enough clusters pass the filters."""
    limit, most = depth, ranking.tuning.max_roots
    while True:
        found = yield from _ranked(ranking, limit)
        shown = yield from bodies.shown_roots(ranking.request, found.roots)
        left = [root for root in found.roots if root in shown]
        if len(left) >= depth or len(found.roots) < limit or limit >= most:
            return dataclasses.replace(found, roots=left[:depth])
        limit = min(most, max(4 * limit, ranking.tuning.first_roots))


def _by_sources(ranking: "_Ranking", depth: int) -> Requests["RankedRoots"]:
    """Rank by number of sources: count the largest clusters' sources until no other cluster can have more."""
    request, most = ranking.request, ranking.tuning.max_roots
    limit = max(2 * depth, min(ranking.tuning.first_roots, most))
    while True:
        found = yield from _ranked(ranking, limit)
        numbers = yield from bodies.numbers_of(request, found.roots)
        least = request.min_articles, request.min_sources
        # The sort is stable: clusters with equally many sources remain sorted by their articles.
        order = [root for root in found.roots if all(map(operator.ge, numbers.get(root, (0, 0)), least))]
        order.sort(key=lambda root: -numbers[root][1])
        fewest = min((articles for articles, _ in numbers.values()), default=0)
        # Other clusters have at most `fewest` articles, so at most as many sources, and they lose ties.
        is_all = len(found.roots) < limit or fewest < max(least)
        is_proved = is_all or (len(order) >= depth and numbers[order[depth - 1]][1] >= fewest)
        if is_proved or limit >= most:
            return dataclasses.replace(found, roots=order[:depth], is_exact=found.is_exact and is_proved)
        limit = min(most, 4 * limit)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RankedRoots:
    """Roots sorted by count."""

    roots: list[str]
    is_exact: bool
    # Whether no other roots exist.
    is_complete: bool = False
    # If the order is not proved, how many roots from each shard may prove it; None if no number can.
    next_from_shard: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Ranking:
    """Clusters ranked by how many of their articles match a query."""

    request: ListRequest
    # Matches the articles that are counted.
    counted: Query
    # Clusters without an article that matches this query are skipped; None skips no cluster.
    required: Query | None = None

    @property
    def tuning(self) -> Tuning:
        return self.request.tuning

    def first(self, depth: int) -> Requests[RankedRoots]:
        """Rank the first `depth` clusters, requesting only as many roots from each shard as needed."""
        from_shard = depth
        while True:
            found = yield from self._from_shards(depth, from_shard)
            if found.is_exact or found.next_from_shard is None or from_shard >= self.tuning.max_roots:
                return found
            from_shard = min(self.tuning.max_roots, found.next_from_shard)

    def _from_shards(self, depth: int, from_shard: int) -> Requests[RankedRoots]:
        """Rank clusters from the first `from_shard` roots of each shard."""
        answer = yield from self._search(
            self.counted, size=from_shard, from_shard=from_shard, least_of_shard=self._least
        )
        is_on_one_shard = answer["_shards"]["total"] == 1 or self.request.is_routed_by_root
        sent = answer["aggregations"]["roots"]
        buckets: list[dict[str, Any]] = sent["buckets"]
        # If the smallest roots come first, OpenSearch applies `shard_min_doc_count` only after the size.
        is_short = len(buckets) < from_shard and sent["sum_other_doc_count"]
        if self._least > 1 and (is_short or not is_on_one_shard):
            return (yield from self._smallest_of_large(depth))
        # If no shard left out a root, the sums are exact.
        is_exact = is_on_one_shard or sent["doc_count_error_upper_bound"] == 0
        others = sent["sum_other_doc_count"]
        is_complete = is_exact and not others and len(buckets) <= depth
        if not is_exact and self._is_descending and buckets:
            buckets, is_exact = yield from self._recounted(sent, depth, is_cut=len(buckets) == from_shard)
        roots = [bucket["key"] for bucket in buckets[:depth] if self._is_required(bucket)]
        most = max((bucket["doc_count"] for bucket in buckets), default=1)
        least = buckets[-1]["doc_count"] if buckets and self._is_descending else 0
        shards, following = answer["_shards"]["total"], None
        if shards >= least:
            # A root that no shard sent may have an article on each shard, so the shards must send all roots.
            following = self.tuning.max_roots if others <= self.tuning.max_roots * most else None
        # Sending n times as many roots usually divides a shard's smallest count by at most n.
        elif sent["doc_count_error_upper_bound"] * from_shard <= least * self.tuning.sent_roots // shards:
            following = max(8 * from_shard, self.tuning.first_roots)
        return RankedRoots(roots=roots, is_exact=is_exact, is_complete=is_complete, next_from_shard=following)

    def _smallest_of_large(self, depth: int) -> Requests[RankedRoots]:
        """Rank the smallest clusters with enough articles, by recounting the largest roots of each shard."""
        most = self.tuning.max_roots
        largest_first = dataclasses.replace(self.request, sort="similar-desc")
        ranking = dataclasses.replace(self, request=largest_first)
        answer = yield from ranking._search(self.counted, size=most, from_shard=most)
        sent = answer["aggregations"]["roots"]
        names = [bucket["key"] for bucket in sent["buckets"]]
        answer = yield from self._search(self._of(names), size=depth, from_shard=most)
        buckets = answer["aggregations"]["roots"]["buckets"]
        roots = [bucket["key"] for bucket in buckets if self._is_required(bucket)]
        # The error bound is the maximum count of a root that no shard sent.
        is_exact = sent["doc_count_error_upper_bound"] < self._least
        return RankedRoots(roots=roots, is_exact=is_exact, is_complete=is_exact and len(buckets) < depth)

    def _recounted(
        self, sent: dict[str, Any], depth: int, *, is_cut: bool
    ) -> Requests[tuple[list[dict[str, Any]], bool]]:
        """Recount the sent roots exactly; return their buckets, and whether their order is proved.

        If `is_cut`, the response may lack roots that shards sent.
        """
        names = [bucket["key"] for bucket in sent["buckets"]]
        answer = yield from self._search(self._of(names), size=min(depth, len(names)), from_shard=len(names))
        buckets = answer["aggregations"]["roots"]["buckets"]
        # A root that no shard sent has at most `doc_count_error_upper_bound` articles. A root that was sent
        # but left out of the response also has at most the last bucket's count, on the shards that sent it.
        most_elsewhere = sent["doc_count_error_upper_bound"]
        if is_cut:
            most_elsewhere += sent["buckets"][-1]["doc_count"]
        return buckets, bool(buckets) and buckets[-1]["doc_count"] > most_elsewhere

    @property
    def _is_descending(self) -> bool:
        return self.request.sort != "similar-asc"

    @property
    def _least(self) -> int:
        """The minimum size of a ranked cluster; in `similar-asc`, smaller clusters would come first."""
        return 1 if self._is_descending else self.request.min_articles

    def _is_required(self, bucket: dict[str, Any]) -> bool:
        return self.required is None or bool(bucket["required"]["doc_count"])

    def _of(self, roots: Sequence[str]) -> Query:
        return {"bool": {"must": [self.counted], "filter": [bodies.with_roots(roots, self.request.fields)]}}

    def _search(
        self, counted: Query, *, size: int, from_shard: int, least_of_shard: int = 1
    ) -> Requests[Any]:
        body = roots_by_count(
            counted,
            descending=self._is_descending,
            size=size,
            from_shard=from_shard,
            least=self._least,
            least_of_shard=least_of_shard,
            fields=self.request.fields,
            required=self.required,
        )
        (answer,) = yield from search(self.request.searched, body)
        return answer


def _ranked(ranking: _Ranking, depth: int) -> Requests[RankedRoots]:
    # Only the matching articles are counted, so their roots need not be known beforehand.
    request, few = ranking.request, ranking.tuning.few_articles
    if request.query is None or request.sort == "rising":
        is_by_name = request.sort == "similar-asc" and depth <= ranking.tuning.first_roots
        found = (yield from _smallest(request, depth)) if is_by_name else None
        return found or (yield from ranking.first(depth))
    terms = {"field": request.fields.cluster, "size": few, "execution_hint": "map"}
    # The search terminates early if more than `few` articles match.
    body = aggregation(request.articles, {"roots": {"terms": terms}}) | {"terminate_after": few}
    roots = yield from _roots_with_a_match(ranking, body)
    if roots is None:
        found = yield from _sifted(ranking, depth)
        if found is not None:
            return found
        most = ranking.tuning.max_roots
        roots = yield from _roots_with_a_match(ranking, bodies.matching_roots(ranking.request, size=most))
    if roots is None:
        raise SettingError(
            f"the query matches more than {ranking.tuning.max_roots:,} clusters, too many to sort by their "
            "size: narrow the query, or sort by time or relevance"
        )
    named = bodies.with_roots(roots, ranking.request.fields)
    return (yield from dataclasses.replace(ranking, counted=named).first(depth))


def _smallest(request: ListRequest, depth: int) -> Requests[RankedRoots | None]:
    """Rank clusters of the minimum size by name; return None if too few of the first names are so small.

    On several shards, always returns None: deeper pages may need another order, and would repeat rows.
    """
    size = min(10 * depth, request.tuning.first_roots)
    shards = (yield from recent(request.searched, {"size": 0}))["_shards"]["total"]
    if shards > 1 and not request.is_routed_by_root:
        return None
    by_name = {"size": size, "sources": [{"root": {"terms": {"field": request.fields.cluster}}}]}
    found = yield from aggregate(request.searched, {"match_all": {}}, {"roots": {"composite": by_name}})
    buckets, least = found["roots"]["buckets"], request.min_articles
    roots = [each["key"]["root"] for each in buckets if each["doc_count"] == least][:depth]
    return RankedRoots(roots=roots, is_exact=True) if len(roots) == depth else None


def _roots_with_a_match(ranking: _Ranking, body: Query) -> Requests[list[str] | None]:
    """Return the roots that a search finds, or None if it does not find all of them."""
    (answer,) = yield from search(ranking.request.searched, body)
    roots = answer["aggregations"]["roots"]
    if roots["sum_other_doc_count"] or answer.get("terminated_early"):
        return None
    return [bucket["key"] for bucket in roots["buckets"]]


def _sifted(ranking: _Ranking, depth: int) -> Requests[RankedRoots | None]:
    """Rank all clusters, skipping clusters without a match; return None if too few remain."""
    every_cluster = dataclasses.replace(
        ranking, counted=within(None, ranking.request.fields), required=ranking.counted
    )
    tuning = ranking.tuning
    for limit in (max(tuning.first_roots, 2 * depth), tuning.max_roots):
        found = yield from every_cluster.first(limit)
        if len(found.roots) >= depth or found.is_complete:
            return dataclasses.replace(found, roots=found.roots[:depth])
    return None


def roots_by_count(
    query: Query,
    *,
    descending: bool,
    size: int,
    fields: Fields,
    from_shard: int | None = None,
    least: int = 1,
    least_of_shard: int = 1,
    required: Query | None = None,
) -> Query:
    """Return the search for roots sorted by how many of their articles match; ties are sorted by name.

    Each shard sends `from_shard` roots (by default `size`) with at least `least_of_shard` matching articles
    there; roots with at least `least` in total are returned. Articles that match `required` are also counted.
    """
    by_count = [{"_count": "desc" if descending else "asc"}, {"_key": "asc"}]
    terms: Query = {
        "field": fields.cluster,
        "size": size,
        "order": by_count,
        "shard_size": from_shard or size,
    }
    if least > 1:
        terms |= {"min_doc_count": least, "shard_min_doc_count": least_of_shard}
    roots: Query = {"terms": terms}
    if required is not None:
        roots["aggs"] = {"required": {"filter": required}}
    return aggregation(query, {"roots": roots})

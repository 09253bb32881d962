"""What finds the articles on a page of the list, for each kind of sort.

By relevance, Elasticsearch collapses the matches to the best one of each cluster.

By time, articles are read in time order, and the first of each cluster becomes a row. Collapsing would visit
every match for each page; this visits about as many articles as the page has rows. Earlier pages need not be
remembered: an article is a row if it is the first match of its cluster, and one search over the clusters on
the page decides that. So cursors reach any depth. Where few articles become rows (`only`, or reprints of what
earlier pages show), a page is cut short before the whole index is read; its cursor goes on after the last
article that was read.

By count, a terms aggregation gives the exact order on one shard, and on several shards if each cluster lies
on one of them (articles routed by root). Otherwise each shard has only part of each count. Then the roots
that the shards sent are counted again, exactly, and the shards' smallest counts bound the count of every root
that was not sent (Fagin's threshold algorithm). Until that bound proves the order, each shard sends more
roots, up to a limit. If the order is not proved at the limit, the result says that it is not exact.
"""

import collections
import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

from esdedup.elastic import limits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading import list_request as bodies
from esdedup.reading.list_request import ListRequest, SortResult
from esdedup.reading.paging import Cursor
from esdedup.reading.queries import Hit, aggregation, place_of, root_of, within
from esdedup.reading.scope import ReadyIndex, Tuning

_MAX_CHUNK = 5_000
# The next chunk excludes the clusters with the most articles read so far, at most this many.
_MAX_EXCLUDED = 1_000


def sorted_articles(
    request: ListRequest, start: Cursor, ready: ReadyIndex, tuning: Tuning, *, beside: Sequence[Query]
) -> Requests[SortResult]:
    """Find the articles on a page; send other searches, the first of which counts them, beside its own."""
    if request.is_by_time:
        return (yield from _by_time(request, start, tuning, beside))
    if request.is_by_count:
        return (yield from _by_count(request, start, ready, tuning, beside))
    return (yield from _by_relevance(request, start, beside))


def _by_relevance(request: ListRequest, start: Cursor, beside: Sequence[Query]) -> Requests[SortResult]:
    body_of = bodies.first_of_each_root if request.dedup else bodies.articles
    # One extra row shows whether there is a next page; at Elasticsearch's limit there is none.
    size = min(request.size + 1, limits.MAX_HITS - start.offset)
    body = body_of(request, request.order, size=size, first=start.offset)
    answer, *answers = yield from search(request.searched, body, *beside)
    hits = answer["hits"]["hits"]
    return SortResult(
        hits=hits[: request.size],
        has_more=len(hits) > request.size,
        beside=answers,
    )


def _by_time(
    request: ListRequest, start: Cursor, tuning: Tuning, beside: Sequence[Query]
) -> Requests[SortResult]:
    # For a numbered page the pages before it are read too. One extra row shows whether there is a next page.
    skipped = 0 if start.place is not None else start.offset
    needed = skipped + request.size + 1
    # The number of articles read so far, by root.
    read: collections.Counter[str] = collections.Counter()
    rows: list[Hit] = []
    left = tuning.read_articles + tuning.read_articles_a_row * needed
    place, chunk, is_last = start.place, min(2 * needed, _MAX_CHUNK, left), False
    answers: list[Any] = []
    while len(rows) < needed and not is_last and left:
        # The clusters with the most articles read so far are excluded.
        excluded = [root for root, times in read.most_common(_MAX_EXCLUDED) if times > 1]
        searches = [bodies.articles(request, request.order, size=chunk, after=place, without=excluded)]
        searches += [] if answers else beside
        answer, *others = yield from search(request.searched, *searches)
        answers += others
        hits = candidates = answer["hits"]["hits"]
        if request.dedup:
            candidates = _first_of_each_root(hits, read, request)
            if start.place is not None:
                candidates = yield from _without_rows_of_earlier_pages(candidates, request)
        shown = yield from bodies.shown_roots(request, [root_of(hit, request.fields) for hit in candidates])
        rows += [hit for hit in candidates if root_of(hit, request.fields) in shown]
        is_last = len(hits) < chunk
        if not is_last:
            left -= chunk
            place, chunk = hits[-1]["sort"], min(2 * chunk, _MAX_CHUNK, left)
    page = rows[skipped : skipped + request.size]
    is_full = len(rows) >= needed
    if is_full:
        place = page[-1]["sort"]
    return SortResult(
        hits=page,
        place=None if is_last and not is_full else place,
        has_more=is_full or not is_last,
        beside=answers,
        is_cut_short=len(page) < request.size and not is_last,
    )


def _first_of_each_root(hits: list[Hit], read: collections.Counter[str], request: ListRequest) -> list[Hit]:
    """Return the first hit of each root that is not in `read`, and count all hits in `read`."""
    firsts: list[Hit] = []
    for hit in hits:
        root = root_of(hit, request.fields)
        if root not in read:
            firsts.append(hit)
        read[root] += 1
    return firsts


def _without_rows_of_earlier_pages(hits: list[Hit], request: ListRequest) -> Requests[list[Hit]]:
    """Return the hits that are the first match of their cluster in the whole list."""
    if not hits:
        return []
    roots = [root_of(hit, request.fields) for hit in hits]
    (answer,) = yield from search(request.searched, bodies.heads(request, request.order, roots))
    firsts = set(map(place_of, answer["hits"]["hits"]))
    return [hit for hit in hits if place_of(hit) in firsts]


def _by_count(
    request: ListRequest, start: Cursor, ready: ReadyIndex, tuning: Tuning, beside: Sequence[Query]
) -> Requests[SortResult]:
    end = min(start.offset + request.size, limits.MAX_HITS)
    answers: list[Any] = []
    if not request.ranks_what_matches:
        answers = yield from search(request.searched, *beside[:1])
    ranking = _Ranking(
        request=request, tuning=tuning, is_routed_by_root=ready.is_routed_by_root, counted=request.articles
    )
    # One more than the page needs shows whether there is a next page.
    total_articles = answers[0]["hits"]["total"]["value"] if answers else None
    if request.sort == "sources-desc":
        ranked = yield from _by_sources(ranking, end + 1, total_articles=total_articles)
    else:
        ranked = yield from _shown(ranking, end + 1, total_articles=total_articles)
    roots = ranked.roots[start.offset : end]
    of_heads = [bodies.heads(request, request.order_of_heads, roots)] if roots else []
    found = yield from search(request.searched, *of_heads, *beside[len(answers) :])
    answers += found[len(of_heads) :]
    hits = (hit for each in found[: len(of_heads)] for hit in each["hits"]["hits"])
    heads = {root_of(hit, request.fields): hit for hit in hits}
    return SortResult(
        # A cluster that was deleted meanwhile has no head.
        hits=[heads[root] for root in roots if root in heads],
        has_more=end < min(len(ranked.roots), limits.MAX_HITS),
        beside=answers,
        order_exact=ranked.is_exact,
        are_heads=True,
    )


def _ranked(ranking: "_Ranking", depth: int, *, total_articles: int | None) -> Requests["_RankedRoots"]:
    if total_articles is None:
        return (yield from ranking.first(depth))
    return (yield from _whole_clusters(ranking, depth, total_articles=total_articles))


def _shown(ranking: "_Ranking", depth: int, *, total_articles: int | None) -> Requests["_RankedRoots"]:
    """Rank until so many clusters are left that have the numbers which are asked for."""
    wide, most = depth, ranking.tuning.max_roots
    while True:
        ranked = yield from _ranked(ranking, wide, total_articles=total_articles)
        shown = yield from bodies.shown_roots(ranking.request, ranked.roots)
        left = [root for root in ranked.roots if root in shown]
        if len(left) >= depth or len(ranked.roots) < wide or wide >= most:
            return dataclasses.replace(ranked, roots=left[:depth])
        wide = min(most, max(4 * wide, ranking.tuning.first_roots))


def _by_sources(ranking: "_Ranking", depth: int, *, total_articles: int | None) -> Requests["_RankedRoots"]:
    """Rank by the number of sources, of which a cluster has no more than articles.

    So the clusters with the most articles are counted, until no other one can have as many sources.
    """
    request, most = ranking.request, ranking.tuning.max_roots
    wide = max(2 * depth, min(ranking.tuning.first_roots, most))
    while True:
        ranked = yield from _ranked(ranking, wide, total_articles=total_articles)
        numbers = yield from bodies.numbers_of(request, ranked.roots)
        least = request.min_articles, request.min_sources
        # Those with as many sources stay in the order of their articles.
        order = [root for root in ranked.roots if all(map(operator.ge, numbers.get(root, (0, 0)), least))]
        order.sort(key=lambda root: -numbers[root][1])
        fewest = min((articles for articles, _ in numbers.values()), default=0)
        is_all = len(ranked.roots) < wide
        is_proved = is_all or (len(order) >= depth and numbers[order[depth - 1]][1] > fewest)
        if is_proved or wide >= most:
            return dataclasses.replace(ranked, roots=order[:depth], is_exact=ranked.is_exact and is_proved)
        wide = min(most, 4 * wide)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RankedRoots:
    """Roots sorted by count."""

    roots: list[str]
    is_exact: bool
    # Whether no other roots exist.
    is_complete: bool
    # How many roots from each shard may prove the order, if these do not; None if none can.
    next_from_shard: int | None


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
            if ranked.is_exact or ranked.next_from_shard is None or from_shard >= self.tuning.max_roots:
                return ranked
            from_shard = min(self.tuning.max_roots, ranked.next_from_shard)

    def _from_shards(self, depth: int, from_shard: int) -> Requests[_RankedRoots]:
        """Rank clusters from the first `from_shard` roots of each shard."""
        answer = yield from self._search(self.counted, size=from_shard, from_shard=from_shard)
        sent = answer["aggregations"]["roots"]
        buckets: list[dict[str, Any]] = sent["buckets"]
        is_on_one_shard = answer["_shards"]["total"] == 1 or self.is_routed_by_root
        # If no shard left out a root, the sums are exact.
        is_exact = is_on_one_shard or sent["doc_count_error_upper_bound"] == 0
        others = sent["sum_other_doc_count"]
        is_complete = is_exact and not others and len(buckets) <= depth
        if not is_exact and self._is_descending and buckets:
            buckets, is_exact = yield from self._recounted(sent, depth, is_cut=len(buckets) == from_shard)
        roots = [
            bucket["key"]
            for bucket in buckets[:depth]
            if self.required is None or bucket["required"]["doc_count"]
        ]
        most = max((bucket["doc_count"] for bucket in buckets), default=1)
        least = buckets[-1]["doc_count"] if buckets and self._is_descending else 0
        shards, following = answer["_shards"]["total"], None
        if shards >= least:
            # A root that no shard sends may have one article on each, unless the shards send all their roots.
            following = self.tuning.max_roots if others <= self.tuning.max_roots * most else None
        # Counts seldom fall faster than ranks grow.
        elif sent["doc_count_error_upper_bound"] * from_shard <= least * self.tuning.sent_roots // shards:
            following = max(8 * from_shard, self.tuning.first_roots)
        return _RankedRoots(
            roots=roots, is_exact=is_exact, is_complete=is_complete, next_from_shard=following
        )

    def _recounted(
        self, sent: dict[str, Any], depth: int, *, is_cut: bool
    ) -> Requests[tuple[list[dict[str, Any]], bool]]:
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
        return self.request.sort != "similar-asc"

    def _search(self, counted: Query, *, size: int, from_shard: int) -> Requests[Any]:
        body = roots_by_count(
            counted,
            descending=self._is_descending,
            size=size,
            from_shard=from_shard,
            fields=self.request.fields,
            required=self.required,
        )
        (answer,) = yield from search(self.request.searched, body)
        return answer


def _whole_clusters(ranking: _Ranking, depth: int, *, total_articles: int) -> Requests[_RankedRoots]:
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
    """Return the roots of all matching articles, unless they are more than fit in one request."""
    most = ranking.tuning.max_roots
    (answer,) = yield from search(ranking.request.searched, bodies.roots_of(ranking.request, size=most))
    roots = answer["aggregations"]["roots"]
    if roots["sum_other_doc_count"]:
        raise SettingError(
            f"the query matches more than {most:,} clusters, too many to sort by the size of whole clusters: "
            "sort by the count of matching articles, narrow the query, or sort by time or relevance"
        )
    return [bucket["key"] for bucket in roots["buckets"]]


def roots_by_count(
    query: Query,
    *,
    descending: bool,
    size: int,
    fields: Fields,
    from_shard: int | None = None,
    required: Query | None = None,
) -> Query:
    """Return the search for roots sorted by how many of their articles match; ties are sorted by name.

    Each shard sends `from_shard` roots (None: `size`). Of each root, the articles that match `required` are
    counted separately.
    """
    by_count = [{"_count": "desc" if descending else "asc"}, {"_key": "asc"}]
    terms: Query = {
        "field": fields.cluster,
        "size": size,
        "order": by_count,
        "shard_size": from_shard or size,
    }
    roots: Query = {"terms": terms}
    if required is not None:
        roots["aggs"] = {"required": {"filter": required}}
    return aggregation(query, {"roots": roots})

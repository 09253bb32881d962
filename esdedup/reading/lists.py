"""Reads a page of the deduplicated list: the sort finds articles, which become rows with counts."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import UNREAD, Keep, Query, Recall, Requests, carrying, chunks, search
from esdedup.fields import PARTITIONS
from esdedup.reading import list_request as bodies
from esdedup.reading import queries
from esdedup.reading.articles import including
from esdedup.reading.list_request import Head, ListRequest, Sort, SortResult
from esdedup.reading.paging import PageNumber, PageSize, Paging, SourceIncludes
from esdedup.reading.results import Page, Row
from esdedup.reading.scope import IndexName, Scope
from esdedup.reading.sorts import sorted_articles

# An estimate above `exact_rows` times this factor is returned without counting.
_ESTIMATE_MARGIN = 1.1


def list_rows(
    scope: Scope,
    index: IndexName,
    *,
    query: Query | None = None,
    sort: Sort | None = None,
    head: Head | None = None,
    min_similar: int = 0,
    min_sources: int = 0,
    dedup: bool = True,
    details: bool = False,
    arrived_since: str | None = None,
    source_includes: SourceIncludes = (),
    page: PageNumber = 1,
    size: PageSize = 20,
    after: str | None = None,
) -> Requests[Page]:
    """Return a page of the deduplicated list: one row for each cluster with a matching article.

    The counts of a row are exact on any number of shards and indices. The order by count is exact on
    one shard, and on several shards of one index with articles routed by root. Elsewhere, for example
    behind an alias of several indices that may share clusters, the order is exact if the shards'
    counts prove it; `Page.order_exact` says whether it is exact.

    Args:
        query: Any Elasticsearch query; None for all articles.
        sort: What decides a row's position: its best match (``relevance``), its newest or oldest match,
            or a count: of similar articles, of sources, or (``rising``) of matching articles published in the
            last 24 hours, by Elasticsearch's clock. Defaults to ``relevance`` if the query ranks articles
            (has words, not only filters), else to ``newest``.
        head: Which match a row shows: the ``best``, the ``newest``, the ``earliest`` (the
            original) or the ``longest``. Defaults to the match that decides the row's position, or
            to the newest in sorts by count.
        min_similar: Leave out rows with fewer similar articles than this.
        min_sources: Leave out rows of clusters with fewer sources than this; at most 1,000.
        dedup: False gives each article a row of its own, with the counts of its cluster.
        details: Also return the details of each row: a snippet of its text with the search terms
            marked, and the earliest, the latest and the most different article of its cluster, its largest
            sources, and its spread over time. This takes two more requests, however many rows there are.
        arrived_since: Also count the articles that arrived after this moment, ISO 8601: in the cluster of
            each row, and among all matches. Articles fed with `backfill` arrived when they were published.
        after: The cursor `next` of the previous page, in place of `page`. With sorts by
            time, cursors reach any depth.

    Raises:
        SettingError: A value is invalid, two contradict each other, or the page is too deep.
    """
    paging = Paging(page=page, size=size, after=after, source_includes=source_includes)
    request = ListRequest(
        index=index,
        query=query,
        sort=sort or bodies.default_sort(query),
        head=head,
        min_similar=min_similar,
        min_sources=min_sources,
        dedup=dedup,
        details=details,
        arrived_since_ms=queries.moment_ms(arrived_since),
        paging=paging,
    )
    start = request.start()
    ready = yield from scope.check(index)
    if request.is_by_count and ready.is_routed_by_root:
        # Read the mappings again: if an alias has just changed, old ones could make an order seem exact.
        ready = yield from scope.check(index, is_fresh=True)
    field = ready.source_field
    if min_sources or request.sort == "sources-desc":
        field = ready.required_source_field()
    request = dataclasses.replace(
        request,
        searched=ready.index,
        fields=ready.fields,
        source_field=field,
        is_routed_by_root=ready.is_routed_by_root,
        tuning=scope.tuning,
    )
    counts = [bodies.count_articles(request), count_not_enriched(request)]
    if request.arrived_since is not None:
        arrived = bodies.count_articles(request)
        arrived["query"]["bool"]["filter"].append(request.arrived_since)
        counts.append(arrived)
    # Whether each cluster is on one shard; None until the first response shows the number of shards.
    is_colocated = ready.is_routed_by_root or (None if len(ready.mappings) == 1 else False)
    first_count, counted = yield from _first_count(request, is_colocated=is_colocated is not False)
    result, answers = yield from carrying(
        sorted_articles(request, start), request.searched, *counts, *first_count
    )
    total_articles, not_enriched, *new = (each["hits"]["total"]["value"] for each in answers[: len(counts)])
    for body, answer in zip(first_count, answers[len(counts) :], strict=True):
        counted = answer
        if not bodies.ranks_articles(request.query):
            yield Keep(index=request.searched, body=body, answer=answer)
    if is_colocated is None:
        is_colocated = answers[0]["_shards"]["total"] == 1
        if not is_colocated and bodies.ranks_articles(request.query):
            counted = None
    counter = _RowCounter(request, total_articles, first=counted, is_colocated=is_colocated)
    rows, for_rows = yield from _read_rows(request, result, counter)
    total_rows, is_exact = yield from counter.rows(for_rows)
    if request.details and rows:
        # Imported here because only details compare texts, which loads the fingerprinter.
        from esdedup.reading.row_details import with_details

        rows = yield from with_details(rows, request)
    following = start.next(rows=request.paging.size, place=result.place)
    found = Page(
        rows=rows,
        total_rows=total_rows,
        total_rows_exact=is_exact,
        total_articles=total_articles,
        not_enriched=not_enriched,
        not_set_up=ready.not_set_up,
        new_articles=new[0] if new else None,
        order_exact=result.order_exact,
        cut_short=result.is_cut_short,
        page=start.page,
        size=request.paging.size,
        sort=request.sort,
        next=request.write(following) if result.has_more else None,
    )
    return (yield from including(found, index, source_includes))


def _first_count(request: ListRequest, *, is_colocated: bool) -> Requests[tuple[list[Query], Any]]:
    """Return the search that counts rows, to send with the first request, or its cached result.

    Searches for words match few articles, so their rows are counted; otherwise, rows are estimated.
    """
    if not request.dedup:
        return [], None
    if bodies.ranks_articles(request.query):
        # Rows are counted again if several shards respond.
        return [_count_of_few(request, is_colocated=is_colocated)], None
    body = estimate_rows(request, partitions=request.tuning.estimate_partitions)
    known = yield Recall(index=request.searched, body=body)
    return [] if known else [body], known


def _read_rows(
    request: ListRequest, result: SortResult, counter: "_RowCounter"
) -> Requests[tuple[tuple[Row, ...], Any]]:
    """Read the rows' values in one request; return the rows, and the response that counts all rows."""
    roots = list(dict.fromkeys(root for root, _ in result.rows))
    unknown = [root for root, hit in result.rows if hit is None]
    groups = [
        [bodies.heads(request, request.order_of_heads, unknown)] if unknown else [],
        [count_clusters(request, each) for each in chunks(roots, bodies.ROOTS_IN_A_SEARCH)],
        counter.searches(),
    ]
    searches = list(itertools.chain.from_iterable(groups))
    answers = iter((yield from search(request.searched, *searches)) if searches else ())
    for_heads, for_clusters, for_rows = (list(itertools.islice(answers, len(group))) for group in groups)
    shown = {queries.root_of(hit, request.fields): hit for each in for_heads for hit in each["hits"]["hits"]}
    # Values of the fields of `Row`, by root.
    counts = {
        bucket["key"]: {
            "similar": bucket["doc_count"] - 1,
            "matching": bucket["matching"]["doc_count"],
            "sources": bucket["sources"]["count"] if "sources" in bucket else None,
            "new_articles": bucket["new"]["doc_count"] if "new" in bucket else None,
            "first": queries.moment_of(bucket["first"]),
            "last": queries.moment_of(bucket["last"]),
        }
        for answer in for_clusters
        for bucket in answer["aggregations"]["roots"]["buckets"]
    }
    rows = tuple(
        Row(**queries.values_of(found, request.fields), **counts[root])
        for root, hit in result.rows
        # A cluster that has just been deleted has no article or no counts.
        if (found := hit or shown.get(root)) and root in counts
    )
    return rows, next(iter(for_rows), counter.first)


@dataclasses.dataclass(frozen=True)
class _RowCounter:
    """Counts or estimates the rows on all pages of a list."""

    request: ListRequest
    total_articles: int
    # The response to the search of `_first_count`; None if it cannot be used.
    first: Any
    # Whether each cluster is on one shard.
    is_colocated: bool

    def searches(self) -> list[Query]:
        """Return the search that counts or estimates rows; empty if the first request already did."""
        request, tuning = self.request, self.request.tuning
        if not request.dedup:
            return []
        has_counted_few = bodies.ranks_articles(request.query)
        if self.total_articles <= tuning.few_articles:
            if has_counted_few and self.first is not None:
                return []
            return [_count_of_few(request, is_colocated=self.is_colocated)]
        if self.total_articles > tuning.many_articles:
            return [estimate_rows(request, partitions=tuning.estimate_partitions)] if has_counted_few else []
        return [estimate_rows(request)]

    def rows(self, answer: Any) -> Requests[tuple[int, bool]]:
        if not self.request.dedup:
            return self.total_articles, True
        if self.total_articles <= self.request.tuning.few_articles:
            found = answer["aggregations"]["rows"]
            rows, is_exact = int(found["count"] if "count" in found else found["doc_count"]), True
        else:
            rows, is_exact = yield from self._counted_or_estimated(answer)
        if self.request.is_filtered:
            rows, is_exact = yield from self._count_filtered(rows)
        return rows, is_exact

    def _counted_or_estimated(self, answer: Any) -> Requests[tuple[int, bool]]:
        """Return the number of rows, counted if the estimate is low enough, and whether it is exact."""
        request, tuning = self.request, self.request.tuning
        rows = int(answer["aggregations"]["rows"]["value"])
        if self.total_articles > tuning.many_articles:
            rows *= PARTITIONS // tuning.estimate_partitions
            if rows < 4 * tuning.exact_rows:
                # There are too few rows to estimate from some partitions, or the partition field is missing.
                (answer,) = yield from search(request.searched, estimate_rows(request))
                rows = int(answer["aggregations"]["rows"]["value"])
        if rows > _ESTIMATE_MARGIN * tuning.exact_rows:
            return rows, False
        body = count_rows(request, up_to=tuning.exact_rows)
        (answer,) = yield from search(request.searched, body)
        counted = int(answer["aggregations"]["rows"]["count"])
        return (counted, True) if counted <= tuning.exact_rows else (rows, False)

    def _count_filtered(self, rows: int) -> Requests[tuple[int, bool]]:
        """Return how many rows pass the filters, estimated if many, and whether the number is exact."""
        request, tuning = self.request, self.request.tuning
        is_exact = rows <= tuning.exact_rows
        partitions = None if is_exact else max(1, PARTITIONS * tuning.inspected_roots // rows)
        body = bodies.matching_roots(request, size=tuning.max_roots, partitions=partitions)
        (answer,) = yield from search(request.searched, body)
        roots = [bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]]
        if not roots:
            return 0, is_exact
        kept = len((yield from bodies.shown_roots(request, roots)))
        return (kept, True) if partitions is None else (kept * PARTITIONS // partitions, False)


def count_clusters(request: ListRequest, roots: Sequence[str]) -> Query:
    """Return the search that counts the articles of each root: all, matching and, if requested, new ones."""
    fields = request.fields
    aggs: Query = {"matching": {"filter": request.articles}, **queries.first_and_last(fields)}
    if request.arrived_since is not None:
        aggs["new"] = {"filter": request.arrived_since}
    if request.source_field is not None:
        aggs |= bodies.count_sources_of_each(request)
    # The default execution hint would allocate a counter for every root of the index.
    terms = {"field": fields.cluster, "size": len(roots), "execution_hint": "map"}
    return queries.aggregation(bodies.with_roots(roots, fields), {"roots": {"terms": terms, "aggs": aggs}})


def _count_of_few(request: ListRequest, *, is_colocated: bool) -> Query:
    tuning = request.tuning
    if is_colocated:
        return count_few_rows(request, most=tuning.few_articles)
    return count_rows(request, up_to=tuning.exact_rows, few=tuning.few_articles)


def count_few_rows(request: ListRequest, *, most: int) -> Query:
    """Return the search that counts the roots of at most `most` matches by sampling one article per root.

    This is much faster than `count_rows`, but wrong if more articles match, or if clusters span shards.
    """
    one_of_each = {
        "field": request.fields.cluster,
        "max_docs_per_value": 1,
        "shard_size": most,
        "execution_hint": "global_ordinals",
    }
    # A sampler must contain an aggregation.
    rows = {"diversified_sampler": one_of_each, "aggs": {UNREAD: {"filter": {"match_none": {}}}}}
    # A filter saves computing scores: any article of a root may be the sample.
    query = {"bool": {"filter": [request.articles]}}
    return queries.aggregation(query, {"rows": rows}) | {"terminate_after": most}


def count_rows(request: ListRequest, *, up_to: int, few: int | None = None) -> Query:
    """Return the search that counts roots exactly, up to `up_to` + 1.

    With `few`, the search visits only the roots of matches, and stops after `few` matches.
    """
    terms: Query = {"field": request.fields.cluster, "size": up_to + 1}
    body = queries.aggregation(
        request.articles, {UNREAD: {"terms": terms}, "rows": queries.number_of_unread()}
    )
    if few is not None:
        terms["execution_hint"] = "map"
        body["terminate_after"] = few
    return body


def estimate_rows(request: ListRequest, *, partitions: int | None = None) -> Query:
    """Return the search that estimates the number of roots from `partitions` of 256 partitions, or all."""
    estimate = {"cardinality": {"field": request.fields.cluster, "precision_threshold": 40_000}}
    return queries.aggregation(bodies.in_partitions(request, partitions), {"rows": estimate})


def count_not_enriched(request: ListRequest) -> Query:
    """Return the search that counts the articles that match but have no root, and so are in no row."""
    without_root = {"exists": {"field": request.fields.cluster}}
    matching = [request.query] if request.query else []
    return bodies.count_articles(request) | {"query": {"bool": {"must": matching, "must_not": without_root}}}

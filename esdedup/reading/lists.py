"""A page of the list with dedup: its sort finds articles, which become rows with counts."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from esdedup.elastic import limits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.by_count import rows_by_count
from esdedup.reading.by_time import rows_by_time
from esdedup.reading.counts import ListCounter, Totals
from esdedup.reading.hits import Hit, root_of, values_of
from esdedup.reading.included import check_names, including
from esdedup.reading.list_request import (
    Counting,
    Head,
    ListRequest,
    Only,
    Sort,
    SortResult,
    default_sort,
)
from esdedup.reading.paging import Cursor, Paging
from esdedup.reading.queries import moment_ms
from esdedup.reading.results import Page, Row
from esdedup.reading.scope import ReadyIndex, Scope


def list_rows(
    scope: Scope,
    index: str,
    *,
    query: Query | None = None,
    sort: Sort | None = None,
    head: Head | None = None,
    counting: Counting = "similar",
    only: Only | None = None,
    dedup: bool = True,
    details: bool = False,
    arrived_since: str | None = None,
    source_includes: Sequence[str] = (),
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[Page]:
    """Return a page of the list with dedup: one row for each cluster with a matching article.

    The counts of a row are exact on any number of shards and indices. The order by count is exact on
    one shard, and on several shards of one index with articles routed by root. An alias of several
    indices loses that guarantee, since a cluster may lie in more than one of them. Otherwise the
    order is exact if the shards' answers prove it; `Page.order_exact` says whether it is.

    Args:
        index: An index, alias or pattern.
        query: Any query of Elasticsearch; None for all articles.
        sort: What decides a row's position: its best match (``relevance``), its newest or oldest match,
            or a count. None: ``relevance`` if the query ranks articles (has words, not only
            filters) and `only` is not given, else ``newest``.
        head: Which match a row shows: the ``best``, the ``newest``, the ``earliest`` (the
            original) or the ``longest``. None: the one that decides the row's position; for
            counts, the newest.
        counting: What the sorts by count compare: all articles of a cluster (``similar``), or those
            that match the query (``matching``); with other sorts, only ``similar`` is accepted.
        only: Show only rows with ``similar`` articles, or only rows of ``single`` articles; needs a sort
            by time.
        dedup: False gives each article a row of its own, with the same counts.
        details: Also return what a row unfolds to: some lines of its text, with the searched words
            marked, and of its cluster the earliest, the latest and the most different article, the
            largest sources, and its spread over time. That takes two more requests, whatever the number
            of rows.
        arrived_since: Also count the articles that arrived after this moment, ISO 8601: those of each
            row's cluster, and all that match. With `backfill` an article arrived when it was published.
        source_includes: Names of further fields of the articles, which each row then has in `included`;
            at most 20.
        page: From 1; `page` times `size` is at most 10,000.
        size: Rows on a page, at most 1,000.
        after: The cursor `next` of the previous page, in place of `page`. With sorts by
            time, cursors reach any depth.

    Raises:
        SettingError: A value is invalid, two contradict each other, or the page lies too deep.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    request = ListRequest(
        index=index,
        query=query,
        sort=default_sort(query, only=only) if sort is None else sort,
        head=head,
        counting=counting,
        only=only,
        dedup=dedup,
        details=details,
        arrived_since_ms=moment_ms(arrived_since),
        paging=Paging(page=page, size=size, after=after),
    )
    check_names(source_includes)
    found = yield from _page_of(scope, request)
    return (yield from including(found, index, source_includes))


def _page_of(scope: Scope, request: ListRequest) -> Requests[Page]:
    """Find the articles on a page, and count."""
    start = request.start()
    # A cached alias, some seconds old, could make an order by count wrongly count as exact.
    ready = yield from scope.ready(request.index, is_fresh=request.is_by_count)
    request = dataclasses.replace(request, fields=ready.fields)
    result = yield from _sorted(scope, request, start, ready)
    counted = yield from _with_counts(scope, request, result, ready)
    rows, totals = counted.rows, counted.totals
    if request.details and rows:
        # Only details compare texts, which needs what makes fingerprints.
        from esdedup.reading.row_details import with_details

        rows = yield from with_details(rows, request, source_field=ready.source_field)
    following = start.next(rows=request.size, place=result.place)
    return Page(
        rows=rows,
        total_rows=totals.rows,
        total_rows_exact=totals.rows_exact,
        total_articles=totals.articles,
        not_enriched=counted.not_enriched,
        new_articles=counted.new_articles,
        order_exact=result.order_exact,
        cut_short=result.is_cut_short,
        page=start.page,
        size=request.size,
        sort=request.sort,
        next=request.write(following) if result.has_more else None,
    )


def _sorted(scope: Scope, request: ListRequest, start: Cursor, ready: ReadyIndex) -> Requests[SortResult]:
    """Find the articles on the page."""
    if request.is_by_time:
        return (yield from rows_by_time(request, start, scope.tuning))
    if request.is_by_count:
        return (yield from rows_by_count(request, start, ready, scope.tuning))
    return (yield from _rows_by_relevance(request, start))


def _rows_by_relevance(request: ListRequest, start: Cursor) -> Requests[SortResult]:
    """Let Elasticsearch collapse the matches to the best one of each cluster."""
    fields = request.fields
    body_of = bodies.first_of_each_root if request.dedup else bodies.articles
    # One extra row shows whether there is a next page; at Elasticsearch's limit there is none.
    size = min(request.size + 1, limits.MAX_HITS - start.offset)
    answer, count = yield from search(
        request.index,
        body_of(request.query, by=request.order, first=start.offset, size=size, fields=fields),
        bodies.count_articles(request.query, fields=fields),
    )
    hits = answer["hits"]["hits"]
    return SortResult(
        hits=hits[: request.size],
        has_more=len(hits) > request.size,
        total_articles=count["hits"]["total"]["value"],
    )


class _CountedRows(NamedTuple):
    """The rows of a page, and what is counted over all pages."""

    rows: tuple[Row, ...]
    totals: Totals
    not_enriched: int
    new_articles: int | None


def _with_counts(
    scope: Scope, request: ListRequest, result: SortResult, ready: ReadyIndex
) -> Requests[_CountedRows]:
    """Turn articles into rows, and count all others, in few requests."""
    roots = [root_of(hit, request.fields) for hit in result.hits]
    counter = ListCounter(request, scope.tuning, total_articles=result.total_articles)
    for_heads, for_clusters, for_rows, for_articles = yield from _search_together(
        request.index,
        _heads_body(request, result, roots),
        counter.bodies_for_clusters(list(dict.fromkeys(roots)), ready.source_field),
        counter.bodies_for_rows(),
        _articles_bodies(request),
    )
    heads = _heads_by_root(for_heads, request)
    counts = counter.counts_of(for_clusters)
    rows = tuple(
        Row(**values_of(heads.get(root, hit), request.fields), **counts[root])
        for root, hit in zip(roots, result.hits, strict=True)
        # A cluster that was deleted meanwhile has no counts.
        if root in counts
    )
    totals = yield from counter.totals(for_rows[0] if for_rows else None)
    missing, *new = (each["hits"]["total"]["value"] for each in for_articles)
    return _CountedRows(rows, totals, missing, next(iter(new), None))


def _articles_bodies(request: ListRequest) -> list[Query]:
    """Return the searches that count articles without a root, and if asked for those that are new."""
    found = [bodies.count_not_enriched(request.query, fields=request.fields)]
    if request.arrived_since_ms is not None:
        found.append(
            bodies.count_new(request.query, since_ms=request.arrived_since_ms, fields=request.fields)
        )
    return found


def _search_together(index: str, *groups: list[Query]) -> Requests[list[list[Any]]]:
    """Run groups of searches in one request; return the answers of each group."""
    searches = list(itertools.chain.from_iterable(groups))
    answers = iter((yield from search(index, *searches)))
    return [list(itertools.islice(answers, len(group))) for group in groups]


def _heads_body(request: ListRequest, result: SortResult, roots: list[str]) -> list[Query]:
    """Return the search for the articles that rows show, none if the sort already returned them."""
    has_heads = result.are_heads or request.order_of_heads == request.order
    if not request.dedup or has_heads or not roots:
        return []
    return [bodies.heads(roots, query=request.query, by=request.order_of_heads, fields=request.fields)]


def _heads_by_root(answers: list[Any], request: ListRequest) -> dict[str, Hit]:
    return {root_of(hit, request.fields): hit for answer in answers for hit in answer["hits"]["hits"]}

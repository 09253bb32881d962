"""A page of the list with dedup: its sort finds articles, which become rows with counts."""

import dataclasses
import itertools
from typing import Any, NamedTuple

from esdedup.elastic.requests import Query, Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.by_count import rows_by_count
from esdedup.reading.by_relevance import rows_by_relevance
from esdedup.reading.by_time import rows_by_time
from esdedup.reading.counts import ListCounter, Totals
from esdedup.reading.cursor import Cursor
from esdedup.reading.hits import Hit, root_of, values_of
from esdedup.reading.list_request import ListRequest
from esdedup.reading.results import Page, Row
from esdedup.reading.row_details import with_details
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.sort_result import SortResult


def list_rows(scope: Scope, request: ListRequest) -> Requests[Page]:
    """Return a page; see `Operations.list`."""
    start = request.start()
    # A cached alias, some seconds old, could make an order by count wrongly count as exact.
    ready = yield from scope.ready(request.index, is_fresh=request.is_by_count)
    request = dataclasses.replace(request, fields=ready.fields)
    result = yield from _sorted(scope, request, start, ready)
    counted = yield from _with_counts(scope, request, result, ready)
    rows, totals = counted.rows, counted.totals
    if request.details and rows:
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
    return (yield from rows_by_relevance(request, start))


class _Counted(NamedTuple):
    """The rows of a page, and what is counted over all pages."""

    rows: tuple[Row, ...]
    totals: Totals
    not_enriched: int
    new_articles: int | None


def _with_counts(
    scope: Scope, request: ListRequest, result: SortResult, ready: ReadyIndex
) -> Requests[_Counted]:
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
    return _Counted(rows, totals, missing, next(iter(new), None))


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

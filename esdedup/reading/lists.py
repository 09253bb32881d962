"""A page of the list with dedup: its sort finds articles, which become rows with counts."""

import dataclasses
import itertools
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.by_count import rows_by_count
from esdedup.reading.by_relevance import rows_by_relevance
from esdedup.reading.by_time import rows_by_time
from esdedup.reading.counts import ListCounter, Totals
from esdedup.reading.cursor import Cursor
from esdedup.reading.hits import Hit, root_of, values_of
from esdedup.reading.list_request import ListRequest
from esdedup.reading.results import Article, Page, Row
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.snippets import snippets_body, with_snippets
from esdedup.reading.sort_result import SortResult


def list_rows(scope: Scope, request: ListRequest) -> Requests[Page]:
    """Return a page; see `Operations.list`."""
    start = request.start()
    # A cached alias, some seconds old, could make an order by count wrongly count as exact.
    ready = yield from scope.ready(request.index, is_fresh=request.is_by_count)
    request = dataclasses.replace(request, fields=ready.fields)
    result = yield from _sorted(scope, request, start, ready)
    rows, totals, not_enriched = yield from _with_counts(scope, request, result, ready)
    if request.snippets and rows:
        rows = yield from _with_snippets(rows, request)
    following = start.next(rows=request.size, place=result.place)
    return Page(
        rows=rows,
        total_rows=totals.rows,
        total_rows_exact=totals.rows_exact,
        total_articles=totals.articles,
        not_enriched=not_enriched,
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


def _with_counts(
    scope: Scope, request: ListRequest, result: SortResult, ready: ReadyIndex
) -> Requests[tuple[tuple[Row, ...], Totals, int]]:
    """Turn articles into rows, with totals and the number of articles without a root, in few requests."""
    roots = [root_of(hit, request.fields) for hit in result.hits]
    counter = ListCounter(request, scope.tuning, total_articles=result.total_articles)
    for_heads, for_clusters, for_rows, (missing,) = yield from _search_together(
        request.index,
        _heads_body(request, result, roots),
        counter.bodies_for_clusters(list(dict.fromkeys(roots)), ready.source_field),
        counter.bodies_for_rows(),
        [bodies.count_not_enriched(request.query, fields=request.fields)],
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
    return rows, totals, missing["hits"]["total"]["value"]


def _with_snippets(rows: tuple[Row, ...], request: ListRequest) -> Requests[tuple[Row, ...]]:
    """Add to each row what its text says, and the earliest article of its cluster."""
    fields = request.fields
    roots = list(dict.fromkeys(row.root for row in rows if row.root is not None))
    texts, firsts = yield from search(
        request.index,
        snippets_body(rows, request.query, fields=fields),
        bodies.heads(roots, query=None, by="oldest", fields=fields),
    )
    earliest = {root_of(hit, fields): Article(**values_of(hit, fields)) for hit in firsts["hits"]["hits"]}
    return tuple(
        row.model_copy(update={"earliest": earliest.get(row.root or "")})
        for row in with_snippets(rows, texts["hits"]["hits"], fields=fields)
    )


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

"""A page of the list with dedup: its sort finds articles, which become rows with counts."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.reading.articles import check_names, including
from esdedup.reading.counts import (
    RowCounter,
    count_new,
    count_not_enriched,
    counts_of_clusters,
    searches_for_clusters,
)
from esdedup.reading.list_request import (
    Counting,
    Head,
    ListRequest,
    Only,
    Sort,
    SortResult,
    default_sort,
    heads,
)
from esdedup.reading.paging import Paging
from esdedup.reading.queries import moment_ms, root_of, values_of
from esdedup.reading.results import Page, Row
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.sorts import sorted_articles


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
    result = yield from sorted_articles(request, start, ready, scope.tuning)
    counter = RowCounter(request=request, tuning=scope.tuning, total_articles=result.total_articles)
    rows, for_rows, (not_enriched, *new) = yield from _counted(request, result, ready, counter)
    total_rows, is_exact = yield from counter.rows(for_rows)
    if request.details and rows:
        # Only details compare texts, which needs what makes fingerprints.
        from esdedup.reading.row_details import with_details

        rows = yield from with_details(rows, request, source_field=ready.source_field)
    following = start.next(rows=request.size, place=result.place)
    return Page(
        rows=rows,
        total_rows=total_rows,
        total_rows_exact=is_exact,
        total_articles=result.total_articles,
        not_enriched=not_enriched,
        new_articles=new[0] if new else None,
        order_exact=result.order_exact,
        cut_short=result.is_cut_short,
        page=start.page,
        size=request.size,
        sort=request.sort,
        next=request.write(following) if result.has_more else None,
    )


def _counted(
    request: ListRequest, result: SortResult, ready: ReadyIndex, counter: RowCounter
) -> Requests[tuple[tuple[Row, ...], list[Any], list[int]]]:
    """Turn articles into rows, and count, in one request.

    Return the rows, the answer about all rows, and how many articles have no root and, if asked, are new.
    """
    roots = [root_of(hit, request.fields) for hit in result.hits]
    has_heads = not request.dedup or result.are_heads or request.order_of_heads == request.order
    groups = [
        [] if has_heads or not roots else [heads(request, request.order_of_heads, roots)],
        searches_for_clusters(request, list(dict.fromkeys(roots)), ready.source_field),
        counter.searches(),
        [count_not_enriched(request)],
    ]
    if request.arrived_since_ms is not None:
        groups[-1].append(count_new(request, request.arrived_since_ms))
    answers = iter((yield from search(request.index, *itertools.chain.from_iterable(groups))))
    for_heads, for_clusters, for_rows, for_articles = (
        list(itertools.islice(answers, len(group))) for group in groups
    )
    shown = {root_of(hit, request.fields): hit for each in for_heads for hit in each["hits"]["hits"]}
    counts = counts_of_clusters(for_clusters)
    rows = tuple(
        Row(**values_of(shown.get(root, hit), request.fields), **counts[root])
        for root, hit in zip(roots, result.hits, strict=True)
        # A cluster that was deleted meanwhile has no counts.
        if root in counts
    )
    return rows, for_rows, [each["hits"]["total"]["value"] for each in for_articles]

"""The list with dedup: a page of it, from what its sort finds to rows with their numbers."""

from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.reading import list_bodies as bodies
from esdedup.reading.by_count import rows_by_count
from esdedup.reading.by_relevance import rows_by_relevance
from esdedup.reading.by_time import rows_by_time
from esdedup.reading.counts import Totals, count_all, count_clusters, counts_of, rows_body
from esdedup.reading.hits import Hit, root_of, values_of
from esdedup.reading.list_request import Counting, Head, ListRequest, Only, Sort
from esdedup.reading.results import Page, Row
from esdedup.reading.scope import Ready, Scope
from esdedup.reading.sort_result import SortResult


def list_rows(
    scope: Scope,
    index: str,
    *,
    query: Query | None = None,
    sort: Sort = "newest",
    head: Head | None = None,
    counting: Counting = "similar",
    only: Only | None = None,
    dedup: bool = True,
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[Page]:
    """Return a page of the list with dedup: one row for each cluster that has a match.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        query: Any query of Elasticsearch; None for all articles.
        sort: What a row's place follows from: its best match, its newest or oldest match, its count.
        head: Which match stands for the row: the ``best`` one, the ``newest``, the ``earliest`` (the
            original), the ``longest``. None: the one its place follows from, the newest for counts.
        counting: What the sorts by count count: ``similar``, the whole cluster, or ``matching``, what
            of it matches the query.
        only: Only rows with ``similar`` articles, or only ``single`` ones; with sorts by time.
        dedup: False: a row for each article, with the same numbers.
        page: From 1; `page` times `size` is at most 10,000.
        size: Rows on a page, at most 1,000.
        after: The cursor `next` of the page before, in place of `page`. Sorts by time go on for ever
            with it.

    Raises:
        SettingError: A value makes no sense, or the page lies too deep.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    wanted = ListRequest(
        index=index,
        fields=scope.fields,
        query=query,
        sort=sort,
        head=head,
        counting=counting,
        only=only,
        dedup=dedup,
        page=page,
        size=size,
        after=after,
    )
    begin = wanted.begin
    # Whether the order by count is exact must not rest on what an alias was some seconds ago.
    ready = yield from scope.ready(index, is_fresh=wanted.is_by_count)
    if wanted.is_by_time:
        found = yield from rows_by_time(wanted, begin)
    elif wanted.is_by_count:
        found = yield from rows_by_count(wanted, begin, ready)
    else:
        found = yield from rows_by_relevance(wanted, begin)
    rows, totals = yield from _numbered(wanted, found, ready)
    return Page(
        rows=rows,
        total_rows=totals.rows,
        total_rows_exact=totals.rows_exact,
        total_articles=totals.articles,
        order_exact=found.order_exact,
        page=begin.page,
        size=size,
        sort=sort,
        next=wanted.cursor_after(begin, rows=size, place=found.place) if found.has_more else None,
    )


def _numbered(wanted: ListRequest, found: SortResult, ready: Ready) -> Requests[tuple[list[Row], Totals]]:
    """Give rows their heads and their numbers, and count what there is on all pages: in one go."""
    fields = wanted.fields
    roots = [root_of(hit, fields) for hit in found.rows]
    needs_heads = wanted.dedup and not found.are_heads and wanted.order_of_heads != wanted.order
    for_heads = (
        [bodies.heads(roots, query=wanted.query, by=wanted.order_of_heads, fields=fields)]
        if needs_heads and roots
        else []
    )
    for_counts = count_clusters(wanted, list(dict.fromkeys(roots)), ready.source_field)
    for_rows = rows_body(wanted, found.articles)
    asked = [*for_heads, *for_counts, *for_rows]
    answers = (yield from search(wanted.index, *asked)) if asked else []
    heads: dict[str, Hit] = {}
    counts: dict[str, dict[str, Any]] = {}
    if for_heads:
        heads = {root_of(hit, fields): hit for hit in answers[0]["hits"]["hits"]}
    for answer in answers[len(for_heads) : len(for_heads) + len(for_counts)]:
        counts |= counts_of(answer)
    rows = [
        Row(**values_of(heads.get(root, hit), fields), **counts[root])
        for root, hit in zip(roots, found.rows, strict=True)
        # One whose articles were all deleted meanwhile has no counts.
        if root in counts
    ]
    totals = yield from count_all(wanted, found.articles, answers[-1] if for_rows else None)
    return rows, totals

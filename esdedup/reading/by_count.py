"""Rows by how many articles their clusters have.

The order is that of a terms aggregation, which one shard always has right, and so have several where
articles lie where their root says. Otherwise each shard knows a part of every count: then the counts of
its first roots are asked for again, exactly, and what no shard sent is bounded by what it sent last
(Fagin's threshold algorithm). Where even that does not suffice, the answer says so.
"""

import dataclasses
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.reading import list_bodies as bodies
from esdedup.reading.cursor import Cursor
from esdedup.reading.hits import root_of
from esdedup.reading.list_request import ListRequest
from esdedup.reading.queries import within
from esdedup.reading.scope import Ready
from esdedup.reading.sort_result import SortResult

# Of so few articles the roots are named one by one.
_FEW_ARTICLES = 10_000
# How many roots are asked for at first, and from each shard.
_AT_FIRST = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Ordered:
    """Roots by count."""

    roots: list[str]
    is_exact: bool
    # Whether there are no others.
    is_all: bool


def rows_by_count(wanted: ListRequest, begin: Cursor, ready: Ready) -> Requests[SortResult]:
    """Find the rows of a page."""
    fields = wanted.fields
    depth = begin.offset + wanted.size + 1
    (answer,) = yield from search(wanted.index, bodies.count_articles(wanted.query, fields=fields))
    articles = answer["hits"]["total"]["value"]
    ordered = yield from _ordered(wanted, depth, ready, matches=articles)
    on_page = ordered.roots[begin.offset : begin.offset + wanted.size]
    hits: dict[str, Any] = {}
    if on_page:
        (answer,) = yield from search(
            wanted.index,
            bodies.heads(on_page, query=wanted.query, by=wanted.order_of_heads, fields=fields),
        )
        hits = {root_of(hit, fields): hit for hit in answer["hits"]["hits"]}
    return SortResult(
        # One that was deleted meanwhile has no head.
        rows=[hits[root] for root in on_page if root in hits],
        has_more=len(ordered.roots) > begin.offset + wanted.size,
        articles=articles,
        order_exact=ordered.is_exact,
        are_heads=True,
    )


def _ordered(wanted: ListRequest, depth: int, ready: Ready, *, matches: int) -> Requests[_Ordered]:
    """Return the first `depth` roots with a match, in order."""
    fields = wanted.fields
    matching = within(wanted.query, fields)
    if wanted.query is None or wanted.counting == "matching":
        return (yield from _by_count(wanted, matching, depth, ready))
    if matches > _FEW_ARTICLES:
        # The largest clusters of all: with so many matches, most of them match.
        found = yield from _those_that_match(wanted, matching, depth, ready)
        if found is not None:
            return found
    (answer,) = yield from search(
        wanted.index, bodies.roots_of(wanted.query, size=bodies.MAX_ROOTS, fields=fields)
    )
    roots = answer["aggregations"]["roots"]
    if roots["sum_other_doc_count"]:
        raise SettingError(
            f"the query matches more than {bodies.MAX_ROOTS:,} clusters, too many to find the page among "
            'them: sort by counting="matching", narrow the query, or sort by time or relevance'
        )
    named = bodies.with_roots([bucket["key"] for bucket in roots["buckets"]], fields)
    return (yield from _by_count(wanted, named, depth, ready))


def _those_that_match(
    wanted: ListRequest, matching: Query, depth: int, ready: Ready
) -> Requests[_Ordered | None]:
    """Go through all clusters by count, and keep those with a match; None if that leads nowhere."""
    everything = within(None, wanted.fields)
    for many in (max(_AT_FIRST, 2 * depth), bodies.MAX_ROOTS):
        ordered = yield from _by_count(wanted, everything, many, ready, matching=matching)
        if len(ordered.roots) >= depth or ordered.is_all:
            return dataclasses.replace(ordered, roots=ordered.roots[:depth])
    return None


def _by_count(
    wanted: ListRequest, query: Query, depth: int, ready: Ready, *, matching: Query | None = None
) -> Requests[_Ordered]:
    """Return the first `depth` roots by the number of their articles that match `query`.

    With `matching`, those of them that have an article that matches it, too.
    """
    fields, descending = wanted.fields, wanted.sort == "similar-desc"
    from_shard = depth
    while True:
        body = bodies.roots_by_count(
            query,
            descending=descending,
            size=from_shard,
            from_shard=from_shard,
            fields=fields,
            matching=matching,
        )
        (answer,) = yield from search(wanted.index, body)
        found = answer["aggregations"]["roots"]
        buckets = found["buckets"]
        is_one = answer["_shards"]["total"] == 1 or ready.is_routed_by_root
        # Where no shard left anything out, sums are right.
        is_exact = is_one or found["doc_count_error_upper_bound"] == 0
        is_all = is_exact and not found["sum_other_doc_count"]
        if not is_exact and descending and buckets:
            names = [bucket["key"] for bucket in buckets]
            again = bodies.roots_by_count(
                {"bool": {"must": [query], "filter": [bodies.with_roots(names, fields)]}},
                descending=True,
                size=min(depth, len(names)),
                from_shard=len(names),
                fields=fields,
                matching=matching,
            )
            (answer,) = yield from search(wanted.index, again)
            # What no shard sent has so many articles at the most; what was sent and then cut off has so
            # many where it was sent, beside them.
            most_elsewhere = found["doc_count_error_upper_bound"]
            if len(buckets) == from_shard:
                most_elsewhere += buckets[-1]["doc_count"]
            buckets = answer["aggregations"]["roots"]["buckets"]
            is_exact = bool(buckets) and buckets[-1]["doc_count"] > most_elsewhere
        if is_exact or from_shard == bodies.MAX_ROOTS:
            kept = [
                bucket["key"]
                for bucket in buckets[:depth]
                if matching is None or bucket["matching"]["doc_count"]
            ]
            return _Ordered(roots=kept, is_exact=is_exact, is_all=is_all and len(buckets) <= depth)
        from_shard = min(bodies.MAX_ROOTS, max(8 * from_shard, _AT_FIRST))

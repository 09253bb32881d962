"""Bodies of the searches behind the list. Pure; `docs/queries.md` shows them as they are sent."""

from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import UNREAD, Query
from esdedup.fields import Fields
from esdedup.reading.queries import Order, order, shown, within

EXACT_ROWS = 10_000
"""Up to here rows are counted, beyond it they are estimated."""
MAX_ROOTS = 65_535
"""Roots that one answer holds, and one request names."""
MAX_SOURCES = 1_000
"""Sources of a cluster that are counted."""


def articles(
    query: Query | None,
    *,
    by: Order,
    size: int,
    fields: Fields,
    after: Sequence[Any] | None = None,
    without: Sequence[str] = (),
    first: int = 0,
) -> Query:
    """Ask for articles in their order, whatever their roots.

    Args:
        query: The user's.
        by: The order.
        size: How many.
        fields: The articles'.
        after: The sort values of the article before the first; None for the beginning.
        without: Roots whose articles are left out.
        first: How many are skipped; only without `after`.
    """
    wanted = within(query, fields)
    if without:
        wanted["bool"]["must_not"] = [with_roots(without, fields)]
    place = {"from": first} if after is None else {"search_after": list(after)}
    return {
        "query": wanted,
        "sort": order(by, fields),
        "size": size,
        "track_total_hits": False,
        "_source": shown(fields),
        **place,
    }


def first_of_each_root(query: Query | None, *, by: Order, first: int, size: int, fields: Fields) -> Query:
    """Ask for the first article of each root, in their order, from row `first` on."""
    body = articles(query, by=by, size=size, fields=fields, first=first)
    return body | {"collapse": {"field": fields.root}}


def heads(roots: Sequence[str], *, query: Query | None, by: Order, fields: Fields) -> Query:
    """Ask for the first article of each of `roots` within the query."""
    body = first_of_each_root(query, by=by, first=0, size=len(roots), fields=fields)
    body["query"]["bool"]["filter"].append(with_roots(roots, fields))
    return body


def count_articles(query: Query | None, *, fields: Fields) -> Query:
    """Count the articles that match."""
    return {"query": within(query, fields), "size": 0, "track_total_hits": True}


def estimate_rows(query: Query | None, *, fields: Fields, partitions: int | None = None) -> Query:
    """Estimate how many roots the articles that match have.

    Args:
        query: The user's.
        fields: The articles'.
        partitions: Look at so many of the 256 parts of all roots; None: at all.
    """
    return {
        "query": _within(query, partitions, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"rows": {"cardinality": {"field": fields.root, "precision_threshold": 40_000}}},
    }


def _within(query: Query | None, partitions: int | None, fields: Fields) -> Query:
    """Restrict a query to articles that have a root; with `partitions`, one in the first of the 256 parts."""
    wanted = within(query, fields)
    if partitions is not None:
        wanted["bool"]["filter"].append({"terms": {fields.partition: list(range(partitions))}})
    return wanted


def count_rows(query: Query | None, *, is_few: bool, fields: Fields) -> Query:
    """Count the roots exactly while they are at most `EXACT_ROWS`, which shows as one more at the most.

    Args:
        query: The user's.
        is_few: Whether few articles match: then only their roots are looked at, not all that there are.
        fields: The articles'.
    """
    terms: Query = {"field": fields.root, "size": EXACT_ROWS + 1}
    if is_few:
        terms["execution_hint"] = "map"
    return {
        "query": within(query, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {
            UNREAD: {"terms": terms},
            "rows": {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}},
        },
    }


def count_clusters(
    roots: Sequence[str], *, query: Query | None, source_field: str | None, fields: Fields
) -> Query:
    """Count the articles of each of `roots`, all of them and those that match. Exact on any shards."""
    aggs: Query = {
        "matching": {"filter": within(query, fields)},
        "first": {"min": {"field": fields.time}},
        "last": {"max": {"field": fields.time}},
    }
    if source_field is not None:
        # Counted as buckets, which stay in the server: a cardinality would be an estimate.
        aggs[UNREAD] = {"terms": {"field": source_field, "size": MAX_SOURCES}}
        aggs["sources"] = {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}}
    return {
        "query": with_roots(roots, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"roots": {"terms": {"field": fields.root, "size": len(roots)}, "aggs": aggs}},
    }


def roots_of(query: Query | None, *, size: int, fields: Fields, partitions: int | None = None) -> Query:
    """Ask for the roots that have an article that matches; with `partitions`, of so many of the 256 parts."""
    return {
        "query": _within(query, partitions, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"roots": {"terms": {"field": fields.root, "size": size}}},
    }


def larger_roots(roots: Sequence[str], *, fields: Fields) -> Query:
    """Ask for those of `roots` that have several articles."""
    terms = {"field": fields.root, "size": len(roots), "min_doc_count": 2}
    return {
        "query": with_roots(roots, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"roots": {"terms": terms}},
    }


def roots_by_count(
    query: Query,
    *,
    descending: bool,
    size: int,
    fields: Fields,
    from_shard: int | None = None,
    matching: Query | None = None,
) -> Query:
    """Ask for roots by the number of their articles that match, equals by their names.

    Args:
        query: Whose matches are counted.
        descending: The most first, else the fewest.
        size: How many roots.
        fields: The articles'.
        from_shard: How many each shard sends; None: as many.
        matching: Another query; of each root's articles those that match it are counted too.
    """
    by_count = [{"_count": "desc" if descending else "asc"}, {"_key": "asc"}]
    terms: Query = {"field": fields.root, "size": size, "order": by_count, "shard_size": from_shard or size}
    roots: Query = {"terms": terms}
    if matching is not None:
        roots["aggs"] = {"matching": {"filter": matching}}
    return {"query": query, "size": 0, "track_total_hits": False, "aggs": {"roots": roots}}


def with_roots(roots: Sequence[str], fields: Fields) -> Query:
    """Match the articles of `roots`."""
    return {"terms": {fields.root: list(roots)}}

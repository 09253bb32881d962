"""Bodies of the searches for the list. Pure; `docs/queries.md` shows them as they are sent."""

from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import UNREAD, Query
from esdedup.fields import Fields
from esdedup.reading.hits import fields_read
from esdedup.reading.queries import Order, aggregation, arrived_since, order, within

# Sources of a cluster that are counted for its row.
_MAX_COUNTED_SOURCES = 1_000


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
    """Return the search for articles in order, not grouped by root.

    It begins after the sort values `after`, or skips the `first` articles, and those of the roots `without`.
    """
    matching = within(query, fields)
    if without:
        matching["bool"]["must_not"] = [with_roots(without, fields)]
    place = {"from": first} if after is None else {"search_after": list(after)}
    return {
        "query": matching,
        "sort": order(by, fields),
        "size": size,
        "track_total_hits": False,
        "_source": fields_read(fields),
        **place,
    }


def first_of_each_root(query: Query | None, *, by: Order, first: int, size: int, fields: Fields) -> Query:
    """Return the search for the first article of each root, in order, from row `first` on."""
    body = articles(query, by=by, size=size, fields=fields, first=first)
    return body | {"collapse": {"field": fields.root}}


def heads(roots: Sequence[str], *, query: Query | None, by: Order, fields: Fields) -> Query:
    """Return the search for the first matching article of each of `roots`."""
    body = first_of_each_root(query, by=by, first=0, size=len(roots), fields=fields)
    body["query"]["bool"]["filter"].append(with_roots(roots, fields))
    return body


def count_articles(query: Query | None, *, fields: Fields) -> Query:
    """Return the search that counts the matching articles."""
    return {"query": within(query, fields), "size": 0, "track_total_hits": True}


def count_new(query: Query | None, *, since_ms: int, fields: Fields) -> Query:
    """Return the search that counts the matching articles that have arrived since."""
    body = count_articles(query, fields=fields)
    body["query"]["bool"]["filter"].append(arrived_since(since_ms, fields))
    return body


def count_not_enriched(query: Query | None, *, fields: Fields) -> Query:
    """Return the search that counts the articles that match but have no root, and so are in no row."""
    without_root = {
        "bool": {"must": [query] if query else [], "must_not": {"exists": {"field": fields.root}}}
    }
    return {"query": without_root, "size": 0, "track_total_hits": True}


def estimate_rows(query: Query | None, *, fields: Fields, partitions: int | None = None) -> Query:
    """Return the search that estimates how many roots the matching articles have.

    It looks at so many of the 256 partitions of roots; None: at all.
    """
    return aggregation(
        _within(query, partitions, fields),
        {"rows": {"cardinality": {"field": fields.root, "precision_threshold": 40_000}}},
    )


def _within(query: Query | None, partitions: int | None, fields: Fields) -> Query:
    """Restrict a query to articles with a root; `partitions` keeps only the first so many of 256."""
    matching = within(query, fields)
    if partitions is not None:
        matching["bool"]["filter"].append({"terms": {fields.partition: list(range(partitions))}})
    return matching


def count_rows(query: Query | None, *, up_to: int, is_few: bool, fields: Fields) -> Query:
    """Return the search that counts roots exactly; a count above `up_to` means only that there are more.

    If few articles match, only their roots are visited, not all roots of the index.
    """
    terms: Query = {"field": fields.root, "size": up_to + 1}
    if is_few:
        terms["execution_hint"] = "map"
    return aggregation(
        within(query, fields),
        {
            UNREAD: {"terms": terms},
            "rows": {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}},
        },
    )


def count_clusters(
    roots: Sequence[str],
    *,
    query: Query | None,
    source_field: str | None,
    fields: Fields,
    since_ms: int | None = None,
) -> Query:
    """Return the search that counts the articles of each root, all and matching, exactly on any shards.

    With `since_ms` also those that have arrived since.
    """
    aggs: Query = {
        "matching": {"filter": within(query, fields)},
        "first": {"min": {"field": fields.published}},
        "last": {"max": {"field": fields.published}},
    }
    if since_ms is not None:
        aggs["new"] = {"filter": arrived_since(since_ms, fields)}
    if source_field is not None:
        # Counted as buckets, which stay on the server: a cardinality would be an estimate.
        aggs[UNREAD] = {"terms": {"field": source_field, "size": _MAX_COUNTED_SOURCES}}
        aggs["sources"] = {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}}
    return aggregation(
        with_roots(roots, fields),
        {"roots": {"terms": {"field": fields.root, "size": len(roots)}, "aggs": aggs}},
    )


def roots_of(query: Query | None, *, size: int, fields: Fields, partitions: int | None = None) -> Query:
    """Return the search for the roots of matching articles; `partitions` as for `estimate_rows`."""
    return aggregation(
        _within(query, partitions, fields), {"roots": {"terms": {"field": fields.root, "size": size}}}
    )


def larger_roots(roots: Sequence[str], *, fields: Fields) -> Query:
    """Return the search for those of `roots` that have several articles."""
    terms = {"field": fields.root, "size": len(roots), "min_doc_count": 2}
    return aggregation(with_roots(roots, fields), {"roots": {"terms": terms}})


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
    terms: Query = {"field": fields.root, "size": size, "order": by_count, "shard_size": from_shard or size}
    roots: Query = {"terms": terms}
    if required is not None:
        roots["aggs"] = {"required": {"filter": required}}
    return aggregation(query, {"roots": roots})


def with_roots(roots: Sequence[str], fields: Fields) -> Query:
    """Return the query for the articles of `roots`."""
    return {"terms": {fields.root: list(roots)}}

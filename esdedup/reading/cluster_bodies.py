"""Bodies of the searches behind the similar articles of one. Pure."""

from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import UNREAD, Query
from esdedup.fields import Fields
from esdedup.reading.queries import by_id, order, shown, with_text

MAX_SOURCES = 10_000
"""Sources of one cluster that are told apart."""


def one_article(article_id: str, *, fields: Fields, in_index: str | None = None) -> Query:
    """Ask for one article, whatever its routing; of several indices that have it, the last to arrive."""
    body = by_id(article_id, fields=fields) | {"_source": [*shown(fields), *with_text(fields)]}
    if in_index is not None:
        body["query"] = {"bool": {"filter": [body["query"], {"term": {"_index": in_index}}]}}
    return body


def others(
    root: str,
    *,
    fields: Fields,
    without: tuple[str, str] | None = None,
    source_field: str | None = None,
    not_from: Sequence[Any] = (),
) -> Query:
    """Match the articles of a root.

    Args:
        root: The root.
        fields: The articles'.
        without: Index and id of an article that is left out.
        source_field: The field by which sources are told apart.
        not_from: Sources whose articles are left out.
    """
    left_out: list[Query] = []
    if without is not None:
        index, article_id = without
        left_out.append(
            {"bool": {"filter": [{"term": {"_index": index}}, {"ids": {"values": [article_id]}}]}}
        )
    if not_from and source_field is not None:
        left_out.append({"terms": {source_field: list(not_from)}})
    return {"bool": {"filter": [{"term": {fields.root: root}}], "must_not": left_out}}


def members(query: Query, *, first: int, after: Sequence[Any] | None, size: int, fields: Fields) -> Query:
    """Ask for a page of those articles, newest first."""
    place = {"from": first} if after is None else {"search_after": list(after)}
    return {
        "query": query,
        "sort": order("newest", fields),
        "size": size,
        "track_total_hits": True,
        "_source": with_signature(fields),
        **place,
    }


def count_sources(query: Query, *, source_field: str, size: int) -> Query:
    """Ask which sources published those articles, those with the most first, and how many there are."""
    by_count = [{"_count": "desc"}, {"_key": "asc"}]
    terms = {"field": source_field, "size": size, "shard_size": MAX_SOURCES, "order": by_count}
    return {
        "query": query,
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            UNREAD: {"terms": {"field": source_field, "size": MAX_SOURCES}},
            "total": {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}},
            "sources": {"terms": terms},
            "nameless": {"missing": {"field": source_field}},
        },
    }


def of_sources(query: Query, *, names: Sequence[Any], source_field: str, fields: Fields) -> Query:
    """Ask for the earliest article of each of those sources, and when the first and last was published.

    Args:
        query: Matches the articles.
        names: Of sources; None for the articles without one.
        source_field: The field by which sources are told apart.
        fields: The articles'.
    """
    earliest = {"top_hits": {"size": 1, "sort": order("oldest", fields), "_source": with_signature(fields)}}
    each = {
        "first": {"min": {"field": fields.time}},
        "last": {"max": {"field": fields.time}},
        "earliest": earliest,
    }
    filters: list[Query] = [
        {"bool": {"must_not": {"exists": {"field": source_field}}}}
        if name is None
        else {"term": {source_field: name}}
        for name in names
    ]
    return {
        "query": query,
        "size": 0,
        "track_total_hits": False,
        "aggs": {"sources": {"filters": {"filters": filters}, "aggs": each}},
    }


def time_range(root: str, *, fields: Fields) -> Query:
    """Ask when the first and the last article of a root were published."""
    return {
        "query": {"term": {fields.root: root}},
        "size": 0,
        "track_total_hits": False,
        "aggs": {"first": {"min": {"field": fields.time}}, "last": {"max": {"field": fields.time}}},
    }


def timeline(
    root: str, *, interval_ms: int, offset_ms: int, source_field: str | None, fields: Fields
) -> Query:
    """Count the articles of a root in steps of time, and the sources among them."""
    histogram: Query = {
        "field": fields.time,
        "fixed_interval": f"{interval_ms}ms",
        "offset": f"{offset_ms % interval_ms}ms",
    }
    steps: Query = {"date_histogram": histogram}
    if source_field is not None:
        steps["aggs"] = {"sources": {"cardinality": {"field": source_field}}}
    return {
        "query": {"term": {fields.root: root}},
        "size": 0,
        "track_total_hits": False,
        "aggs": {"steps": steps},
    }


def with_signature(fields: Fields) -> list[str]:
    """Return the fields of an article that lists show, and those that tell how alike two are."""
    return [*shown(fields), *(f"{fields.dedup}.{name}" for name in ("fingerprint", "signature", "profile"))]

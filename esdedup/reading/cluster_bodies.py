"""Bodies of the searches for one article, its cluster, sources and timeline. Pure."""

from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import UNREAD, Query
from esdedup.fields import Fields
from esdedup.reading.hits import fields_read
from esdedup.reading.queries import by_id, order, with_text
from esdedup.reading.version_results import TimeOrder
from esdedup.sites import site_fields

# Sources of one cluster that are grouped, and texts that are counted.
_MAX_GROUPED = 10_000
# Of each text, besides the article that stands for it: so many that have the same text are named.
_COPIES_SHOWN = 20


def one_article(
    article_id: str, *, fields: Fields, in_index: str | None = None, has_text: bool = False
) -> Query:
    """Return the search for one article; the last to arrive if several have the id.

    Its text may be long, and is read only with `has_text`.
    """
    whole = dict.fromkeys((*fields_read(fields), *with_text(fields), *site_fields(fields)))
    read = list(whole) if has_text else with_signature(fields)
    body = by_id(article_id, fields=fields) | {"_source": read}
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
    """Return the query for the articles of a root.

    Args:
        root: The root.
        fields: The names of the articles' fields.
        without: Index and id of an article to exclude.
        source_field: The field that holds the sources.
        not_from: Sources to exclude.
    """
    excluded: list[Query] = []
    if without is not None:
        index, article_id = without
        excluded.append(
            {"bool": {"filter": [{"term": {"_index": index}}, {"ids": {"values": [article_id]}}]}}
        )
    if not_from and source_field is not None:
        excluded.append({"terms": {source_field: list(not_from)}})
    return {"bool": {"filter": [{"term": {fields.root: root}}], "must_not": excluded}}


def with_fingerprint(fingerprint: str, *, fields: Fields) -> Query:
    """Return the query for the articles with a fingerprint."""
    return {"bool": {"filter": [{"term": {fields.fingerprint: fingerprint}}]}}


def cluster_members(
    query: Query, *, first: int, after: Sequence[Any] | None, size: int, fields: Fields
) -> Query:
    """Return the search for a page of the articles that match, newest first."""
    place = {"from": first} if after is None else {"search_after": list(after)}
    return {
        "query": query,
        "sort": order("newest", fields),
        "size": size,
        "track_total_hits": True,
        "_source": with_signature(fields),
        **place,
    }


def versions(query: Query, *, sort: TimeOrder, first: int, size: int, fields: Fields) -> Query:
    """Return the search for a page of the distinct texts among the articles that match.

    Of each text it returns the first article in the order, and some of the others.
    """
    by_time = order(sort, fields)
    same = {"name": "same", "size": 1 + _COPIES_SHOWN, "sort": by_time, "_source": fields_read(fields)}
    return {
        "query": query,
        "sort": by_time,
        "collapse": {"field": fields.fingerprint, "inner_hits": same},
        "from": first,
        "size": size,
        "track_total_hits": True,
        "_source": with_signature(fields),
        "aggs": {
            # An article without a fingerprint has a cluster of its own.
            UNREAD: {"terms": {"field": fields.fingerprint, "size": _MAX_GROUPED, "missing": ""}},
            "versions": {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}},
        },
    }


def count_sources(query: Query, *, source_field: str, size: int) -> Query:
    """Return the search for the sources with the most matching articles, and for the number of sources."""
    by_count = [{"_count": "desc"}, {"_key": "asc"}]
    terms = {"field": source_field, "size": size, "shard_size": _MAX_GROUPED, "order": by_count}
    return {
        "query": query,
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            UNREAD: {"terms": {"field": source_field, "size": _MAX_GROUPED}},
            "total": {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}},
            "sources": {"terms": terms},
            "without_source": {"missing": {"field": source_field}},
        },
    }


def of_sources(query: Query, *, names: Sequence[Any], source_field: str, fields: Fields) -> Query:
    """Return the search for each source's earliest article, and the times of its first and last.

    Args:
        query: Matches the articles.
        names: The sources; None stands for articles without one.
        source_field: The field that holds the sources.
        fields: The names of the articles' fields.
    """
    earliest = {"top_hits": {"size": 1, "sort": order("oldest", fields), "_source": with_signature(fields)}}
    each = {
        "first": {"min": {"field": fields.published}},
        "last": {"max": {"field": fields.published}},
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


def spread(root: str, *, source_field: str | None, fields: Fields) -> Query:
    """Return the search for a root's first article, its first and last times, and its largest source."""
    aggregations: Query = {
        "first": {"min": {"field": fields.published}},
        "last": {"max": {"field": fields.published}},
    }
    if source_field is not None:
        aggregations["sources"] = {"terms": {"field": source_field, "size": 1, "shard_size": _MAX_GROUPED}}
    return {
        "query": {"term": {fields.root: root}},
        "sort": order("oldest", fields),
        "size": 1,
        "track_total_hits": False,
        "_source": fields_read(fields),
        "aggs": aggregations,
    }


def timeline(
    root: str, *, interval_ms: int, offset_ms: int, source_field: str | None, fields: Fields
) -> Query:
    """Return the search that counts a root's articles, and their sources, in each interval."""
    histogram: Query = {
        "field": fields.published,
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
    """Return the fields that lists show, and those that similarity is computed from."""
    return [
        *fields_read(fields),
        *(f"{fields.dedup}.{name}" for name in ("fingerprint", "signature", "profile")),
    ]

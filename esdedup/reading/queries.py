"""Builds the parts of searches that several operations share, and reads articles from hits. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, Literal

from esdedup.elastic.limits import MAX_HITS, MAX_TERM_BYTES
from esdedup.elastic.requests import UNREAD, Query
from esdedup.errors import SettingError
from esdedup.fields import Fields, term_of, terms_of, value_of
from esdedup.reading.paging import Cursor
from esdedup.reading.results import Article
from esdedup.times import iso, time_ms, time_reader

Hit = dict[str, Any]

Order = Literal["relevance", "newest", "oldest", "longest"]
"""An order of articles."""

MAX_NAMESAKES = 10
"""The maximum number of articles with the same id, in different indices, that are found."""

# A time in ISO 8601 whose offset has lost its plus sign.
_LOST_PLUS = re.compile(r"(T\S+) (?=\d\d:?\d\d$)")


def aggregation(query: Query, aggs: Query) -> Query:
    """Return the search that computes aggregations over the articles that match, but returns no articles."""
    return {"query": query, "size": 0, "track_total_hits": False, "aggs": aggs}


def first_and_last(fields: Fields) -> Query:
    """Return the aggregations for the first and the last time of publication."""
    return {"first": {"min": {"field": fields.published}}, "last": {"max": {"field": fields.published}}}


def first_hit(by: Order, fields: Fields, read: Sequence[str]) -> Query:
    """Return the aggregation for the first article in order, with the fields in `read`."""
    return {"top_hits": {"size": 1, "sort": order(by, fields), "_source": list(read)}}


def over_time(interval_ms: int, offset_ms: int, fields: Fields) -> Query:
    """Return the histogram of articles in equal intervals, one of which begins at `offset_ms`."""
    return {
        "field": fields.published,
        "fixed_interval": f"{interval_ms}ms",
        "offset": f"{offset_ms % interval_ms}ms",
    }


def number_of_unread() -> Query:
    """Return the aggregation that counts the buckets of the aggregation `UNREAD`."""
    return {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}}


def check_term(name: str, value: str) -> None:
    """Raise `SettingError` unless a keyword field can contain the value."""
    if not value or len(value.encode(errors="replace")) > MAX_TERM_BYTES:
        raise SettingError(
            f"the {name} is {value!r:.60}; it must be a non-empty string of at most {MAX_TERM_BYTES:,} bytes"
        )


def within(query: Query | None, fields: Fields) -> Query:
    """Restrict a query to articles that have a root, that is, were indexed through esdedup."""
    with_root = {"exists": {"field": fields.cluster}}
    return {"bool": {"must": [query] if query else [], "filter": [with_root]}}


def moment_ms(text: str | None, zone: tzinfo = UTC, *, is_end: bool = False) -> int | None:
    """Parse a time as milliseconds since 1970, by default in `zone`; return None for an empty string.

    A day means its first moment, or with `is_end` its last. A plus sign may have become a space, as in a URL.
    """
    if not text or not text.strip():
        return None
    written = _LOST_PLUS.sub(r"\1+", text.strip())
    moment = time_ms(written, zone)
    if moment is None:
        raise SettingError(f"{text!r} is not a time: write it as 2026-11-21 or 2026-11-21T08:00:00Z")
    try:
        day = date.fromisoformat(written)
    except ValueError:
        return moment
    # If clocks go back at midnight, the repeated hour belongs to the day too.
    return time_ms(datetime.combine(day, time.max.replace(fold=1), zone)) if is_end else moment


def by_ids(ids: Collection[str]) -> Query:
    """Return the search for articles by their ids; the same ids may be in several indices."""
    return {
        "query": {"ids": {"values": sorted(set(ids))}},
        "size": min(MAX_HITS, MAX_NAMESAKES * len(ids)),
        "track_total_hits": False,
    }


def order(by: Order, fields: Fields) -> list[dict[str, Any]]:
    """Return a sort whose ties are broken by arrival and index, so that pages never overlap."""
    direction = "asc" if by == "oldest" else "desc"
    by_time = {fields.published: {"order": direction, "missing": "_last", "unmapped_type": "date"}}
    by_arrival = {fields.seq: {"order": direction, "unmapped_type": "long"}}
    first: list[dict[str, Any]] = []
    if by == "relevance":
        first = [{"_score": {"order": "desc"}}]
    elif by == "longest":
        first = [{fields.length: {"order": "desc", "missing": "_last", "unmapped_type": "integer"}}]
    return [*first, by_time, by_arrival, {"_index": {"order": "asc"}}]


def root_of(hit: Hit, fields: Fields) -> str:
    """Return the root of a hit."""
    return str(term_of(hit["_source"], fields.cluster))


def place_of(hit: Hit) -> tuple[str, str]:
    """Return the index and the id of a hit's article."""
    return hit["_index"], hit["_id"]


def fields_read(fields: Fields) -> list[str]:
    """Return the fields that `values_of` reads, for the ``_source`` of a search."""
    return [fields.title, fields.time, fields.source, fields.link, fields.cluster, fields.published]


def signature_read(fields: Fields) -> list[str]:
    """Return the fields that similarity is computed from."""
    return [f"{fields.dedup}.{name}" for name in ("fingerprint", "signature", "profile")]


def with_signature(fields: Fields) -> list[str]:
    """Return the fields that lists show, and the fields that similarity is computed from."""
    return [*fields_read(fields), *signature_read(fields)]


def values_of(hit: Hit, fields: Fields) -> dict[str, Any]:
    """Return the values of the fields of `results.Article`."""
    source = hit["_source"]
    titles = (each.strip() for each in terms_of(source, fields.title))
    dated, published_ms = value_of(source, fields.time), time_ms(value_of(source, fields.published))
    dated_ms = time_reader(fields.time_format)(dated)
    arrived_ms = None if published_ms == dated_ms else published_ms
    return {
        "id": hit["_id"],
        "index": hit["_index"],
        "root": term_of(source, fields.cluster),
        # Ignore blank titles.
        "title": ", ".join(filter(None, titles)) or None,
        # Convert the date to ISO 8601 if only the index's mapping defines its format.
        "published_at": dated if dated_ms in {None, time_reader(None)(dated)} else iso(dated_ms or 0),
        "arrived_at": None if arrived_ms is None else iso(arrived_ms),
        "source": value_of(source, fields.source),
        "url": term_of(source, fields.link),
    }


def articles_in(found: dict[str, Any], fields: Fields) -> Iterator[Article]:
    """Yield the articles of a response or an aggregation with hits."""
    return (Article(**values_of(hit, fields)) for hit in found["hits"]["hits"])


def moment_of(aggregation: dict[str, Any]) -> str | None:
    """Return a minimum or maximum of times as ISO 8601; return None if no article has a time."""
    return None if aggregation["value"] is None else iso(int(aggregation["value"]))


def articles_of_root(
    root: str, *, fields: Fields, without: tuple[str, str] | None = None, excluded: Sequence[Query] = ()
) -> Query:
    """Return the query for a root's articles, except the article `without` and matches of `excluded`."""
    must_not = list(excluded)
    if without is not None:
        index, article_id = without
        one = {"bool": {"filter": [{"term": {"_index": index}}, {"ids": {"values": [article_id]}}]}}
        must_not.insert(0, one)
    return {"bool": {"filter": [{"term": {fields.cluster: root}}], "must_not": must_not}}


def articles_with_fingerprint(fingerprint: str, *, fields: Fields) -> Query:
    """Return the query for the articles with the given fingerprint."""
    return {"bool": {"filter": [{"term": {fields.fingerprint: fingerprint}}]}}


def newest_first(query: Query, start: Cursor, *, size: int, fields: Fields) -> Query:
    """Return the search for a page of the articles that match, newest first."""
    return {
        "query": query,
        "sort": order("newest", fields),
        "size": size,
        "track_total_hits": True,
        "_source": [*with_signature(fields), *fields.links],
        **start.position,
    }

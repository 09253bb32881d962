"""Queries and parts of searches that several operations share. Pure: plain dicts, nothing is sent."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Literal

from esdedup.elastic.limits import MAX_TERM_BYTES
from esdedup.elastic.requests import Query
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.hits import fields_read
from esdedup.reading.search_words import words
from esdedup.sites import site_fields
from esdedup.times import DAY_MS, time_ms

Order = Literal["relevance", "newest", "oldest", "longest"]
"""An order of articles."""

MAX_NAMESAKES = 10
"""The most articles with the same id, in different indices, that are found."""

# Queries that give every match the same score, or a meaningless one.
_UNRANKED = frozenset(
    {
        *("constant_score", "exists", "ids", "match_all", "match_none", "prefix", "range", "regexp"),
        *("term", "terms", "wildcard"),
    }
)


def check_term(name: str, value: str) -> None:
    """Make sure that a keyword field can have a value.

    Raises:
        SettingError: It is empty, or longer than any that Elasticsearch keeps.
    """
    if not value or len(value.encode(errors="replace")) > MAX_TERM_BYTES:
        raise SettingError(
            f"the {name} is {value!r:.60}; it must be a non-empty string of at most {MAX_TERM_BYTES:,} bytes"
        )


def within(query: Query | None, fields: Fields) -> Query:
    """Restrict a query to articles that have a root: those that were indexed through esdedup."""
    with_root = {"exists": {"field": fields.root}}
    return {"bool": {"must": [query] if query else [], "filter": [with_root]}}


def ranks_articles(query: Query | None) -> bool:
    """Return whether a query scores articles by how well they match: it has words, not only filters.

    In a `bool`, only `must` and `should` count. Queries for exact values, such as `term` and `range`, do not.
    """
    if not isinstance(query, dict):
        return False
    for kind, body in query.items():
        if kind != "bool" or not isinstance(body, dict):
            return kind not in _UNRANKED
        scored = (body.get(part) or [] for part in ("must", "should"))
        clauses = [each for part in scored for each in (part if isinstance(part, list) else [part])]
        return any(ranks_articles(each) for each in clauses)
    return False


def narrowed(
    text: str | None,
    *,
    fields: Fields,
    since: str | None = None,
    until: str | None = None,
    filters: Sequence[Query] = (),
) -> Query | None:
    """Return the query that a search form describes; None if the form is empty.

    Args:
        text: Words, as for `words`.
        fields: The names of the articles' fields.
        since: The first moment, inclusive, ISO 8601.
        until: The last moment, inclusive, ISO 8601; a day without a time lasts to its end.
        filters: What articles must match besides.

    Raises:
        SettingError: `since` or `until` is not a time.
    """
    matched = list(filters)
    bounds = {"gte": moment_ms(since), "lte": moment_ms(until, is_end=True)}
    given = {bound: moment for bound, moment in bounds.items() if moment is not None}
    if given:
        # Independent of the field's own format.
        matched.insert(0, {"range": {fields.published: given | {"format": "epoch_millis"}}})
    matching = [words(text, fields)] if text and text.strip() else []
    return {"bool": {"must": matching, "filter": matched}} if matching or matched else None


def moment_ms(text: str | None, *, is_end: bool = False) -> int | None:
    """Return milliseconds since 1970, None for no text; for a day without a time, its first or last one.

    Raises:
        SettingError: The text is not a time.
    """
    if not text or not text.strip():
        return None
    moment = time_ms(text)
    if moment is None:
        raise SettingError(f"{text!r} is not a time: write it as 2026-11-21 or 2026-11-21T08:00:00Z")
    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return moment
    return moment + DAY_MS - 1 if is_end else moment


def arrived_since(moment_ms: int, fields: Fields) -> Query:
    """Return the query for articles that arrived after a moment."""
    return {"range": {f"{fields.dedup}.seen": {"gt": moment_ms, "format": "epoch_millis"}}}


def by_id(article_id: str, *, fields: Fields) -> dict[str, Any]:
    """Return the search for one article, whatever its routing; the last to arrive if several have the id."""
    return {
        "query": {"ids": {"values": [article_id]}},
        "sort": [{fields.seq: {"order": "desc", "unmapped_type": "long", "missing": "_last"}}],
        "size": 1,
        "_source": fields_read(fields),
    }


def texts_by_id(article_id: str, *, fields: Fields) -> dict[str, Any]:
    """Return the search for the articles with an id, in any index, with their texts; last to arrive first."""
    return by_id(article_id, fields=fields) | {"size": MAX_NAMESAKES, **_with_record(fields)}


def text_by_fingerprint(fingerprints: Sequence[str], *, fields: Fields) -> dict[str, Any]:
    """Return the search for the first article to arrive with one of the fingerprints, and its text."""
    return {
        "query": {"terms": {fields.fingerprint: list(fingerprints)}},
        "sort": [{fields.seq: {"order": "asc", "unmapped_type": "long"}}],
        "size": 1,
        **_with_record(fields),
    }


def texts_in_order(query: Query, *, fields: Fields) -> dict[str, Any]:
    """Return the search for articles with texts and sites, in the order of arrival; others first."""
    by_arrival = {fields.seq: {"order": "asc", "unmapped_type": "long", "missing": "_first"}}
    source = [fields.text, *site_fields(fields)]
    return {"query": query, "sort": [by_arrival], "_source": source, "track_total_hits": False}


def _with_record(fields: Fields) -> dict[str, Any]:
    """Return the part of a search that adds to each hit its text, and its record as it is indexed."""
    record: list[Any] = [
        f"{fields.dedup}.{name}" for name in ("root", "fingerprint", "page", "profile", "seq")
    ]
    record.append({"field": f"{fields.dedup}.seen", "format": "epoch_millis"})
    return {"_source": [*with_text(fields), *site_fields(fields)], "docvalue_fields": record}


def with_text(fields: Fields) -> list[str]:
    """Return the fields of an article that a new comparison needs."""
    return [fields.text, fields.dedup]


def order(by: Order, fields: Fields) -> list[dict[str, Any]]:
    """Return a sort in which no two articles tie, so that pages never overlap.

    Ties in time or score are broken by the order of arrival, which is unique within one forest; articles of
    several forests by their index.
    """
    direction = "asc" if by == "oldest" else "desc"
    by_time = {fields.published: {"order": direction, "missing": "_last", "unmapped_type": "date"}}
    by_arrival = {fields.seq: {"order": direction, "unmapped_type": "long"}}
    first: list[dict[str, Any]] = []
    if by == "relevance":
        first = [{"_score": {"order": "desc"}}]
    elif by == "longest":
        first = [{fields.length: {"order": "desc", "missing": "_last", "unmapped_type": "integer"}}]
    return [*first, by_time, by_arrival, {"_index": {"order": "asc"}}]

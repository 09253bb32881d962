"""Request bodies for Elasticsearch, as plain dicts. Pure: nothing is sent from here."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Literal

from esdedup.elastic.requests import Query
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.times import DAY_MS, time_ms

Order = Literal["relevance", "newest", "oldest", "longest"]
"""An order of articles."""

MAX_NAMESAKES = 10
"""Articles of one id, in several indices, that are told of."""


def within(query: Query | None, fields: Fields) -> Query:
    """Restrict a query to articles that have a root: those that came through esdedup."""
    with_root = {"exists": {"field": fields.root}}
    return {"bool": {"must": [query] if query else [], "filter": [with_root]}}


def words(text: str, fields: Fields) -> Query:
    """Ask for all words of `text` in title or text, each run of Chinese as a phrase."""
    chunks = text.split()
    if not chunks:
        raise SettingError("the query has no words")
    names = [f"{fields.title}^2", fields.text]
    return {
        "bool": {
            "must": [
                {
                    "multi_match": {
                        "query": chunk,
                        "fields": names,
                        "type": "phrase",
                        # A dash between words is none of them.
                        "zero_terms_query": "all",
                    }
                }
                for chunk in chunks
            ]
        }
    }


def narrowed(
    text: str | None,
    *,
    fields: Fields,
    since: str | None = None,
    until: str | None = None,
    source: str | None = None,
    source_field: str | None = None,
) -> Query | None:
    """Ask for what a search form asks for; None for everything.

    Args:
        text: Words, as `words` takes them.
        fields: The articles'.
        since: The first moment, inclusive: ISO 8601.
        until: The last moment, inclusive; of a day without a time, its end.
        source: The source's name, exactly.
        source_field: The field by which sources are told apart, if it is another one than theirs.

    Raises:
        SettingError: A time is none.
    """
    filters: list[Query] = []
    bounds = {"gte": _moment(since, is_end=False), "lte": _moment(until, is_end=True)}
    given = {what: moment for what, moment in bounds.items() if moment is not None}
    if given:
        # Whatever format the field has.
        filters.append({"range": {fields.time: given | {"format": "epoch_millis"}}})
    if source:
        filters.append({"term": {source_field or fields.source: source}})
    matching = [words(text, fields)] if text and text.strip() else []
    return {"bool": {"must": matching, "filter": filters}} if matching or filters else None


def _moment(text: str | None, *, is_end: bool) -> int | None:
    """Return a moment in milliseconds since 1970; of a day without a time its beginning or its end."""
    if not text or not text.strip():
        return None
    moment = time_ms(text)
    if moment is None:
        raise SettingError(f"{text!r} is no time: write it as 2026-11-21 or 2026-11-21T08:00:00Z")
    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return moment
    return moment + DAY_MS - 1 if is_end else moment


def by_id(article_id: str, *, fields: Fields) -> dict[str, Any]:
    """Ask for one article, whatever its routing; of several indices that have it, the last to arrive."""
    return {
        "query": {"ids": {"values": [article_id]}},
        "sort": [{fields.seq: {"order": "desc", "unmapped_type": "long", "missing": "_last"}}],
        "size": 1,
        "_source": shown(fields),
    }


def texts_by_id(article_id: str, *, fields: Fields) -> dict[str, Any]:
    """Ask for the articles of that id, one of each index, with their texts; the last to arrive first."""
    return by_id(article_id, fields=fields) | {"size": MAX_NAMESAKES, "_source": with_text(fields)}


def text_by_fingerprint(fingerprints: Sequence[str], *, fields: Fields) -> dict[str, Any]:
    """Ask for an article with one of those fingerprints, and its text: the first to arrive."""
    return {
        "query": {"terms": {f"{fields.dedup}.fingerprint": list(fingerprints)}},
        "sort": [{fields.seq: {"order": "asc", "unmapped_type": "long"}}],
        "size": 1,
        "_source": with_text(fields),
    }


def with_text(fields: Fields) -> list[str]:
    """Return the fields of an article that are needed to compare it anew."""
    return [fields.text, fields.dedup]


def order(by: Order, fields: Fields) -> list[dict[str, Any]]:
    """Return the sort of articles, in which no two are equal, so pages never overlap.

    Equals by time or score stand in the order of their arrival. A number of arrival is another one in
    another forest: articles of several are told apart by their index.
    """
    direction = "asc" if by == "oldest" else "desc"
    by_time = {fields.time: {"order": direction, "missing": "_last", "unmapped_type": "date"}}
    by_arrival = {fields.seq: {"order": direction, "unmapped_type": "long"}}
    first: list[dict[str, Any]] = []
    if by == "relevance":
        first = [{"_score": {"order": "desc"}}]
    elif by == "longest":
        first = [{fields.length: {"order": "desc", "missing": "_last", "unmapped_type": "integer"}}]
    return [*first, by_time, by_arrival, {"_index": {"order": "asc"}}]


def shown(fields: Fields) -> list[str]:
    """Return the fields of an article that lists show."""
    return [fields.title, fields.time, fields.source, fields.link, fields.root]

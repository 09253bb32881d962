"""Counts all matches of a search over time and by facet, with two searches."""

from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.paging import MAX_SIZE
from esdedup.reading.queries import aggregation, first_and_last, within
from esdedup.reading.results import Result, Timeline
from esdedup.reading.scope import IndexName, Scope
from esdedup.reading.search_form import (
    Choices,
    OneOfSources,
    SearchForm,
    Since,
    TimeZoneName,
    Until,
    Where,
    Words,
    filters_of,
)
from esdedup.reading.timeline import timeline_of
from esdedup.times import zone_named

_MAX_FIELDS = 8
# Facets with at most this many values are always shown.
_FEW_VALUES = 3
# A field whose repeated values together cover a smaller share of the articles is an identifier.
_LEAST_SHARE = 0.01
# How many values each shard sends; the largest counts are exact if no shard has many more values.
_VALUES_OF_A_SHARD = 1_000


class FacetValue(Result, frozen=True):
    """A value of a field, and how many articles have it."""

    value: str
    articles: int
    """Articles with this value, regardless of the values chosen in this field."""
    is_chosen: bool
    """Whether the search filters by this value."""


class Facet(Result, frozen=True):
    """The values of a field, the most frequent first."""

    field: str
    """The full name of the field."""
    values: tuple[FacetValue, ...]
    other_articles: int
    """Articles with values that are not listed; an article with several such values is counted for each."""
    is_exact: bool
    """Whether the counts are exact, and no other value has more articles; false if that is unknown, which can
    happen on several shards."""


class Overview(Result, frozen=True):
    """A summary of all matches of a search. It counts articles, not rows."""

    total_articles: int
    """All matching articles with a root."""
    timeline: Timeline
    """How many articles were published in each step of the time zone's calendar; sources are not counted."""
    sources: Facet | None
    """None if the source field cannot be counted."""
    facets: tuple[Facet, ...]
    """Further keyword fields of the index, at most 8, languages first. A field whose values are nearly all
    different, such as an identifier, is left out unless one of its values is chosen."""
    uneven_fields: tuple[str, ...] = ()
    """Fields that would be facets if the indices did not map them differently, at most 8."""


def overview(
    scope: Scope,
    index: IndexName,
    words: Words = None,
    *,
    since: Since = None,
    until: Until = None,
    source: OneOfSources = None,
    where: Where = None,
    time_zone: TimeZoneName = "UTC",
    size: int = 10,
) -> Requests[Overview]:
    """Summarise all matches of a search: articles over time, by source, by language and by other fields.

    The counts are of articles with a root, not of rows. The counts of a field ignore the values chosen in
    that field, so they show what another choice would find.

    Args:
        size: How many of the most frequent values of each field to return, 1 to 1,000; chosen values are
            returned in addition.

    Raises:
        SettingError: As for `search_query`; or the size is out of range.
        IndexNotReady: The index is missing, or lacks the fields that are searched.
    """
    form = SearchForm(
        words=words, since=since, until=until, source=source, where=where, zone=zone_named(time_zone)
    )
    if size not in range(1, MAX_SIZE + 1):
        raise SettingError(f"the size is {size!r}; from 1 to {MAX_SIZE:,} values of each field are possible")
    ready = yield from scope.check(index)
    choices = form.choices(ready)
    # The first few keyword fields, and all keyword fields that have a chosen value.
    further = [name for at, name in enumerate(ready.keyword_fields) if at < _MAX_FIELDS or name in choices]
    counted = [ready.source_field, *further] if ready.source_field else further
    query = form.query(ready.fields)
    body = overview_body(query, choices=choices, facets=counted, size=size, fields=ready.fields)
    (answer,) = yield from search(ready.index, body)
    found = answer["aggregations"]
    facets = [_facet(field, found[f"facet-{at}"], choices.get(field, ())) for at, field in enumerate(counted)]
    sources = facets.pop(0) if ready.source_field else None
    matching = within(form.query(ready.fields, filters_of(choices)), ready.fields)
    timeline = timeline_of(matching, ready, found["matching"], zone=form.zone)
    return Overview(
        total_articles=found["matching"]["doc_count"],
        timeline=(yield from timeline),
        sources=sources,
        facets=tuple(each for each in facets if _is_worth_showing(each)),
        uneven_fields=tuple(ready.uneven_fields[:_MAX_FIELDS]),
    )


def _facet(field: str, found: dict[str, Any], chosen: Sequence[str]) -> Facet:
    counts = {str(bucket["key"]): bucket["doc_count"] for bucket in found["values"]["buckets"]}
    others = found["values"]["sum_other_doc_count"]
    for bucket in found.get("chosen", {}).get("buckets", []):
        if bucket["key"] not in counts:
            counts[bucket["key"]] = bucket["doc_count"]
            others -= bucket["doc_count"]
    counts |= {value: 0 for value in chosen if value not in counts}
    return Facet(
        field=field,
        values=tuple(
            FacetValue(value=value, articles=articles, is_chosen=value in chosen)
            for value, articles in counts.items()
        ),
        other_articles=max(0, others),
        is_exact=found["values"]["doc_count_error_upper_bound"] == 0,
    )


def _is_worth_showing(facet: Facet) -> bool:
    """Return whether a facet groups articles; the values of an identifier are nearly all different."""
    if any(each.is_chosen for each in facet.values):
        return True
    if len(facet.values) <= _FEW_VALUES and not facet.other_articles:
        return bool(facet.values)
    articles = facet.other_articles + sum(each.articles for each in facet.values)
    shared = [each.articles for each in facet.values if each.articles > 1]
    # A single repeated value may stand for unknown identifiers.
    return len(shared) >= min(2, len(facet.values)) and sum(shared) >= _LEAST_SHARE * articles


def overview_body(
    query: Query | None, *, choices: Choices, facets: Sequence[str], size: int, fields: Fields
) -> Query:
    """Return the search that counts articles in total and by the values of fields, and finds their times.

    The chosen values of a field do not narrow the counts of that field.
    """
    matching = {"filter": {"bool": {"filter": filters_of(choices)}}, "aggs": first_and_last(fields)}
    aggs: Query = {"matching": matching}
    for number, field in enumerate(facets):
        terms = {"field": field, "size": size, "shard_size": max(size, _VALUES_OF_A_SHARD)}
        counts: Query = {"values": {"terms": terms}}
        if values := choices.get(field):
            counts["chosen"] = {"terms": {"field": field, "include": list(values), "size": len(values)}}
        others = {"bool": {"filter": filters_of(choices, but=field)}}
        # The name of a field may be invalid as the name of an aggregation.
        aggs[f"facet-{number}"] = {"filter": others, "aggs": counts}
    return aggregation(within(query, fields), aggs)

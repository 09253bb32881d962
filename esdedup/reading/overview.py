"""Counts articles over time, in a cluster or a search, and the matches of a search by facet."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading import queries
from esdedup.reading.paging import MAX_SIZE
from esdedup.reading.results import Result, Timeline, TimelineStep
from esdedup.reading.scope import CheckedIndex, IndexName, Scope
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
from esdedup.times import DAY_MS, iso, time_ms, zone_named

_MAX_STEPS = 48
# The maximum for a search, so that each step is wide enough to click on a web page.
_MAX_STEPS_OF_A_SEARCH = 36
# How many sources each shard sends; the largest count is exact if no shard has more sources.
_SOURCES_OF_A_SHARD = 10_000
_FIRST_DAY_MS = time_ms("0001-01-02") or 0
_MINUTE_MS = 60_000
_PARTS_OF_A_DAY_MS = [minutes * _MINUTE_MS for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720)]
_INTERVALS_MS = [*_PARTS_OF_A_DAY_MS, *(days * DAY_MS for days in (1, 2, 7, 28))]
# Units of the calendar, by their approximate length.
_CALENDAR = {
    days * DAY_MS: unit
    for days, unit in ((1, "day"), (7, "week"), (30, "month"), (91, "quarter"), (365, "year"))
}
# Intervals for a search; days and longer steps follow the calendar.
_SEARCH_INTERVALS_MS = [*_PARTS_OF_A_DAY_MS, *_CALENDAR]


def timeline(scope: Scope, index: IndexName, root: str) -> Requests[Timeline]:
    """Return how many articles of a cluster were published over time, in at most 48 steps of equal length.

    Also return the earliest article and the source with the most articles.

    Args:
        root: The cluster's root.
    """
    queries.check_term("root", root)
    ready = yield from scope.check(index)
    source_field, fields = ready.source_field, ready.fields
    cluster, counted = {"term": {fields.cluster: root}}, queries.first_and_last(fields)
    if source_field is not None:
        terms = {"field": source_field, "size": 1, "shard_size": _SOURCES_OF_A_SHARD}
        counted["sources"] = {"terms": terms}
    body = {
        "query": cluster,
        "sort": queries.order("oldest", fields),
        "size": 1,
        "track_total_hits": False,
        "_source": queries.fields_read(fields),
        "aggs": counted,
    }
    (answer,) = yield from search(ready.index, body)
    found = answer["aggregations"]
    steps = yield from timeline_of(cluster, ready, found, source_field=source_field)
    largest = found.get("sources", {}).get("buckets") or [{"key": None, "doc_count": 0}]
    return steps.model_copy(
        update={
            "earliest": next(queries.articles_in(answer, fields), None),
            "largest_source": largest[0]["key"],
            "largest_source_articles": largest[0]["doc_count"],
        }
    )


def timeline_of(
    query: Query,
    ready: CheckedIndex,
    times: dict[str, Any],
    *,
    zone: ZoneInfo | None = None,
    source_field: str | None = None,
) -> Requests[Timeline]:
    """Count the matches and their sources in equal steps from the first match, or by the calendar of `zone`.

    `times` contains the results of the aggregations `first` and `last`.
    """
    first, last = (times[name]["value"] for name in ("first", "last"))
    if first is None or last is None:
        return Timeline(interval_ms=_INTERVALS_MS[0], steps=())
    length_ms = interval_ms(int(last - first), is_by_calendar=zone is not None)
    if zone is None:
        intervals = queries.over_time(length_ms, int(first), ready.fields)
    else:
        intervals = by_calendar(length_ms, zone, ready.fields)
    body = articles_over_time(query, intervals, source_field=source_field)
    (answer,) = yield from search(ready.index, body)
    buckets = answer["aggregations"]["steps"]["buckets"]
    starts_ms = [int(bucket["key"]) for bucket in buckets]
    starts_ms += [end_ms(each, length_ms, zone) for each in starts_ms[-1:]]
    steps = tuple(
        TimelineStep(
            start=iso(max(start, _FIRST_DAY_MS), zone or UTC),
            end=iso(end, zone or UTC),
            articles=bucket["doc_count"],
            sources=bucket["sources"]["value"] if "sources" in bucket else None,
        )
        for (start, end), bucket in zip(itertools.pairwise(starts_ms), buckets, strict=True)
    )
    return Timeline(interval_ms=length_ms, last=iso(int(last), zone or UTC), steps=steps)


def interval_ms(span_ms: int, *, is_by_calendar: bool = False) -> int:
    """Return the shortest standard interval that gives few enough steps; if none does, whole minutes."""
    most_steps = _MAX_STEPS_OF_A_SEARCH if is_by_calendar else _MAX_STEPS
    standard = _SEARCH_INTERVALS_MS if is_by_calendar else _INTERVALS_MS
    fitting = (each for each in standard if span_ms // each < most_steps)
    minutes = -(-(span_ms + 1) // (most_steps * _MINUTE_MS))
    return next(fitting, minutes * _MINUTE_MS)


def by_calendar(length_ms: int, zone: ZoneInfo, fields: Fields) -> Query:
    """Return the histogram by a zone's calendar: parts of days, days, weeks, months and so on."""
    unit = _CALENDAR.get(length_ms)
    length = {"calendar_interval": unit} if unit else {"fixed_interval": f"{length_ms}ms"}
    return {"field": fields.published, "time_zone": zone.key, **length}


def end_ms(start_ms: int, length_ms: int, zone: tzinfo | None) -> int:
    """Return the end of an interval, by a zone's calendar if given."""
    if zone is None or length_ms not in _CALENDAR:
        return start_ms + length_ms
    try:
        # Adding to the local time makes the result independent of changes to summer time.
        end = datetime.fromtimestamp(start_ms / 1000, zone) + timedelta(milliseconds=length_ms)
        if _CALENDAR[length_ms] not in {"day", "week"}:
            end = (end + timedelta(days=2)).replace(day=1)
        return int(end.timestamp() * 1000)
    except (OverflowError, ValueError, OSError):
        return start_ms + length_ms


def articles_over_time(query: Query, intervals: Query, *, source_field: str | None = None) -> Query:
    """Return the search that counts the articles that match, and their sources, in each interval."""
    steps: Query = {"date_histogram": intervals}
    if source_field is not None:
        steps["aggs"] = {"sources": {"cardinality": {"field": source_field}}}
    return queries.aggregation(query, {"steps": steps})


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
    matching = queries.within(form.query(ready.fields, filters_of(choices)), ready.fields)
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
    matching = {"filter": {"bool": {"filter": filters_of(choices)}}, "aggs": queries.first_and_last(fields)}
    aggs: Query = {"matching": matching}
    for number, field in enumerate(facets):
        terms = {"field": field, "size": size, "shard_size": max(size, _VALUES_OF_A_SHARD)}
        counts: Query = {"values": {"terms": terms}}
        if values := choices.get(field):
            counts["chosen"] = {"terms": {"field": field, "include": list(values), "size": len(values)}}
        others = {"bool": {"filter": filters_of(choices, but=field)}}
        # The name of a field may be invalid as the name of an aggregation.
        aggs[f"facet-{number}"] = {"filter": others, "aggs": counts}
    return queries.aggregation(queries.within(query, fields), aggs)

"""Counts the articles of a cluster, or the matches of a search, over time."""

import itertools
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from esdedup.elastic.requests import Query, Requests, search
from esdedup.fields import Fields
from esdedup.reading import queries
from esdedup.reading.results import Timeline, TimelineStep
from esdedup.reading.scope import CheckedIndex, IndexName, Scope
from esdedup.times import DAY_MS, iso, time_ms

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
SHORTEST_MS = _INTERVALS_MS[0]


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
        return Timeline(interval_ms=SHORTEST_MS, steps=())
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

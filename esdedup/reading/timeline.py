"""Articles over time: those of a cluster, and those that a search finds."""

from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.fields import Fields
from esdedup.reading.queries import (
    aggregation,
    check_term,
    fields_read,
    first_and_last,
    order,
    over_time,
    values_of,
    within,
)
from esdedup.reading.results import Article, Timeline, TimelineStep
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.times import iso

_MAX_STEPS = 48
# Of what a search finds: narrow enough for a page, and with room for a click on each.
_MAX_STEPS_OF_A_SEARCH = 36
# Sources that each shard sends: the largest is exact if no shard has more.
_SOURCES_OF_A_SHARD = 10_000
_MINUTE_MS = 60_000
_DAY_MS = 1_440 * _MINUTE_MS
# From a minute to four weeks.
_INTERVALS_MS = [
    minutes * _MINUTE_MS for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 40320)
]
# 1970-01-05 was a Monday.
_FIRST_MONDAY_MS = 4 * _DAY_MS
SHORTEST_MS = _INTERVALS_MS[0]


def timeline(scope: Scope, index: str, root: str) -> Requests[Timeline]:
    """Return how many articles of a cluster were published when, in at most 48 steps of equal length.

    Also who published it first, and who most often.

    Args:
        root: The cluster's root.
    """
    check_term("root", root)
    ready = yield from scope.ready(index)
    source_field, fields = ready.source_field, ready.fields
    (answer,) = yield from search(ready.index, spread(root, source_field=source_field, fields=fields))
    found = answer["aggregations"]
    cluster = {"term": {fields.root: root}}
    steps = yield from _timeline(
        cluster, ready, found, most_steps=_MAX_STEPS, is_by_calendar=False, source_field=source_field
    )
    earliest = (Article(**values_of(hit, fields)) for hit in answer["hits"]["hits"])
    largest = found.get("sources", {}).get("buckets") or [{"key": None, "doc_count": 0}]
    return steps.model_copy(
        update={
            "earliest": next(earliest, None),
            "largest_source": largest[0]["key"],
            "largest_source_articles": largest[0]["doc_count"],
        }
    )


def timeline_of_search(
    query: Query | None, ready: ReadyIndex, matching: dict[str, Any]
) -> Requests[Timeline]:
    """Return when the articles that match were published, between the times in the aggregation `matching`."""
    matched = within(query, ready.fields)
    return _timeline(matched, ready, matching, most_steps=_MAX_STEPS_OF_A_SEARCH, is_by_calendar=True)


def _timeline(
    query: Query,
    ready: ReadyIndex,
    times: dict[str, Any],
    *,
    most_steps: int,
    is_by_calendar: bool,
    source_field: str | None = None,
) -> Requests[Timeline]:
    """Count the articles that match, and their sources, in steps from the first one or by the calendar."""
    first, last = (times[name]["value"] for name in ("first", "last"))
    if first is None or last is None:
        return Timeline(interval_ms=SHORTEST_MS, steps=())
    length_ms = interval_ms(int(last - first), most_steps=most_steps)
    body = articles_over_time(
        query,
        interval_ms=length_ms,
        offset_ms=calendar_offset_ms(length_ms) if is_by_calendar else int(first),
        fields=ready.fields,
        source_field=source_field,
    )
    (answer,) = yield from search(ready.index, body)
    steps = tuple(
        TimelineStep(
            start=iso(int(bucket["key"])),
            articles=bucket["doc_count"],
            sources=bucket["sources"]["value"] if "sources" in bucket else None,
        )
        for bucket in answer["aggregations"]["steps"]["buckets"]
    )
    return Timeline(interval_ms=length_ms, last=iso(int(last)), steps=steps)


def interval_ms(span_ms: int, *, most_steps: int) -> int:
    """Return the shortest standard interval that gives few enough steps; for longer spans, whole minutes."""
    fitting = (each for each in _INTERVALS_MS if span_ms // each < most_steps)
    minutes = -(-(span_ms + 1) // (most_steps * _MINUTE_MS))
    return next(fitting, minutes * _MINUTE_MS)


def calendar_offset_ms(length_ms: int) -> int:
    """Return where intervals begin, so that hours and days are those of UTC, and weeks begin on Monday."""
    return _FIRST_MONDAY_MS % length_ms if length_ms % (7 * _DAY_MS) == 0 else 0


def spread(root: str, *, source_field: str | None, fields: Fields) -> Query:
    """Return the search for a root's first article, its first and last times, and its largest source."""
    aggregations = first_and_last(fields)
    if source_field is not None:
        aggregations["sources"] = {
            "terms": {"field": source_field, "size": 1, "shard_size": _SOURCES_OF_A_SHARD}
        }
    return {
        "query": {"term": {fields.root: root}},
        "sort": order("oldest", fields),
        "size": 1,
        "track_total_hits": False,
        "_source": fields_read(fields),
        "aggs": aggregations,
    }


def articles_over_time(
    query: Query, *, interval_ms: int, offset_ms: int, fields: Fields, source_field: str | None = None
) -> Query:
    """Return the search that counts the articles that match, and their sources, in each interval."""
    steps: Query = {"date_histogram": over_time(interval_ms, offset_ms, fields)}
    if source_field is not None:
        steps["aggs"] = {"sources": {"cardinality": {"field": source_field}}}
    return aggregation(query, {"steps": steps})

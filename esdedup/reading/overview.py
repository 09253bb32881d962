"""What a search finds as a whole: articles over time, and facets. One search, and one more for the times."""

import dataclasses
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.reading import overview_bodies as bodies
from esdedup.reading.choices import Choices
from esdedup.reading.intervals import SHORTEST_MS, calendar_offset_ms, interval_ms
from esdedup.reading.overview_results import Facet, FacetValue, Overview
from esdedup.reading.paging import MAX_SIZE
from esdedup.reading.results import Timeline, TimelineStep
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.search_form import SearchForm
from esdedup.times import iso

# Narrow enough for a page, and with room for a click on each.
_MAX_STEPS = 36
_MAX_FIELDS = 8
# A field of which each article has another value is an identifier, unless few articles are found.
_MOST_ALONE = 3


def overview(scope: Scope, index: str, form: SearchForm, *, size: int) -> Requests[Overview]:
    """Return what a form finds; see `Operations.overview`."""
    if size not in range(1, MAX_SIZE + 1):
        raise SettingError(f"{size!r} values of each field: from 1 to {MAX_SIZE:,} are possible")
    ready = yield from scope.ready(index)
    choices = form.choices(index, ready)
    asked = _Asked(
        fields=[*([ready.source_field] if ready.source_field else []), *_further(ready, choices)],
        choices=choices,
    )
    body = bodies.overview(
        form.query(ready), choices=choices, facets=asked.fields, size=size, fields=ready.fields
    )
    (answer,) = yield from search(index, body)
    found = answer["aggregations"]
    facets = asked.facets(found)
    sources = facets.pop(0) if ready.source_field else None
    return Overview(
        total_articles=found["matching"]["doc_count"],
        timeline=(yield from _timeline(index, form.query(ready, choices), ready, found["matching"])),
        sources=sources,
        facets=tuple(each for each in facets if _is_worth_showing(each)),
        uneven_fields=tuple(ready.uneven_fields[:_MAX_FIELDS]),
    )


def _further(ready: ReadyIndex, choices: Choices) -> list[str]:
    """Return the first few keyword fields, and those that have a chosen value."""
    known = ready.keyword_fields
    return [name for at, name in enumerate(known) if at < _MAX_FIELDS or name in choices.by_field]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Asked:
    """Fields whose values are counted."""

    fields: list[str]
    choices: Choices

    def facets(self, found: dict[str, Any]) -> list[Facet]:
        """Read the facets from the answer, in the order of the fields."""
        return [self._facet(field, found[bodies.facet_name(at)]) for at, field in enumerate(self.fields)]

    def _facet(self, field: str, found: dict[str, Any]) -> Facet:
        chosen = self.choices.by_field.get(field, ())
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
    """Return whether a facet groups articles: an identifier has another value in each."""
    is_identifier = len(facet.values) > _MOST_ALONE and all(each.articles <= 1 for each in facet.values)
    return bool(facet.values) and (not is_identifier or any(each.is_chosen for each in facet.values))


def _timeline(
    index: str, query: Query | None, ready: ReadyIndex, matching: dict[str, Any]
) -> Requests[Timeline]:
    first, last = (matching[name]["value"] for name in ("first", "last"))
    if first is None or last is None:
        return Timeline(interval_ms=SHORTEST_MS, steps=())
    length_ms = interval_ms(int(last - first), most_steps=_MAX_STEPS)
    body = bodies.articles_over_time(
        query, interval_ms=length_ms, offset_ms=calendar_offset_ms(length_ms), fields=ready.fields
    )
    (answer,) = yield from search(index, body)
    return Timeline(
        interval_ms=length_ms,
        last=iso(int(last)),
        steps=tuple(
            TimelineStep(start=iso(int(bucket["key"])), articles=bucket["doc_count"], sources=None)
            for bucket in answer["aggregations"]["steps"]["buckets"]
        ),
    )

"""Bodies of the searches for what a search finds as a whole. Pure."""

from collections.abc import Sequence

from esdedup.elastic.requests import Query
from esdedup.fields import Fields
from esdedup.reading.choices import Choices
from esdedup.reading.queries import within

# Values that each shard sends: the counts of the largest are exact if no shard has many more.
_VALUES_OF_A_SHARD = 1_000


def facet_name(number: int) -> str:
    """Return the name of the aggregation for a field; the name of a field cannot always be one."""
    return f"facet-{number}"


def overview(
    query: Query | None, *, choices: Choices, facets: Sequence[str], size: int, fields: Fields
) -> Query:
    """Return the search that counts articles in all and by the values of fields, and finds their times.

    Args:
        query: Words and times.
        choices: The chosen values; those of a field do not narrow the counts of its own values.
        facets: The full names of the fields.
        size: How many values of each.
        fields: The names of the articles' fields.
    """
    times = {"first": {"min": {"field": fields.published}}, "last": {"max": {"field": fields.published}}}
    aggs: Query = {"matching": {"filter": {"bool": {"filter": choices.filters()}}, "aggs": times}}
    for number, field in enumerate(facets):
        terms = {"field": field, "size": size, "shard_size": max(size, _VALUES_OF_A_SHARD)}
        counts: Query = {"values": {"terms": terms}}
        if chosen := choices.by_field.get(field):
            counts["chosen"] = {"terms": {"field": field, "include": list(chosen), "size": len(chosen)}}
        others = {"bool": {"filter": choices.filters(but=field)}}
        aggs[facet_name(number)] = {"filter": others, "aggs": counts}
    return {"query": within(query, fields), "size": 0, "track_total_hits": False, "aggs": aggs}


def articles_over_time(query: Query | None, *, interval_ms: int, offset_ms: int, fields: Fields) -> Query:
    """Return the search that counts matching articles in each interval."""
    histogram = {
        "field": fields.published,
        "fixed_interval": f"{interval_ms}ms",
        "offset": f"{offset_ms}ms",
    }
    return {
        "query": within(query, fields),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"steps": {"date_histogram": histogram}},
    }

"""Bodies of the searches for what rows unfold to. Pure."""

import dataclasses
from collections.abc import Sequence

from esdedup.elastic.limits import MAX_HITS
from esdedup.elastic.requests import Query
from esdedup.fields import Fields
from esdedup.reading.hits import fields_read
from esdedup.reading.queries import MAX_NAMESAKES, Order, order

_SOURCES = 5
_VERSIONS = 24
# Sources that each shard sends: the counts of the largest are exact if no shard has more.
_SOURCES_OF_A_SHARD = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSearch:
    """A cluster, and the spans in which its articles are counted."""

    root: str
    first_ms: int
    # None: they are not counted.
    interval_ms: int | None


def cluster_name(number: int) -> str:
    """Return the name of the aggregation for a cluster; a root cannot always be one."""
    return f"cluster-{number}"


def clusters(searches: Sequence[ClusterSearch], *, source_field: str | None, fields: Fields) -> Query:
    """Return the search for the first and the last article of clusters, their versions, sources and spread.

    Only the first and the last are read with their values: an article's source may be long.
    """
    return {
        "query": {"terms": {fields.root: [each.root for each in searches]}},
        "size": 0,
        "track_total_hits": False,
        "aggs": {
            cluster_name(number): {
                "filter": {"term": {fields.root: each.root}},
                "aggs": _of_cluster(each, source_field, fields),
            }
            for number, each in enumerate(searches)
        },
    }


def _of_cluster(each: ClusterSearch, source_field: str | None, fields: Fields) -> Query:
    version = {"size": 1, "sort": order("oldest", fields), **with_record(fields)}
    # By key: of very many versions, a selection that does not depend on what they say.
    by_fingerprint = {
        "field": fields.fingerprint,
        "size": _VERSIONS,
        "order": {"_key": "asc"},
        # Else hits would be collected for every version of a large cluster, and most of them thrown away.
        "collect_mode": "breadth_first",
    }
    aggs: Query = {
        "earliest": _first("oldest", fields),
        "latest": _first("newest", fields),
        "versions": {"terms": by_fingerprint, "aggs": {"version": {"top_hits": version}}},
    }
    if source_field is not None:
        terms = {"field": source_field, "size": _SOURCES, "shard_size": _SOURCES_OF_A_SHARD}
        aggs["sources"] = {"terms": terms}
    if each.interval_ms is not None:
        aggs["spread"] = {
            "date_histogram": {
                "field": fields.published,
                "fixed_interval": f"{each.interval_ms}ms",
                "offset": f"{each.first_ms % each.interval_ms}ms",
                "min_doc_count": 1,
            }
        }
    return aggs


def _first(by: Order, fields: Fields) -> Query:
    return {"top_hits": {"size": 1, "sort": order(by, fields), "_source": fields_read(fields)}}


def with_record(fields: Fields) -> Query:
    """Return the part of a search that adds to each hit what its text is compared by, without its source."""
    names = ("fingerprint", "signature", "profile")
    return {"_source": False, "docvalue_fields": [f"{fields.dedup}.{name}" for name in names]}


def by_ids(ids: Sequence[str], *, fields: Fields) -> Query:
    """Return the search for articles by their ids; the same ids may be in several indices."""
    return {
        "query": {"ids": {"values": list(ids)}},
        "size": min(MAX_HITS, MAX_NAMESAKES * len(ids)),
        "track_total_hits": False,
        "_source": fields_read(fields),
    }

"""What the rows of a page unfold to, in two requests for all of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from esdedup.elastic.requests import Requests, search
from esdedup.fields import Fields, term_of
from esdedup.reading import row_details_bodies as bodies
from esdedup.reading.hits import Hit, values_of
from esdedup.reading.list_request import ListRequest
from esdedup.reading.results import Article, Row, RowDetails, SimilarArticle, SourceCount
from esdedup.reading.row_details_bodies import ClusterSearch
from esdedup.reading.similarity import Similarity
from esdedup.reading.snippets import snippets_body, snippets_of
from esdedup.times import time_ms

_STEPS = 24
# Times the buckets of each cluster, some 60, this stays far below Elasticsearch's limit on buckets.
_CLUSTERS_IN_A_SEARCH = 60

_Place = tuple[str, str]
"""The index and the id of an article."""


def with_details(
    rows: Sequence[Row], request: ListRequest, *, source_field: str | None
) -> Requests[tuple[Row, ...]]:
    """Return the rows with their details."""
    fields = request.fields
    searches = list({row.root: _cluster_search(row) for row in rows if row.root and row.similar}.values())
    texts, *answers = yield from search(
        request.index,
        snippets_body(rows, request.query, fields=fields) | bodies.with_record(fields),
        *(
            bodies.clusters(
                searches[first : first + _CLUSTERS_IN_A_SEARCH], source_field=source_field, fields=fields
            )
            for first in range(0, len(searches), _CLUSTERS_IN_A_SEARCH)
        ),
    )
    hits = texts["hits"]["hits"]
    clusters = {
        each.root: _Cluster(asked=each, found=found, fields=fields)
        for each, found in zip(searches, _found(answers), strict=True)
    }
    shown = {_place(hit): _with_record(hit) for hit in hits}
    different = {
        (row.index, row.id): version
        for row in rows
        if (cluster := clusters.get(row.root or "")) is not None
        if (version := cluster.most_different(shown.get((row.index, row.id)))) is not None
    }
    versions = yield from _similar_articles(different, request)
    details = (
        RowDetails(
            snippet=snippet,
            most_different=versions.get((row.index, row.id)),
            **_of_cluster(row, clusters.get(row.root or "")),
        )
        for row, snippet in zip(rows, snippets_of(rows, hits, fields=fields), strict=True)
    )
    return tuple(row.model_copy(update={"details": each}) for row, each in zip(rows, details, strict=True))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Cluster:
    """What was found about a cluster of several articles."""

    asked: ClusterSearch
    found: dict[str, Any]
    fields: Fields

    def article(self, name: str) -> Article | None:
        """Return the earliest or the latest article."""
        hits = self.found[name]["hits"]["hits"]
        return next((Article(**values_of(hit, self.fields)) for hit in hits), None)

    @property
    def largest_sources(self) -> tuple[SourceCount, ...]:
        buckets = self.found.get("sources", {"buckets": []})["buckets"]
        return tuple(SourceCount(source=str(each["key"]), articles=each["doc_count"]) for each in buckets)

    @property
    def spread(self) -> tuple[int, ...]:
        if self.asked.interval_ms is None:
            return ()
        counts = [0] * _STEPS
        for bucket in self.found["spread"]["buckets"]:
            step = (int(bucket["key"]) - self.asked.first_ms) // self.asked.interval_ms
            # The first and the last time are known to the second, and articles may have arrived meanwhile.
            counts[min(max(step, 0), _STEPS - 1)] += bucket["doc_count"]
        return tuple(counts)

    def most_different(self, shown: Hit | None) -> tuple[Hit, dict[str, Any]] | None:
        """Return the version that is least like the article shown, and how similar; None if none is known."""
        if shown is None:
            return None
        own = term_of(shown["_source"], self.fields.fingerprint)
        versions = [
            _with_record(hit)
            for bucket in self.found["versions"]["buckets"]
            if bucket["key"] != own
            for hit in bucket["version"]["hits"]["hits"]
        ]
        return Similarity.to(shown, self.fields).most_different(versions, self.fields)


def _cluster_search(row: Row) -> ClusterSearch:
    first_ms, last_ms = time_ms(row.first), time_ms(row.last)
    interval_ms = None
    if first_ms is not None and last_ms is not None and last_ms > first_ms:
        interval_ms = -(-(last_ms + 1 - first_ms) // _STEPS)
    return ClusterSearch(root=row.root or "", first_ms=first_ms or 0, interval_ms=interval_ms)


def _found(answers: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what was found about each cluster, in the order of the searches."""
    return [
        each["aggregations"][bodies.cluster_name(number)]
        for each in answers
        for number in range(len(each["aggregations"]))
    ]


def _of_cluster(row: Row, cluster: _Cluster | None) -> dict[str, Any]:
    """Return the details that do not depend on which article a row shows."""
    if cluster is None:
        alone = Article(**{name: getattr(row, name) for name in Article.model_fields})
        return {"earliest": alone, "latest": alone, "largest_sources": (), "spread": ()}
    return {
        "earliest": cluster.article("earliest"),
        "latest": cluster.article("latest"),
        "largest_sources": cluster.largest_sources,
        "spread": cluster.spread,
    }


def _similar_articles(
    different: Mapping[_Place, tuple[Hit, dict[str, Any]]], request: ListRequest
) -> Requests[dict[_Place, SimilarArticle]]:
    """Read the most different version of each row's article, by the place of that article."""
    if not different:
        return {}
    ids = sorted({hit["_id"] for hit, _ in different.values()})
    (answer,) = yield from search(request.index, bodies.by_ids(ids, fields=request.fields))
    found = {_place(hit): hit for hit in answer["hits"]["hits"]}
    return {
        of: SimilarArticle(**values_of(found[_place(hit)], request.fields), **measure)
        for of, (hit, measure) in different.items()
        # It may have been deleted meanwhile.
        if _place(hit) in found
    }


def _place(hit: Hit) -> _Place:
    return hit["_index"], hit["_id"]


def _with_record(hit: Hit) -> Hit:
    """Return a hit whose doc values stand where its source would."""
    return hit | {"_source": {name: values[0] for name, values in hit.get("fields", {}).items()}}

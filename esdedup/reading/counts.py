"""The counts that rows show, and the totals of the list."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from esdedup.elastic.requests import UNREAD, Query, Requests, search
from esdedup.fields import PARTITIONS
from esdedup.reading.list_request import (
    ListRequest,
    count_articles,
    in_partitions,
    larger_roots,
    roots_of,
    with_roots,
)
from esdedup.reading.queries import aggregation, arrived_since, moment_of
from esdedup.reading.scope import Tuning

# Times the sources counted for each root, this stays below Elasticsearch's limit on buckets.
_ROOTS_IN_A_SEARCH = 60
# Sources of a cluster that are counted for its row.
_MAX_COUNTED_SOURCES = 1_000
# An estimate above `exact_rows` times this factor is returned without counting.
_ESTIMATE_MARGIN = 1.1


def searches_for_clusters(
    request: ListRequest, roots: Sequence[str], source_field: str | None
) -> list[Query]:
    """Return the searches that count the articles of each root; none if there are no roots."""
    parts = [roots[at : at + _ROOTS_IN_A_SEARCH] for at in range(0, len(roots), _ROOTS_IN_A_SEARCH)]
    return [count_clusters(request, each, source_field=source_field) for each in parts]


def counts_of_clusters(answers: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return the counts of each root from the answers, named as the fields of `Row`."""
    return {
        bucket["key"]: {
            "similar": bucket["doc_count"] - 1,
            "matching": bucket["matching"]["doc_count"],
            "sources": bucket["sources"]["count"] if "sources" in bucket else None,
            "new_articles": bucket["new"]["doc_count"] if "new" in bucket else None,
            "first": moment_of(bucket["first"]),
            "last": moment_of(bucket["last"]),
        }
        for answer in answers
        for bucket in answer["aggregations"]["roots"]["buckets"]
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowCounter:
    """Counts or estimates the rows on all pages of a list."""

    request: ListRequest
    tuning: Tuning
    total_articles: int

    def searches(self) -> list[Query]:
        """Return the search that counts or estimates rows; none without dedup: rows are articles."""
        if not self.request.dedup:
            return []
        if self.total_articles <= self.tuning.few_articles:
            return [count_rows(self.request, up_to=self.tuning.exact_rows, is_few=True)]
        is_many = self.total_articles > self.tuning.many_articles
        return [estimate_rows(self.request, partitions=self.tuning.estimate_partitions if is_many else None)]

    def rows(self, answers: Sequence[Any]) -> Requests[tuple[int, bool]]:
        """Return the number of rows by the answer to the search, if any, and whether it is exact."""
        if not answers:
            return self.total_articles, True
        if self.total_articles <= self.tuning.few_articles:
            rows, is_exact = int(answers[0]["aggregations"]["rows"]["count"]), True
        else:
            rows, is_exact = yield from self._counted_or_estimated(answers[0])
        if self.request.only is not None:
            rows, is_exact = yield from self._only(rows)
        return rows, is_exact

    def _counted_or_estimated(self, answer: Any) -> Requests[tuple[int, bool]]:
        """Return the number of rows, counted if the estimate is low enough; and whether it is exact."""
        request, tuning = self.request, self.tuning
        rows = int(answer["aggregations"]["rows"]["value"])
        if self.total_articles > tuning.many_articles:
            rows *= PARTITIONS // tuning.estimate_partitions
            if rows < 4 * tuning.exact_rows:
                # Too few rows for an estimate from some partitions, or the articles lack the partition field.
                (answer,) = yield from search(request.index, estimate_rows(request))
                rows = int(answer["aggregations"]["rows"]["value"])
        if rows > _ESTIMATE_MARGIN * tuning.exact_rows:
            return rows, False
        body = count_rows(request, up_to=tuning.exact_rows, is_few=False)
        (answer,) = yield from search(request.index, body)
        counted = int(answer["aggregations"]["rows"]["count"])
        return (counted, True) if counted <= tuning.exact_rows else (rows, False)

    def _only(self, rows: int) -> Requests[tuple[int, bool]]:
        """Return how many of `rows` rows `only` keeps, and whether that is exact.

        Counted from all roots if they are few enough, else estimated from some partitions.
        """
        request, tuning = self.request, self.tuning
        is_exact = rows <= tuning.exact_rows
        partitions = None if is_exact else max(1, PARTITIONS * tuning.inspected_roots // rows)
        body = roots_of(request, size=tuning.max_roots, partitions=partitions)
        (answer,) = yield from search(request.index, body)
        roots = [bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]]
        if not roots:
            return 0, is_exact
        (answer,) = yield from search(request.index, larger_roots(request, roots))
        with_similar = len(answer["aggregations"]["roots"]["buckets"])
        kept = with_similar if request.only == "similar" else len(roots) - with_similar
        return (kept, True) if partitions is None else (kept * PARTITIONS // partitions, False)


def count_clusters(request: ListRequest, roots: Sequence[str], *, source_field: str | None) -> Query:
    """Return the search that counts the articles of each root, all and matching, exactly on any shards.

    If the request asks for it, also those that have arrived since a moment.
    """
    fields = request.fields
    aggs: Query = {
        "matching": {"filter": request.articles},
        "first": {"min": {"field": fields.published}},
        "last": {"max": {"field": fields.published}},
    }
    if request.arrived_since_ms is not None:
        aggs["new"] = {"filter": arrived_since(request.arrived_since_ms, fields)}
    if source_field is not None:
        # Counted as buckets, which stay on the server: a cardinality would be an estimate.
        aggs[UNREAD] = {"terms": {"field": source_field, "size": _MAX_COUNTED_SOURCES}}
        aggs["sources"] = _number_of_buckets()
    return aggregation(
        with_roots(roots, fields),
        {"roots": {"terms": {"field": fields.root, "size": len(roots)}, "aggs": aggs}},
    )


def count_rows(request: ListRequest, *, up_to: int, is_few: bool) -> Query:
    """Return the search that counts roots exactly; a count above `up_to` means only that there are more.

    If few articles match, only their roots are visited, not all roots of the index.
    """
    terms: Query = {"field": request.fields.root, "size": up_to + 1}
    if is_few:
        terms["execution_hint"] = "map"
    return aggregation(request.articles, {UNREAD: {"terms": terms}, "rows": _number_of_buckets()})


def estimate_rows(request: ListRequest, *, partitions: int | None = None) -> Query:
    """Return the search that estimates how many roots the matching articles have.

    It looks at so many of the 256 partitions of roots; None: at all.
    """
    estimate = {"cardinality": {"field": request.fields.root, "precision_threshold": 40_000}}
    return aggregation(in_partitions(request, partitions), {"rows": estimate})


def count_new(request: ListRequest, since_ms: int) -> Query:
    """Return the search that counts the matching articles that have arrived since."""
    body = count_articles(request)
    body["query"]["bool"]["filter"].append(arrived_since(since_ms, request.fields))
    return body


def count_not_enriched(request: ListRequest) -> Query:
    """Return the search that counts the articles that match but have no root, and so are in no row."""
    without_root = {"exists": {"field": request.fields.root}}
    matching = [request.query] if request.query else []
    return count_articles(request) | {"query": {"bool": {"must": matching, "must_not": without_root}}}


def _number_of_buckets() -> Query:
    return {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}}

"""The counts that rows show, and the totals of the list."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.fields import PARTITIONS
from esdedup.reading import list_bodies as bodies
from esdedup.reading.hits import moment_of
from esdedup.reading.list_request import ListRequest
from esdedup.reading.scope import Tuning

# Times the sources counted for each root, this stays below Elasticsearch's limit on buckets.
_ROOTS_IN_A_SEARCH = 60
# An estimate above `exact_rows` times this factor is returned without counting.
_ESTIMATE_MARGIN = 1.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Totals:
    """Totals over all pages."""

    articles: int
    rows: int
    rows_exact: bool


class ListCounter:
    """Counts the clusters on a page, and the rows on all pages."""

    def __init__(self, request: ListRequest, tuning: Tuning, *, total_articles: int) -> None:
        """Count for one list."""
        self._request = request
        self._tuning = tuning
        self._articles = total_articles

    def bodies_for_clusters(self, roots: Sequence[str], source_field: str | None) -> list[Query]:
        """Return the searches that count the articles of each root; none if there are no roots."""
        return [
            bodies.count_clusters(
                roots[first : first + _ROOTS_IN_A_SEARCH],
                query=self._request.query,
                source_field=source_field,
                fields=self._request.fields,
                since_ms=self._request.arrived_since_ms,
            )
            for first in range(0, len(roots), _ROOTS_IN_A_SEARCH)
        ]

    def counts_of(self, answers: Iterable[Any]) -> dict[str, dict[str, Any]]:
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

    def bodies_for_rows(self) -> list[Query]:
        """Return the search that counts or estimates rows; none without dedup: rows are articles."""
        if not self._request.dedup:
            return []
        if self._articles <= self._tuning.few_articles:
            return [self._count_body(is_few=True)]
        if self._articles <= self._tuning.many_articles:
            return [self._estimate_body()]
        return [self._estimate_body(partitions=self._tuning.estimate_partitions)]

    def totals(self, answer: Any) -> Requests[Totals]:
        """Return the totals by the answer to `bodies_for_rows`; None if that returned none."""
        if answer is None:
            return Totals(articles=self._articles, rows=self._articles, rows_exact=True)
        if self._articles <= self._tuning.few_articles:
            rows, is_exact = int(answer["aggregations"]["rows"]["count"]), True
        else:
            rows, is_exact = yield from self._counted_or_estimated(answer)
        if self._request.only is not None:
            rows, is_exact = yield from self._only(rows)
        return Totals(articles=self._articles, rows=rows, rows_exact=is_exact)

    def _counted_or_estimated(self, answer: Any) -> Requests[tuple[int, bool]]:
        """Return the number of rows, counted if the estimate is low enough; and whether it is exact."""
        tuning = self._tuning
        rows = int(answer["aggregations"]["rows"]["value"])
        if self._articles > tuning.many_articles:
            rows *= PARTITIONS // tuning.estimate_partitions
            if rows < 4 * tuning.exact_rows:
                # Too few rows for an estimate from some partitions, or the articles lack the partition field.
                (answer,) = yield from self._search(self._estimate_body())
                rows = int(answer["aggregations"]["rows"]["value"])
        if rows > _ESTIMATE_MARGIN * tuning.exact_rows:
            return rows, False
        (answer,) = yield from self._search(self._count_body(is_few=False))
        counted = int(answer["aggregations"]["rows"]["count"])
        return (counted, True) if counted <= tuning.exact_rows else (rows, False)

    def _only(self, rows: int) -> Requests[tuple[int, bool]]:
        """Return how many of `rows` rows `only` keeps, and whether that is exact.

        Counted from all roots if they are few enough, else estimated from some partitions.
        """
        request, tuning = self._request, self._tuning
        is_exact = rows <= tuning.exact_rows
        partitions = None if is_exact else max(1, PARTITIONS * tuning.inspected_roots // rows)
        (answer,) = yield from self._search(
            bodies.roots_of(
                request.query, size=tuning.max_roots, fields=request.fields, partitions=partitions
            )
        )
        roots = [bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]]
        if not roots:
            return 0, is_exact
        (answer,) = yield from self._search(bodies.larger_roots(roots, fields=request.fields))
        with_similar = len(answer["aggregations"]["roots"]["buckets"])
        kept = with_similar if request.only == "similar" else len(roots) - with_similar
        return (kept, True) if partitions is None else (kept * PARTITIONS // partitions, False)

    def _count_body(self, *, is_few: bool) -> Query:
        return bodies.count_rows(
            self._request.query,
            up_to=self._tuning.exact_rows,
            is_few=is_few,
            fields=self._request.fields,
        )

    def _estimate_body(self, *, partitions: int | None = None) -> Query:
        return bodies.estimate_rows(self._request.query, fields=self._request.fields, partitions=partitions)

    def _search(self, body: Query) -> Requests[list[Any]]:
        return search(self._request.index, body)

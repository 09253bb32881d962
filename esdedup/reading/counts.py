"""The numbers beside rows, and below the list."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.fields import PARTITIONS
from esdedup.reading import list_bodies as bodies
from esdedup.reading.hits import moment_of
from esdedup.reading.list_request import ListRequest

# With the most sources that each may have, no more buckets than one answer holds.
_ROOTS_AT_ONCE = 60
# Of so few articles the roots are counted one by one.
_FEW_ARTICLES = 10_000
# Of more than so many, so many of the 256 parts of all roots tell, within a few in a hundred.
_MANY_ARTICLES = 300_000
_COUNTED_PARTITIONS = 8
# Roots that are looked at, of very many, to tell how many have similar articles.
_COUNTED_ROOTS = 8_000
# The estimate of rows is off by a few in a hundred at the most.
_ESTIMATE_MARGIN = 1.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Totals:
    """How much there is on all pages."""

    articles: int
    rows: int
    rows_exact: bool


def counts_of(answer: Any) -> dict[str, dict[str, Any]]:
    """Read the counts of each root, as a row has them."""
    return {
        bucket["key"]: {
            "similar": bucket["doc_count"] - 1,
            "matching": bucket["matching"]["doc_count"],
            "sources": bucket["sources"]["count"] if "sources" in bucket else None,
            "first": moment_of(bucket["first"]),
            "last": moment_of(bucket["last"]),
        }
        for bucket in answer["aggregations"]["roots"]["buckets"]
    }


def count_clusters(wanted: ListRequest, roots: Sequence[str], source_field: str | None) -> list[Query]:
    """Return the searches for the counts of roots, none where there are no roots."""
    return [
        bodies.count_clusters(
            roots[first : first + _ROOTS_AT_ONCE],
            query=wanted.query,
            source_field=source_field,
            fields=wanted.fields,
        )
        for first in range(0, len(roots), _ROOTS_AT_ONCE)
    ]


def rows_body(wanted: ListRequest, articles: int) -> list[Query]:
    """Return the search that tells how many rows there are, none where that is told otherwise."""
    if not wanted.dedup:
        return []
    query, fields = wanted.query, wanted.fields
    if articles <= _FEW_ARTICLES:
        return [bodies.count_rows(query, is_few=True, fields=fields)]
    partitions = _COUNTED_PARTITIONS if articles > _MANY_ARTICLES else None
    return [bodies.estimate_rows(query, fields=fields, partitions=partitions)]


def count_all(wanted: ListRequest, articles: int, answer: Any) -> Requests[Totals]:
    """Count the rows.

    Args:
        wanted: The list.
        articles: How many match.
        answer: To `rows_body`, None if there was nothing to ask.
    """
    if answer is None:
        return Totals(articles=articles, rows=articles, rows_exact=True)
    if articles <= _FEW_ARTICLES:
        rows, is_exact = int(answer["aggregations"]["rows"]["count"]), True
    else:
        rows, is_exact = yield from _estimated(wanted, articles, answer)
    if wanted.only is not None:
        rows, is_exact = yield from _count_only(wanted, rows)
    return Totals(articles=articles, rows=rows, rows_exact=is_exact)


def _estimated(wanted: ListRequest, articles: int, answer: Any) -> Requests[tuple[int, bool]]:
    """Return about how many rows there are; exactly, where that is not too many to be counted."""
    query, fields = wanted.query, wanted.fields
    rows = int(answer["aggregations"]["rows"]["value"])
    if articles > _MANY_ARTICLES:
        rows *= PARTITIONS // _COUNTED_PARTITIONS
        if rows < 4 * bodies.EXACT_ROWS:
            # Too few to be told from some partitions; or articles that do not say which part they belong to.
            (answer,) = yield from search(wanted.index, bodies.estimate_rows(query, fields=fields))
            rows = int(answer["aggregations"]["rows"]["value"])
    if rows > _ESTIMATE_MARGIN * bodies.EXACT_ROWS:
        return rows, False
    (answer,) = yield from search(wanted.index, bodies.count_rows(query, is_few=False, fields=fields))
    counted = int(answer["aggregations"]["rows"]["count"])
    return (counted, True) if counted <= bodies.EXACT_ROWS else (rows, False)


def _count_only(wanted: ListRequest, rows: int) -> Requests[tuple[int, bool]]:
    """Count the rows with similar articles, or without: of all roots, or of some parts of them."""
    fields = wanted.fields
    partitions = None if rows <= bodies.EXACT_ROWS else max(1, PARTITIONS * _COUNTED_ROOTS // rows)
    (answer,) = yield from search(
        wanted.index,
        bodies.roots_of(wanted.query, size=bodies.MAX_ROOTS, fields=fields, partitions=partitions),
    )
    roots = [bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]]
    if not roots:
        return 0, partitions is None
    (answer,) = yield from search(wanted.index, bodies.larger_roots(roots, fields=fields))
    larger = len(answer["aggregations"]["roots"]["buckets"])
    counted = larger if wanted.only == "similar" else len(roots) - larger
    return (counted, True) if partitions is None else (counted * PARTITIONS // partitions, False)

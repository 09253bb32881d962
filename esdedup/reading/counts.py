"""The numbers beside rows, and below the list."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from esdedup.fields import iso
from esdedup.queries import Query
from esdedup.reading import list_bodies as bodies
from esdedup.reading.steps import Steps, search
from esdedup.reading.wanted import Wanted

# Roots that are looked at, of very many, to tell how many have similar articles.
_SAMPLED_ROOTS = 8_000
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
            "first": _moment(bucket.get("first")),
            "last": _moment(bucket.get("last")),
        }
        for bucket in answer["aggregations"]["roots"].get("buckets", ())
    }


def count_clusters(wanted: Wanted, roots: Sequence[str], source_field: str | None) -> list[Query]:
    """Return the search for the counts of roots, none where there are no roots."""
    if not roots:
        return []
    body = bodies.count_clusters(roots, query=wanted.query, source_field=source_field, fields=wanted.fields)
    return [body]


def count_all(wanted: Wanted, answer: Any) -> Steps[Totals]:
    """Count articles and rows.

    Args:
        wanted: The list.
        answer: To `list_bodies.totals`.
    """
    articles = answer["hits"]["total"]["value"]
    if not wanted.dedup:
        return Totals(articles=articles, rows=articles, rows_exact=True)
    estimate = answer["aggregations"]["rows"]["value"]
    if wanted.only is not None:
        rows, exact = yield from _count_only(wanted, estimate)
    elif estimate > _ESTIMATE_MARGIN * bodies.EXACT_ROWS:
        rows, exact = estimate, False
    else:
        (counted,) = yield from search(wanted.index, bodies.count_rows(wanted.query, fields=wanted.fields))
        rows = int(counted["aggregations"]["rows"]["count"])
        exact = rows <= bodies.EXACT_ROWS
        rows = rows if exact else estimate
    return Totals(articles=articles, rows=rows, rows_exact=exact)


def _count_only(wanted: Wanted, estimate: int) -> Steps[tuple[int, bool]]:
    """Count the rows with similar articles, or without: of all roots, or of a part of them by their hash."""
    parts = 1 if estimate <= bodies.EXACT_ROWS else -(-estimate // _SAMPLED_ROOTS)
    size = 2 * bodies.EXACT_ROWS
    (answer,) = yield from search(
        wanted.index, bodies.roots_of(wanted.query, size=size, fields=wanted.fields, parts=parts)
    )
    roots = [bucket["key"] for bucket in answer["aggregations"]["roots"]["buckets"]]
    if not roots:
        return 0, True
    (answer,) = yield from search(wanted.index, bodies.count_larger(roots, fields=wanted.fields))
    larger = int(answer["aggregations"]["rows"]["count"])
    counted = larger if wanted.only == "similar" else len(roots) - larger
    return counted * parts, parts == 1


def _moment(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None or value.get("value") is None else iso(int(value["value"]))

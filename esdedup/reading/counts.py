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
# Of so few articles the roots are counted one by one.
_FEW_ARTICLES = 10_000
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


def rows_body(wanted: Wanted, articles: int) -> list[Query]:
    """Return the search that tells how many rows there are, none where that is told otherwise."""
    if not wanted.dedup:
        return []
    if articles <= _FEW_ARTICLES:
        return [bodies.count_rows(wanted.query, is_few=True, fields=wanted.fields)]
    return [bodies.estimate_rows(wanted.query, fields=wanted.fields)]


def count_all(wanted: Wanted, articles: int, answer: Any) -> Steps[Totals]:
    """Count the rows.

    Args:
        wanted: The list.
        articles: How many match.
        answer: To `rows_body`, None if there was nothing to ask.
    """
    if answer is None:
        return Totals(articles=articles, rows=articles, rows_exact=True)
    rows = answer["aggregations"]["rows"]
    # What was counted has a count, what was estimated a value.
    count, estimate = rows.get("count"), rows.get("value", 0)
    if wanted.only is not None:
        rows, exact = yield from _count_only(wanted, estimate if count is None else count)
        return Totals(articles=articles, rows=rows, rows_exact=exact)
    if count is None and estimate <= _ESTIMATE_MARGIN * bodies.EXACT_ROWS:
        body = bodies.count_rows(wanted.query, is_few=False, fields=wanted.fields)
        (answer,) = yield from search(wanted.index, body)
        count = answer["aggregations"]["rows"]["count"]
    if count is not None and count > bodies.EXACT_ROWS:
        # More than are counted.
        (answer,) = yield from search(wanted.index, bodies.estimate_rows(wanted.query, fields=wanted.fields))
        count, estimate = None, answer["aggregations"]["rows"]["value"]
    is_exact = count is not None
    return Totals(articles=articles, rows=int(estimate if count is None else count), rows_exact=is_exact)


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

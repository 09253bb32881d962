"""Rows of a list as files: CSV for spreadsheets, JSON Lines for programs. Pure."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from esdedup.reading.results import Row
from esdedup.times import iso, time_ms
from esdedup.web.formats import joined, source_names

COLUMNS = (
    *("root", "similar", "matching", "sources", "first", "last"),
    *("title", "source", "published_at", "url", "index", "id"),
)
"""Those of each row; the fields of `source_includes` follow."""
# What makes spreadsheets take a cell for a formula, which may send others' cells to a server.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_header(included: Sequence[str]) -> str:
    """Return the first line of a CSV file: a byte order mark, without which Excel does not expect UTF-8."""
    return "\ufeff" + _csv_line([*COLUMNS, *included])


def csv_lines(rows: Iterable[Row], *, included: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a CSV file (RFC 4180) after its header.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, as spreadsheets write it
    themselves.
    """
    for row in rows:
        values = row.model_dump(mode="json", include=set(COLUMNS))
        values |= {
            "published_at": joined(row.published_at, _time),
            "source": row.source and source_names(row.source),
        }
        further = row.included or {}
        yield _csv_line([*(values[name] for name in COLUMNS), *(further.get(name) for name in included)])


def json_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a JSON Lines file: rows as the API answers them, with times as ISO 8601."""
    for row in rows:
        yield row.model_copy(update={"published_at": _time(row.published_at)}).model_dump_json() + "\n"


def _csv_line(values: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = joined(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _time(value: object) -> object:
    """Return an article's time as ISO 8601 if it can be read, else as it is."""
    milliseconds = time_ms(value)
    return value if milliseconds is None else iso(milliseconds)

"""Recognises JSON Lines, a JSON array or CSV, and reads the articles in it one by one.

One article is in memory at a time, and none beyond a limit: a longer one is skipped without being kept.
"""

import dataclasses
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from esdedup.ingest import csv_rows, json_arrays
from esdedup.ingest.json_values import refuse_unstorable
from esdedup.ingest.numbered_lines import NumberedLines
from esdedup.ingest.opening import name_of, opened

from esdedup.elastic.limits import MAX_JSON_DEPTH
from esdedup.errors import ArticleRejected

MAX_ARTICLE_BYTES = 20_000_000
"""Of an article in a file, with all its fields. Longer than a long book; reading one takes up to ten times as
much memory."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAYBE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """An article as it was read."""

    # As ``FILE:LINE``.
    place: str
    # All fields, the id among them.
    fields: dict[str, Any]
    size_bytes: int


def read_records(path: Path, *, on_bytes: Callable[[int], None]) -> Iterator[Record | ArticleRejected]:
    """Yield the articles of a file in order, and a rejection for each that cannot be read.

    If the file fails, or its compressed data is cut off, the rest of it is one rejection.

    Args:
        path: ``-`` is standard input.
        on_bytes: Called with the number of bytes read from disk since the last call.
    """
    name, lines = name_of(path), None
    try:
        with opened(path, on_bytes) as stream:
            lines = NumberedLines(stream)
            yield from _records(lines, name)
    except (OSError, EOFError, zlib.error) as error:
        # What came before is intact. The rest is lost, and must count as failed.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        number = lines.number + 1 if lines else 1
        yield ArticleRejected(f"{name}:{number}", f"cannot be read from here on: {reason}")


def _records(lines: NumberedLines, name: str) -> Iterator[Record | ArticleRejected]:
    line = lines.read_new(max_bytes=MAX_ARTICLE_BYTES).removeprefix(_BYTE_ORDER_MARK)
    while line and not line.strip():
        line = lines.read_new(max_bytes=MAX_ARTICLE_BYTES)
    if header := csv_rows.header(line):
        for number, row, size_bytes in csv_rows.rows(lines, *header, max_bytes=MAX_ARTICLE_BYTES):
            place = f"{name}:{number}"
            if isinstance(row, str):
                yield ArticleRejected(place, row)
            else:
                yield Record(place=place, fields=row, size_bytes=size_bytes)
        return
    if json_arrays.begins_array(line):
        for number, element in json_arrays.elements(lines, line, max_bytes=MAX_ARTICLE_BYTES):
            yield _record(element, f"{name}:{number}")
        line = lines.read_new(max_bytes=MAX_ARTICLE_BYTES)
    while line:
        if line.strip():
            yield _record(line if len(line) <= MAX_ARTICLE_BYTES else None, f"{name}:{lines.number}")
        line = lines.read_new(max_bytes=MAX_ARTICLE_BYTES)


def _record(content: bytes | None, place: str) -> Record | ArticleRejected:
    """Parse an article; None is one that is too long."""
    if content is None:
        return ArticleRejected(place, f"is longer than {MAX_ARTICLE_BYTES:,} bytes")
    try:
        return Record(place=place, fields=_parsed(content, place), size_bytes=len(content))
    except ArticleRejected as rejected:
        return rejected.bare()


def _parsed(content: bytes, place: str) -> dict[str, Any]:
    try:
        article = json.loads(content.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ArticleRejected(place, f"is not UTF-8 (byte {error.start + 1})") from error
    except json.JSONDecodeError as error:
        raise ArticleRejected(place, f"is not JSON: {error.msg} at character {error.pos + 1}") from error
    except _ConstantError as error:
        raise ArticleRejected(place, f"is not JSON: {error} is not a number") from error
    except RecursionError as error:
        raise ArticleRejected(place, "is nested too deeply") from error
    except ValueError as error:
        raise ArticleRejected(place, f"is not valid JSON: {error}") from error
    if not isinstance(article, dict):
        raise ArticleRejected(place, "is JSON, but not an object")
    if _MAYBE_SURROGATE.search(content) or content.count(b"[") + content.count(b"{") > MAX_JSON_DEPTH:
        refuse_unstorable(article, name=place)
    return article


def _refuse_constant(name: str) -> float:
    raise _ConstantError(name)


class _ConstantError(ValueError):
    """JSON does not allow NaN and Infinity."""

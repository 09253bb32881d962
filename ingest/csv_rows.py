"""Reads articles from CSV: the first line names the fields, and each further row is an article."""

import collections
import csv
import re
from collections.abc import Callable, Iterator, Sequence

# The number and content of a line.
_Line = tuple[int, bytes]
TO_UTF8 = "if the file is in GBK, convert it: `iconv -f GB18030 -t UTF-8`"
_DELIMITERS = ",;\t|"
_LONGEST_HEADER_BYTES = 100_000
# A first line is not a header if one of its names is a number, or contains a bracket or a quote.
_NAME = re.compile(r'(?![\d.+-]+$)[^{}\[\]"<>]{0,100}')
# The maximum number of lines in a row: more than any book has, but few enough to hold in memory.
_MOST_LINES = 100_000


def header(line: bytes) -> tuple[list[str], str] | str | None:
    """Return the field names in a first line, and their delimiter; None if it is not a CSV header.

    Columns without a name get the name ""; repeated names are numbered. A header that is too long gives the
    reason why it is rejected.
    """
    is_long = len(line) > _LONGEST_HEADER_BYTES
    try:
        text = line[:_LONGEST_HEADER_BYTES].decode(errors="ignore" if is_long else "strict").strip("\r\n")
        delimiter = max(_DELIMITERS, key=text.count)
        # The last name of a long line may be cut.
        text = text.rpartition(delimiter)[0] if is_long else text
        names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
    except (UnicodeDecodeError, csv.Error):
        return None
    if not all(map(_NAME.fullmatch, names)) or len(set(names) - {""}) < 2:
        return None
    reason = f"is a CSV header longer than {_LONGEST_HEADER_BYTES:,} bytes"
    return reason if is_long else (_distinct(names), delimiter)


def _distinct(names: Sequence[str]) -> list[str]:
    taken, counts, distinct = set(names), collections.Counter[str](), list[str]()
    for name in names:
        counts[name] += 1
        free = name
        while name and counts[name] > 1 and free in taken:
            free = f"{name}_{counts[name]}"
            counts[name] += free in taken
        taken.add(free)
        distinct.append(free)
    return distinct


def rows(
    lines: Iterator[_Line], names: list[str], delimiter: str, *, max_bytes: int, skip: Callable[[], None]
) -> Iterator[tuple[int, dict[str, str] | str, int]]:
    """Yield the rows after the header as articles, or the reason why a row is rejected.

    Each row comes with the number of its first line and its size in bytes. Empty cells and columns without a
    name are left out. After an empty line, `skip` is called to skip any more empty lines.

    If a quote is not closed, or is closed in the middle of a cell, the following lines are re-read as rows if
    they look like rows; otherwise they are rejected together with the damaged row.
    """
    # The csv module has a single field limit for the whole process, so `_Row` limits the size of rows.
    csv.field_size_limit(max_bytes)
    again: collections.deque[_Line] = collections.deque()
    while True:
        row = _Row(again, lines, max_bytes)
        try:
            cells = next(csv.reader(row, delimiter=delimiter, strict=True), None)
        except (ValueError, csv.Error) as error:
            reason = "a quote is not closed" if row.is_at_end else str(error)
            if "expected after" in reason:
                reason = "a quote is closed in the middle of a cell"
            is_next_begun = isinstance(error, csv.Error) and not row.is_at_end and len(row.lines) > 1
            rejected = row.lines[: len(row.lines) - is_next_begun]
        else:
            if cells is None:
                return
            if not (delimiter == "\t" and _are_rows(row.lines[1:], names, delimiter)):
                if cells:
                    yield row.lines[0][0], _article(cells, names, row.lines), row.size_bytes
                elif not again:
                    skip()
                continue
            # Texts rarely contain tabs, so a cell that seems to contain whole rows has a stray quote.
            reason, rejected = "has a quote that is closed in another row", row.lines
        if _are_rows(rejected[1:], names, delimiter):
            rejected = rejected[:1]
        again.extendleft(reversed(row.lines[len(rejected) :]))
        size_bytes = sum(len(line) for _, line in rejected)
        yield rejected[0][0], f"is not CSV{_extent(rejected)}: {reason}", size_bytes


def _are_rows(lines: Sequence[_Line], names: list[str], delimiter: str) -> bool:
    """Return whether most of the non-empty lines have as many cells as there are fields."""
    filled = [line for _, line in lines if line.strip()]
    fitting = sum(line.count(delimiter.encode()) == len(names) - 1 for line in filled)
    return 2 * fitting > len(filled)


def _article(cells: list[str], names: list[str], lines: Sequence[_Line]) -> dict[str, str] | str:
    if any("\udc80" <= letter <= "\udcff" for cell in cells if not cell.isascii() for letter in cell):
        return f"is not UTF-8; {TO_UTF8}"
    if len(cells) != len(names):
        return f"has {len(cells)} cells{_extent(lines)}, but the first line names {len(names)} fields"
    return {name: cell for name, cell in zip(names, cells, strict=True) if name and cell}


def _extent(lines: Sequence[_Line]) -> str:
    return f" (to line {lines[-1][0]})" if len(lines) > 1 else ""


class _Row:
    """The lines of one row, kept until the row is complete; lines to be re-read (`again`) come first."""

    def __init__(self, again: collections.deque[_Line], lines: Iterator[_Line], max_bytes: int) -> None:
        self.lines: list[_Line] = []
        self.size_bytes = 0
        self.is_at_end = False
        self._again = again
        self._following = lines
        self._max_bytes = max_bytes

    def __iter__(self) -> "_Row":
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._following, None)
        if line is None:
            self.is_at_end = True
            raise StopIteration
        self.lines.append(line)
        self.size_bytes += len(line[1])
        if self.size_bytes > self._max_bytes or len(self.lines) > _MOST_LINES:
            limit = f"{self._max_bytes:,} bytes or {_MOST_LINES:,} lines"
            missing = ": is a quote missing?" if len(self.lines) > 1 else ""
            raise ValueError(f"is longer than {limit}{missing}")
        return line[1].decode(errors="surrogateescape")

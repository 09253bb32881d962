"""Reads articles from CSV: the first line names the fields, each further row is an article."""

import csv
import re
from collections.abc import Iterator

from esdedup.ingest.numbered_lines import NumberedLines

_DELIMITERS = ",;\t|"
# No name of a field is as long, contains a bracket or a quote, or is a number.
_LONGEST_HEADER_BYTES = 10_000
_NAME = re.compile(r'(?![\d.+-]*$)[^{}\[\]"<>]{1,100}')


def header(line: bytes) -> tuple[list[str], str] | None:
    """Return the fields that a first line names, and their delimiter; None if it is not a header of CSV."""
    if len(line) > _LONGEST_HEADER_BYTES:
        return None
    try:
        text = line.decode().strip("\r\n")
        delimiter = max(_DELIMITERS, key=text.count)
        names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
    except (UnicodeDecodeError, csv.Error):
        return None
    is_header = len(names) > 1 and all(map(_NAME.fullmatch, names)) and len(set(names)) == len(names)
    return (names, delimiter) if is_header else None


def rows(
    lines: NumberedLines, names: list[str], delimiter: str, *, max_bytes: int
) -> Iterator[tuple[int, dict[str, str] | str, int]]:
    """Yield the rows as articles, or the reason why one is not an article.

    Each comes with the number of its first line and its size in bytes. Empty cells are fields that the
    article lacks. Empty lines are skipped.

    Args:
        lines: Read up to the header.
        names: The fields.
        delimiter: Between two cells.
        max_bytes: A longer row is not an article.
    """
    # One limit for the process; the lines themselves limit a row.
    csv.field_size_limit(max_bytes)
    row = _RowLines(lines, max_bytes)
    reader = csv.reader(row, delimiter=delimiter)
    while True:
        row.begin()
        number = lines.number + 1
        try:
            cells = next(reader, None)
        except (_TooLongError, csv.Error) as error:
            yield number, str(error), row.size_bytes
            continue
        if cells is None:
            return
        if cells:
            yield number, _article(cells, names), row.size_bytes


def _article(cells: list[str], names: list[str]) -> dict[str, str] | str:
    if any("\udc80" <= letter <= "\udcff" for cell in cells if not cell.isascii() for letter in cell):
        return "is not UTF-8"
    if len(cells) != len(names):
        return f"has {len(cells)} cells, but the first line names {len(names)} fields"
    return {name: cell for name, cell in zip(names, cells, strict=True) if cell}


class _TooLongError(Exception):
    """A row is too long."""


class _RowLines:
    """The lines of one row after the other; unlike a generator, it goes on after an error."""

    def __init__(self, lines: NumberedLines, max_bytes: int) -> None:
        self.size_bytes = 0
        self._lines = lines
        self._max_bytes = max_bytes

    def begin(self) -> None:
        """Begin another row."""
        self.size_bytes = 0

    def __iter__(self) -> "_RowLines":
        return self

    def __next__(self) -> str:
        line = self._lines.read(self._max_bytes - self.size_bytes + 1)
        if not line:
            raise StopIteration
        self.size_bytes += len(line)
        if self.size_bytes > self._max_bytes:
            self._lines.skip_rest()
            raise _TooLongError(
                f"is longer than {self._max_bytes:,} bytes, to line {self._lines.number}: is a quote missing?"
            )
        return line.decode(errors="surrogateescape")

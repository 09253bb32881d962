"""Opens files of articles and recognises JSON Lines, a JSON array, CSV or Parquet, also compressed.

Only one article is in memory at a time; articles that exceed a size limit are skipped.
"""

import bz2
import codecs
import contextlib
import dataclasses
import gzip
import io
import itertools
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from esdedup.ingest import csv_rows, parquet
from esdedup.ingest.json_values import parsed_with_surrogates, refuse_unstorable

from esdedup.elastic.limits import MAX_JSON_DEPTH
from esdedup.errors import ArticleRejected, SettingError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = Path("-")
MAX_ARTICLE_BYTES = 20_000_000
"""The maximum size of an article in a file, with all its fields: larger than a long book. Reading such an
article takes up to ten times as much memory."""

_Opener = Callable[..., Any]
OPENERS: dict[str, _Opener] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": zstd.open}
"""The functions that open compressed files, by the end of a file's name."""
# By the beginning of the data; pzstd begins with an empty frame.
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz", b"(\xb5/\xfd": ".zst", b"P*M\x18": ".zst"}
_OTHERS = dict.fromkeys(_PACKED, "compressed twice: unpack it") | {
    parquet.MAGIC: "a Parquet file, but compressed or from a pipe: save it as a file",
    b"PARE": "an encrypted Parquet file: decrypt it",
    b"ARROW1": "an Arrow file: pass its table to `esdedup.cluster` in Python",
    b"PK\3\4": "a ZIP archive or a workbook: unpack it, or save it as CSV",
}
# A file is refused if it unpacks to more than this, and to more than a thousand times its size.
_PLAUSIBLE_BYTES = 1 << 28
_PLAUSIBLE_RATIO = 1_000
_BUFFER_BYTES = 1 << 16
# Long lines are read in pieces of this size, so that they are never in memory as a whole.
_PIECE_BYTES = 1 << 16
# Byte order marks: UTF-32 first, because the mark of UTF-32-LE begins with the mark of UTF-16-LE.
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_RECOGNISED_BYTES = 64
# The beginning of an array of objects; the first object is on the same line or a later one.
_BEGINS_ARRAY = re.compile(rb"\s*\[\s*([{\]]|$)")
# The beginning of an object with an array of articles, as NewsAPI returns it; it may extend over some lines.
_BEGINS_ENVELOPE = re.compile(
    rb'\s*\{(?:\s*"[^"[]*"\s*:\s*(?:"[^"[]*"|[\w.-]+)\s*,){0,5}\s*"articles"\s*:\s*\['
)
_ENVELOPE_LINES = 8
_EMPTY_LINES = re.compile(rb"(?:\r?\n)++")
_OUTSIDE_STRINGS = re.compile(rb'[\[\]{}",]')
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_MAYBE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileRecord:
    """An article as it was read."""

    # ``FILE:LINE``.
    place: str
    # All fields, including the id.
    fields: dict[str, Any]
    size_bytes: int


def input_name(path: Path) -> str:
    """Return the name of an input for messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def total_bytes(paths: Iterable[Path]) -> int | None:
    """Return the total size of the files; None if an input is not a regular file, such as standard input."""
    files = list(paths)
    return sum(path.stat().st_size for path in files) if all(path.is_file() for path in files) else None


def check_readable(paths: Iterable[Path]) -> None:
    """Raise `SettingError` unless all files can be opened."""
    files = list(paths)
    if files.count(STANDARD_INPUT) > 1:
        raise SettingError("standard input can be read only once")
    for path in files:
        if path == STANDARD_INPUT:
            if sys.stdin is None:
                raise SettingError("standard input is closed")
        elif not path.is_fifo():  # closing a pipe would kill the process that writes to it
            try:
                with path.open("rb") as file:
                    begin = file.read(len(parquet.MAGIC))
            except OSError as error:
                raise SettingError(f"cannot read {path}: {error.strerror}") from error
            if begin == parquet.MAGIC:
                parquet.require_pyarrow()


def read_records(
    path: Path, *, on_bytes: Callable[[int], None], columns: Sequence[str] | None = None
) -> Iterator[FileRecord | ArticleRejected]:
    """Yield the articles of a file in order, and a rejection for each unreadable article.

    After a read error, or if compressed data is truncated, the rest of the file becomes a single rejection.
    ``-`` is standard input. `on_bytes` is called with the number of bytes read since the last call. Of a
    Parquet file, only the given columns are read, as `parquet.json_lines` does.
    """
    name, lines = input_name(path), None
    try:
        with _opened(path, on_bytes, columns) as stream:
            begin = stream.peek(_RECOGNISED_BYTES)[:_RECOGNISED_BYTES]
            other = next((_OTHERS[magic] for magic in _OTHERS if begin.startswith(magic)), None)
            if other is None and (encoding := _wide_encoding(begin)) is not None:
                iconv = f"for example with `iconv -f {encoding} -t UTF-8`"
                other = f"{encoding}, like the rest of the file: convert it to UTF-8, {iconv}"
            if other is not None:
                yield ArticleRejected(f"{name}:1", f"is {other}")
                return
            lines = NumberedLines(stream)
            yield from _records(lines, name)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError) as error:
        # Earlier records are intact. The rest of the file is lost and must be reported as failed.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        number = lines.number + 1 if lines else 1
        yield ArticleRejected(f"{name}:{number}", f"cannot be read from here on: {reason}")


@contextlib.contextmanager
def _opened(
    path: Path, on_bytes: Callable[[int], None], columns: Sequence[str] | None
) -> Iterator[io.BufferedReader]:
    # Bypass Python's own buffer: a thread waiting for input would still hold the buffer's lock at exit.
    with (
        getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        if path == STANDARD_INPUT
        else path.open("rb", buffering=0)
    ) as raw:
        packed = _CountingReader(raw.read, on_bytes)
        stream: io.BufferedReader = io.BufferedReader(packed, _BUFFER_BYTES)
        begin = stream.peek(_RECOGNISED_BYTES)
        unpack = next((OPENERS[_PACKED[magic]] for magic in _PACKED if begin.startswith(magic)), None)
        if begin.startswith(parquet.MAGIC) and path.is_file():
            size = path.stat().st_size
            with parquet.json_lines(path, columns, lambda share: packed.advance(int(size * share))) as read:
                yield io.BufferedReader(_CountingReader(read, packed=packed), _BUFFER_BYTES)
        elif unpack:
            yield io.BufferedReader(_CountingReader(unpack(stream).read1, packed=packed), _BUFFER_BYTES)
        else:
            yield stream


class _CountingReader(io.RawIOBase):
    """Reads with a function, and reports the bytes read; refuses far more data than in `packed`."""

    def __init__(
        self,
        read: Callable[[int], bytes],
        on_bytes: Callable[[int], None] = lambda _: None,
        *,
        packed: "_CountingReader | None" = None,
    ) -> None:
        self._count = 0
        self._read = read
        self._on_bytes = on_bytes
        self._packed = packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        self.advance(self._count + len(data))
        if self._packed and self._count > max(_PLAUSIBLE_BYTES, _PLAUSIBLE_RATIO * self._packed._count):
            raise OSError(f"it unpacks to more than {_PLAUSIBLE_RATIO:,} times its size")
        return len(data)

    def advance(self, count: int) -> None:
        """Report that `count` bytes have been read in total."""
        if count > self._count:
            more, self._count = count - self._count, count
            self._on_bytes(more)


class NumberedLines:
    """Reads a stream line by line; `number` is the number of the last line read, from 1."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self.number = 0
        self.is_at_end_of_line = True
        self._stream = stream

    def read(self, max_bytes: int = _PIECE_BYTES) -> bytes:
        """Return the next `max_bytes` of the current line, or the rest of the line; empty at the end."""
        line = self._stream.readline(max_bytes)
        self.number += self.is_at_end_of_line and bool(line)
        self.is_at_end_of_line = line.endswith(b"\n")
        return line

    def skip_empty(self) -> None:
        """Skip empty lines in bulk: a small compressed file may contain hundreds of millions of them."""
        while self.is_at_end_of_line and (found := _EMPTY_LINES.match(self._stream.peek(1))):
            self.number += self._stream.read(found.end()).count(b"\n")

    def whole(self, max_bytes: int) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its number; a line that is too long is cut after `max_bytes` + 1 bytes."""
        while True:
            while not self.is_at_end_of_line and self.read():
                pass
            line = self.read(max_bytes + 1)
            if not line:
                return
            yield self.number, line


def _wide_encoding(begin: bytes) -> str | None:
    """Return the encoding of a file with this beginning if it is UTF-16 or UTF-32, otherwise None."""
    for mark, encoding in _WIDE_MARKS.items():
        if begin.startswith(mark):
            return encoding
    # In UTF-16, ASCII characters have a NUL before or after them; UTF-8 texts contain none.
    before, after = begin[0::2].count(0), begin[1::2].count(0)
    if before + after < 2 or before == after:
        return None
    return "UTF-16BE" if before > after else "UTF-16LE"


def _records(lines: NumberedLines, name: str) -> Iterator[FileRecord | ArticleRejected]:
    numbered = lines.whole(MAX_ARTICLE_BYTES)
    number, line = next(numbered, (1, b""))
    line = line.removeprefix(codecs.BOM_UTF8)
    while line and not line.strip():
        lines.skip_empty()
        number, line = next(numbered, (number, b""))
    header = csv_rows.header(line)
    if isinstance(header, str):
        yield ArticleRejected(f"{name}:{number}", header)
        return
    if header:
        rows = csv_rows.rows(numbered, *header, max_bytes=MAX_ARTICLE_BYTES, skip=lines.skip_empty)
        for number, row, size_bytes in rows:
            place = f"{name}:{number}"
            if isinstance(row, str):
                yield ArticleRejected(place, row)
            else:
                yield FileRecord(place=place, fields=row, size_bytes=size_bytes)
        return
    head = [(number, line)]
    if line.strip() == b"{":
        head += itertools.islice(numbered, _ENVELOPE_LINES)
    joined = b"".join(each for _, each in head)
    is_envelope = _BEGINS_ENVELOPE.match(joined)
    if is_envelope or _BEGINS_ARRAY.match(joined):
        for number, element in _elements(lines, joined):
            # What follows the array of an envelope, such as a number of results, is skipped.
            if not is_envelope or element is None or element[:1] not in b",}":
                yield _record(element, f"{name}:{number}")
        numbered = iter(()) if is_envelope else numbered
    else:
        numbered = itertools.chain(head, numbered)
    for number, line in numbered:
        if line.strip():
            yield _record(line if len(line) <= MAX_ARTICLE_BYTES else None, f"{name}:{number}")
        else:
            lines.skip_empty()


def _record(content: bytes | None, place: str) -> FileRecord | ArticleRejected:
    """Parse an article; None stands for an article that is too long."""
    if content is None:
        return ArticleRejected(place, f"is longer than {MAX_ARTICLE_BYTES:,} bytes")
    try:
        article = parsed_with_surrogates(content)
        if not isinstance(article, dict):
            return ArticleRejected(place, "is JSON, but not an object")
        if _MAYBE_SURROGATE.search(content) or content.count(b"[") + content.count(b"{") > MAX_JSON_DEPTH:
            refuse_unstorable(article, name=place)
    except UnicodeDecodeError as error:
        return ArticleRejected(place, f"is not UTF-8 (byte {error.start + 1}); {csv_rows.TO_UTF8}")
    except json.JSONDecodeError as error:
        return ArticleRejected(place, f"is not JSON: {error.msg} at character {error.pos + 1}")
    except ValueError as error:
        return ArticleRejected(place, f"is not JSON: {error}")
    except ArticleRejected as rejected:
        return rejected.bare()
    return FileRecord(place=place, fields=article, size_bytes=len(content))


def _elements(lines: NumberedLines, line: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield the elements of an array that begins on `line`, each with the number of its first line.

    Unlike a streaming parser such as ijson, this recovers the elements after a damaged one. None stands for
    an element that is too long. Any text after the array on its last line is yielded as another element.
    """
    element = _Element(MAX_ARTICLE_BYTES)
    depth, is_in_string, has_ended = 0, False, False
    # Whether the previous piece ended with a backslash that escapes the next character.
    is_escaped = False
    # Nothing follows the bracket if the line ends there, or was cut there.
    piece = line[line.index(b"[") + 1 :] or lines.read()
    while piece:
        begin, at = 0, int(is_escaped)
        is_escaped = False
        while not has_ended:
            if is_in_string:
                rest = _REST_OF_STRING.match(piece, at)
                if rest is None:
                    unclosed = piece[at:]
                    is_escaped = (len(unclosed) - len(unclosed.rstrip(b"\\"))) % 2 == 1
                    break
                at, is_in_string = rest.end(), False
            found = _OUTSIDE_STRINGS.search(piece, at)
            if found is None:
                break
            at, token = found.end(), found.group()
            if token == b'"':
                is_in_string = True
            elif token in b"[{":
                depth += 1
            elif depth and token in b"]}":
                depth -= 1
            elif not depth:
                element.add(piece[begin : found.start()], lines.number)
                yield from element.take()
                begin = at
                has_ended = token != b","
        element.add(piece[begin:], lines.number)
        if has_ended and lines.is_at_end_of_line:
            break
        lines.skip_empty()
        piece = lines.read()
    yield from element.take()
    if not has_ended:
        raise EOFError("the JSON array has no end")


class _Element:
    """An array element that is read in pieces."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._number = 0
        self._parts: list[bytes] = []
        self._size_bytes = 0

    def add(self, part: bytes, number: int) -> None:
        """Add a piece of the element; `number` is the line number of the piece."""
        if not self._size_bytes:
            part = part.lstrip()
            self._number = number
        if part:
            self._size_bytes += len(part)
            self._parts.append(part)
        if self._size_bytes > self._max_bytes:
            self._parts.clear()

    def take(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the element unless it is blank, or None if it is too long; then start the next element."""
        if self._size_bytes:
            yield self._number, b"".join(self._parts) if self._size_bytes <= self._max_bytes else None
        self._parts.clear()
        self._size_bytes = 0

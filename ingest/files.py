"""Articles read from JSON Lines: plain or gzip, files or standard input."""

import dataclasses
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from esdedup.ingest.json_values import refuse_unstorable

from esdedup.elastic.limits import MAX_ID_BYTES, MAX_JSON_DEPTH
from esdedup.errors import ArticleRejected, SettingError

STANDARD_INPUT = Path("-")
_MAYBE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_GZIP_MAGIC = b"\x1f\x8b"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """An article and where it was read."""

    # As ``FILE:LINE``.
    place: str
    id: str
    # Without its id.
    article: dict[str, Any]

    @property
    def name(self) -> str:
        """The article's name in messages."""
        return f"{self.place} (id {self.id!r})"


def read_lines(
    paths: Iterable[Path],
    *,
    id_field: str = "id",
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Iterator[Line | ArticleRejected]:
    """Yield the articles of JSON Lines files in order, and a rejection for each line that cannot be read.

    A repeated id is rejected, because one of its two articles would overwrite the other. Empty lines are
    skipped. If a file fails, or its compressed data is cut off, the rest of it is one rejection.

    Args:
        paths: ``-`` is standard input. Gzip is recognised by its first bytes.
        id_field: The field with an article's id, a string or a whole number.
        on_bytes: Called with the number of bytes read from disk since the last call.
    """
    # The place of each id, by its hash: long ids take no more memory than short ones.
    places: dict[int, str] = {}
    for path in paths:
        name = "standard input" if path == STANDARD_INPUT else str(path)
        for number, line in _numbered_lines(path, name, on_bytes):
            try:
                if isinstance(line, ArticleRejected):
                    raise line
                read = _read_line(line, f"{name}:{number}", id_field)
            except ArticleRejected as rejected:
                yield rejected
                continue
            key = hash(read.id)
            if key in places:
                yield ArticleRejected(read.place, f"repeats the id {read.id!r} of {places[key]}")
                continue
            places[key] = read.place
            yield read


def total_bytes(paths: Iterable[Path]) -> int | None:
    """Return the total size of the files; None if one has no size, such as standard input."""
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def check_readable(paths: Iterable[Path]) -> None:
    """Check that all files can be opened, before any is read.

    Raises:
        SettingError: One cannot be opened.
    """
    files = list(paths)
    if files.count(STANDARD_INPUT) > 1:
        raise SettingError("standard input can be read only once")
    for path in files:
        if path == STANDARD_INPUT:
            if sys.stdin is None:
                raise SettingError("standard input is closed")
        elif not path.is_fifo():  # opening and closing a pipe would end its writer
            try:
                path.open("rb").close()
            except OSError as error:
                raise SettingError(f"cannot read {path}: {error.strerror}") from error


def _numbered_lines(
    path: Path, name: str, on_bytes: Callable[[int], None]
) -> Iterator[tuple[int, bytes | ArticleRejected]]:
    number = 0
    try:
        with sys.stdin.buffer if path == STANDARD_INPUT else path.open("rb") as raw:
            counted = io.BufferedReader(_Counted(raw, on_bytes), 1 << 16)
            is_gzip = counted.peek(2)[:2] == _GZIP_MAGIC
            lines: Iterable[bytes] = gzip.GzipFile(fileobj=counted) if is_gzip else counted
            for number, line in enumerate(lines, 1):
                content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if content.strip():
                    yield number, content
    except (OSError, EOFError, zlib.error) as error:
        # The lines before are intact. The rest is lost, and must count as failed.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        place = f"{name}:{number + 1}"
        yield number + 1, ArticleRejected(place, f"cannot be read from here on: {reason}")


def _read_line(line: bytes, place: str, id_field: str) -> Line:
    try:
        article = json.loads(line.decode(), parse_constant=_refuse_constant)
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
    article_id = article.pop(id_field, None)
    if isinstance(article_id, int) and not isinstance(article_id, bool):
        article_id = str(article_id)
    if article_id is None:
        raise ArticleRejected(place, f"has no id in the field {id_field!r}")
    if not isinstance(article_id, str) or not article_id:
        raise ArticleRejected(place, f"its id in {id_field!r} must be a non-empty string or a whole number")
    if _MAYBE_SURROGATE.search(line) or line.count(b"[") + line.count(b"{") > MAX_JSON_DEPTH:
        refuse_unstorable(article_id, name=place)
        refuse_unstorable(article, name=place)
    if len(article_id.encode()) > MAX_ID_BYTES:
        raise ArticleRejected(place, f"its id is longer than {MAX_ID_BYTES} bytes")
    return Line(place=place, id=article_id, article=article)


def _refuse_constant(name: str) -> float:
    raise _ConstantError(name)


class _ConstantError(ValueError):
    """JSON does not allow NaN and Infinity."""


class _Counted(io.RawIOBase):
    """Reports how many bytes are read."""

    def __init__(self, raw: BinaryIO | Any, on_bytes: Callable[[int], None]) -> None:
        self._raw = raw
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read1(len(buffer)) if hasattr(self._raw, "read1") else self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._on_bytes(len(data))
        return len(data)

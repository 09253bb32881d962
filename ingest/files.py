"""Articles from JSON Lines: plain or gzip, files or standard input."""

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

from esdedup.elastic.limits import MAX_ID_BYTES
from esdedup.errors import ArticleRejected, SettingError
from esdedup.fields import refuse_surrogates

STANDARD_INPUT = Path("-")
_MAYBE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_GZIP_MAGIC = b"\x1f\x8b"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """An article and where it was found."""

    # As ``FILE:LINE``.
    place: str
    id: str
    # Without its id.
    article: dict[str, Any]

    @property
    def name(self) -> str:
        """Names the article in messages."""
        return f"{self.place} (id {self.id!r})"


def read_lines(
    paths: Iterable[Path],
    *,
    id_field: str = "id",
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Iterator[Line | ArticleRejected]:
    """Yield the articles of JSON Lines files, one after the other; what cannot be read as a rejection.

    An id that comes again is rejected: one of the two would vanish. Empty lines are no articles. A
    file that ends amid its compressed data, or fails, counts as one article that cannot be read.

    Args:
        paths: ``-`` is standard input. Gzip is recognised by its first bytes.
        id_field: Where an article has its id: a string or a whole number.
        on_bytes: Told how many bytes of the file (as it is on disk) were read since the last time.
    """
    # The place of each id, by the hash of the id: long ids cost no more memory than short ones.
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
                yield ArticleRejected(read.place, f"the id {read.id!r} was there before, on {places[key]}")
                continue
            places[key] = read.place
            yield read


def total_bytes(paths: Iterable[Path]) -> int | None:
    """Return how many bytes the files have together; None where one has no size, as standard input."""
    sizes = [path.stat().st_size if path.is_file() else None for path in paths]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def check_readable(paths: Iterable[Path]) -> None:
    """Make sure that all files can be opened, before anything is read.

    Raises:
        SettingError: One cannot.
    """
    listed = list(paths)
    if listed.count(STANDARD_INPUT) > 1:
        raise SettingError("standard input can be read once only")
    for path in listed:
        if path == STANDARD_INPUT:
            if sys.stdin is None:
                raise SettingError("standard input is closed")
        elif not path.is_fifo():  # a pipe that is opened and closed is lost to its writer
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
        # What was read before is good; what follows is lost, and the run must say so.
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
        raise ArticleRejected(place, f"is not JSON: {error} is no number") from error
    except RecursionError as error:
        raise ArticleRejected(place, "is nested too deeply") from error
    except ValueError as error:
        raise ArticleRejected(place, f"is not JSON that can be read: {error}") from error
    if not isinstance(article, dict):
        raise ArticleRejected(place, "is JSON, but not an object")
    article_id = article.pop(id_field, None)
    if isinstance(article_id, int) and not isinstance(article_id, bool):
        article_id = str(article_id)
    if article_id is None:
        raise ArticleRejected(place, f"has no id in the field {id_field!r}")
    if not isinstance(article_id, str) or not article_id:
        raise ArticleRejected(
            place, f"its id in {id_field!r} must be a string that is not empty, or a whole number"
        )
    if _MAYBE_SURROGATE.search(line):
        refuse_surrogates([article_id, article], name=place)
    if len(article_id.encode()) > MAX_ID_BYTES:
        raise ArticleRejected(place, f"its id is longer than {MAX_ID_BYTES} bytes")
    return Line(place=place, id=article_id, article=article)


def _refuse_constant(name: str) -> float:
    raise _ConstantError(name)


class _ConstantError(ValueError):
    """JSON has neither NaN nor Infinity."""


class _Counted(io.RawIOBase):
    """Tells how much was read."""

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

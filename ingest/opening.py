"""Opens what commands read, files or standard input, plain or gzip, and numbers its lines."""

import contextlib
import gzip
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from esdedup.errors import SettingError

STANDARD_INPUT = Path("-")
_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER_BYTES = 1 << 16
# A long line is read in pieces, so that it is never held whole.
_PIECE_BYTES = 1 << 16


def name_of(path: Path) -> str:
    """Return the name of an input in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextlib.contextmanager
def opened(path: Path, on_bytes: Callable[[int], None]) -> Iterator[io.BufferedReader]:
    """Open an input; gzip is recognised by its first bytes.

    Args:
        path: ``-`` is standard input.
        on_bytes: Called with the number of bytes read from disk since the last call.
    """
    with _standard_input() if path == STANDARD_INPUT else path.open("rb", buffering=0) as raw:
        counted = io.BufferedReader(_CountingReader(raw, on_bytes), _BUFFER_BYTES)
        is_gzip = counted.peek(2)[:2] == _GZIP_MAGIC
        yield gzip.GzipFile(fileobj=counted) if is_gzip else counted  # type: ignore[misc]


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


def _standard_input() -> Any:
    # Without Python's own buffer, whose lock a thread that waits for input would hold when the process ends.
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


class _CountingReader(io.RawIOBase):
    """Reports how many bytes are read."""

    def __init__(self, raw: BinaryIO | Any, on_bytes: Callable[[int], None]) -> None:
        self._raw = raw
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._on_bytes(len(data))
        return len(data)


class NumberedLines:
    """Reads a stream line by line.

    Attributes:
        number: Of the line that was read last, from 1.
        is_at_end_of_line: Whether that line was read to its end.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.number = 0
        self.is_at_end_of_line = True
        self._stream = stream

    def read(self, max_bytes: int = _PIECE_BYTES) -> bytes:
        """Return the next line, or so much of it; the next call goes on with it. Empty at the end."""
        line = self._stream.readline(max_bytes)
        self.number += self.is_at_end_of_line and bool(line)
        self.is_at_end_of_line = line.endswith(b"\n")
        return line

    def read_new(self, *, max_bytes: int) -> bytes:
        """Skip what is left of a line; return the next, or `max_bytes + 1` of it if it is longer.

        Empty at the end.
        """
        while not self.is_at_end_of_line and self.read():
            pass
        return self.read(max_bytes + 1)

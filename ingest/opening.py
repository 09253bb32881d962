"""Opens what commands read: files or standard input, plain or gzip."""

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


def name_of(path: Path) -> str:
    """Return the name of an input in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


@contextlib.contextmanager
def opened(path: Path, on_bytes: Callable[[int], None]) -> Iterator[BinaryIO]:
    """Open an input; gzip is recognised by its first bytes.

    Args:
        path: ``-`` is standard input.
        on_bytes: Called with the number of bytes read from disk since the last call.
    """
    with _standard_input() if path == STANDARD_INPUT else path.open("rb", buffering=0) as raw:
        counted = io.BufferedReader(_Counted(raw, on_bytes), _BUFFER_BYTES)
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


class _Counted(io.RawIOBase):
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

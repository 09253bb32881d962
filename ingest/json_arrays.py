"""Cuts a JSON array into its elements, of which one is in memory at a time. Pure but for the stream."""

import re
from collections.abc import Iterator

from esdedup.ingest.numbered_lines import NumberedLines

_BEGINNING = re.compile(rb"\s*\[\s*([{\]]|$)")
_OUTSIDE_STRINGS = re.compile(rb'[\[\]{}",]')
_IN_STRINGS = re.compile(rb'["\\]')


def begins_array(line: bytes) -> bool:
    """Return whether a line begins an array of objects."""
    return _BEGINNING.match(line) is not None


def elements(lines: NumberedLines, line: bytes, *, max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the elements of an array, each with the number of the line on which it begins.

    They are not parsed; only their ends are found. What follows the array on its last line is yielded as
    one more element, unless it is blank.

    Args:
        lines: Read to the end of the line on which the array ends.
        line: What was read last: the beginning of the array.
        max_bytes: For an element with more, None is yielded.

    Raises:
        EOFError: The stream ends before the array does.
    """
    splitter = _Splitter(max_bytes)
    line = line[line.index(b"[") + 1 :]
    while True:
        yield from splitter.split(line, lines.number)
        if splitter.has_ended and lines.is_at_end_of_line:
            break
        line = lines.read()
        if not line:
            break
    yield from splitter.take()
    if not splitter.has_ended:
        raise EOFError("the JSON array has no end")


class _Splitter:
    """Finds the ends of elements in an array that comes in pieces."""

    def __init__(self, max_bytes: int) -> None:
        self.has_ended = False
        self._max_bytes = max_bytes
        # Of the element that is being read.
        self._number = 0
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._depth = 0
        self._is_in_string = False
        # Whether the next piece begins with what follows a backslash.
        self._is_escaped = False

    def split(self, piece: bytes, number: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield the elements that end in a piece of the line with that number."""
        begin, at = 0, int(self._is_escaped)
        self._is_escaped = False
        while not self.has_ended:
            found = (_IN_STRINGS if self._is_in_string else _OUTSIDE_STRINGS).search(piece, at)
            if found is None:
                break
            at, token = found.end(), found.group()
            if token == b"\\":
                self._is_escaped = at == len(piece)
                at += 1
            elif token == b'"':
                self._is_in_string = not self._is_in_string
            elif token in b"[{":
                self._depth += 1
            elif self._depth and token in b"]}":
                self._depth -= 1
            elif not self._depth:
                self._add(piece[begin : found.start()], number)
                yield from self.take()
                begin = at
                self.has_ended = token != b","
        self._add(piece[begin:], number)

    def take(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the element that has been read, unless it is blank, and begin another."""
        if self._size_bytes:
            yield self._number, b"".join(self._parts) if self._size_bytes <= self._max_bytes else None
        self._parts.clear()
        self._size_bytes = 0

    def _add(self, part: bytes, number: int) -> None:
        if not self._size_bytes:
            part = part.lstrip()
            self._number = number
        if part:
            self._size_bytes += len(part)
            self._parts.append(part)
        if self._size_bytes > self._max_bytes:
            self._parts.clear()

"""Lines of a stream with their numbers; a long one is read in pieces, so that it is never held whole."""

from typing import BinaryIO

_PIECE_BYTES = 1 << 16


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

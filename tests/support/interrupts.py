"""Exceptions at any line of some code, as signal handlers raise them."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Interrupted(Exception):
    pass


class Interrupts:
    """Raises once at each line of the calls that are watched."""

    def __init__(self, is_watched: Callable[[FrameType], bool]) -> None:
        self._is_watched = is_watched
        self.raised: set[tuple[str, int]] = set()

    @property
    def functions(self) -> set[str]:
        """The names of the functions in which it has raised."""
        return {name for name, _ in self.raised}

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Raise at the first line that is new."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._at_line if self._is_watched(frame) else None

    def _at_line(self, frame: FrameType, event: str, argument: object) -> Any:
        place = (frame.f_code.co_qualname, frame.f_lineno)
        if event == "line" and place not in self.raised:
            self.raised.add(place)
            raise Interrupted
        return self._at_line

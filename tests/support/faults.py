"""Simulated faults of the core, and exceptions raised at chosen lines."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest

from esdedup import _core

PLACE = "src/tokens.rs:7"


class _Parsed:
    """Parsed texts, some of which fail."""

    def __init__(self, parsed: _core.Parsed, faults: list[str]) -> None:
        self._parsed = parsed
        self.faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parsed, name)

    def __len__(self) -> int:
        return len(self._parsed)


def fail_at(monkeypatch: pytest.MonkeyPatch, word: str, *, when_parsed: bool) -> None:
    """Make the core fail on texts that contain a word, while it parses them or computes their signatures."""
    parse, fingerprint = _core.parse, _core.fingerprint

    def without(texts: Sequence[str]) -> tuple[list[str], list[str]]:
        faults = [PLACE if word in text else "" for text in texts]
        return ["" if fault else text for text, fault in zip(texts, faults, strict=True)], faults

    def failing(texts: Sequence[str], **options: Any) -> Any:
        left, faults = without(texts)
        return _Parsed(parse(left, **options), faults)

    def failing_later(texts: Sequence[str], *given: Any) -> tuple[list[bytes], list[str]]:
        left, faults = without(texts)
        columns, _ = fingerprint(left if when_parsed else texts, *given)
        for at in (0, 1, 2, 3, 5) if any(faults) else ():
            column = np.frombuffer(columns[at], np.uint8).reshape(len(texts), -1).copy()
            column[[fault != "" for fault in faults]] = 0
            columns[at] = column.tobytes()
        return columns, faults

    if when_parsed:
        monkeypatch.setattr(_core, "parse", failing)
    monkeypatch.setattr(_core, "fingerprint", failing_later)


class Interrupted(Exception):
    pass


class Interrupts:
    """Raises `Interrupted` once at each line of the watched functions."""

    def __init__(self, is_watched: Callable[[FrameType], bool]) -> None:
        self._is_watched = is_watched
        self.raised: set[tuple[str, int]] = set()

    @property
    def functions(self) -> set[str]:
        """The names of the functions in which `Interrupted` was raised."""
        return {name for name, _ in self.raised}

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Raise `Interrupted` at the first line at which it has not been raised yet."""
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

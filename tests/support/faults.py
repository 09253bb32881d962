"""Simulated faults of the core, and exceptions raised at chosen lines."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest

from esdedup import _core
from esdedup.fingerprint.signature import SIGNATURE

PLACE = "src/tokens.rs:7"


class _Parsed:
    """Parsed texts, some of which fail."""

    def __init__(self, parsed: _core.Parsed, faults: list[str], signature_faults: list[str]) -> None:
        self._parsed = parsed
        self.faults = faults
        self._signature_faults = signature_faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parsed, name)

    def __len__(self) -> int:
        return len(self._parsed)

    def signatures(self, *given: Any) -> tuple[bytes, bytes, bytes, list[str]]:
        *columns, _ = self._parsed.signatures(*given)
        for at, dtype in enumerate((SIGNATURE, np.dtype(bool), np.dtype(np.int64))):
            column = np.frombuffer(columns[at], dtype).copy()
            column[[fault != "" for fault in self._signature_faults]] = np.zeros((), dtype)
            columns[at] = column.tobytes()
        return (*columns, self._signature_faults)  # type: ignore[return-value]


def fail_at(monkeypatch: pytest.MonkeyPatch, word: str, *, when_parsed: bool) -> None:
    """Make the core fail on texts that contain a word, while it parses them or computes their signatures."""
    parse = _core.parse

    def failing(texts: Sequence[str], **options: Any) -> Any:
        faults = [PLACE if word in text else "" for text in texts]
        if not when_parsed:
            return _Parsed(parse(texts, **options), [""] * len(texts), faults)
        left = ["" if fault else text for text, fault in zip(texts, faults, strict=True)]
        return _Parsed(parse(left, **options), faults, faults)

    monkeypatch.setattr(_core, "parse", failing)


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

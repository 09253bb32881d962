"""A fault of the core at some texts, as Python sees it: there is none to be had from the core itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from esdedup import _core
from esdedup.fingerprint.signature import SIGNATURE

PLACE = "src/tokens.rs:7"


class _Parsed:
    """Texts as the core has parsed them, with faults."""

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
    """Let the core fail at texts with a word, when they are parsed or when they get their signatures."""
    parse = _core.parse

    def failing(texts: Sequence[str], **options: Any) -> Any:
        faults = [PLACE if word in text else "" for text in texts]
        if not when_parsed:
            return _Parsed(parse(texts, **options), [""] * len(texts), faults)
        left = ["" if fault else text for text, fault in zip(texts, faults, strict=True)]
        return _Parsed(parse(left, **options), faults, faults)

    monkeypatch.setattr(_core, "parse", failing)

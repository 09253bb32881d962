"""What `filter_path` leaves of an answer, as Elasticsearch understands it. Pure.

An answer that is put together here cannot be filtered there. Patterns are separated by commas; their parts,
by dots, match keys of nested objects. `*` stands for any characters of a key, `**` for any keys one below
the other, and a `-` before a pattern leaves out what it matches. Arrays count as what is in them.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

_NOTHING = object()
# A dot with a backslash before it belongs to a key.
_SEPARATOR = re.compile(r"(?<!\\)\.")
_ANY_KEYS = "**"


class _Pattern:
    """A tree of patterns: what may follow below a key that has matched."""

    def __init__(self, key: str = "") -> None:
        self.is_deep = key == _ANY_KEYS
        # Whether everything below the key is meant.
        self.is_whole = False
        self.below: dict[str, _Pattern] = {}
        self._glob = re.compile(".*".join(map(re.escape, key.split("*"))), re.DOTALL)

    def add(self, parts: Sequence[str]) -> None:
        child = self.below.setdefault(parts[0], _Pattern(parts[0]))
        if len(parts) == 1:
            child.is_whole = True
        else:
            child.add(parts[1:])

    def matches(self, key: str) -> bool:
        return self._glob.fullmatch(key) is not None


def filtered(answer: dict[str, Any], filter_path: str) -> dict[str, Any]:
    """Return what is left of an answer; it is not changed.

    Args:
        answer: As parsed from JSON.
        filter_path: The parameter, decoded; may be empty.
    """
    patterns = [stripped for each in filter_path.split(",") if (stripped := each.strip())]
    excluded = _tree(each[1:] for each in patterns if each.startswith("-"))
    included = _tree(each for each in patterns if not each.startswith("-"))
    left: Any = answer
    if included is not None:
        left = _including(left, [included])
    if excluded is not None and left is not _NOTHING:
        left = _excluding(left, [excluded])
    return {} if left is _NOTHING else left


def _tree(patterns: Iterable[str]) -> _Pattern | None:
    root = _Pattern()
    for each in patterns:
        if each:
            root.add([part.replace("\\.", ".") for part in _SEPARATOR.split(each)])
    return root if root.below else None


def _matching(key: str, patterns: list[_Pattern]) -> list[_Pattern] | None:
    """Return the patterns for what is below a key; None if all of it is meant."""
    below = []
    for pattern in patterns:
        for child in pattern.below.values():
            if child.matches(key):
                if child.is_whole:
                    return None
                below.append(child)
        if pattern.is_deep:
            below.append(pattern)
    return below


def _including(value: Any, patterns: list[_Pattern]) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, each in value.items():
            below = _matching(key, patterns)
            left = each if below is None else _including(each, below) if below else _NOTHING
            if left is not _NOTHING:
                kept[key] = left
        return kept or _NOTHING
    if isinstance(value, list):
        return [left for each in value if (left := _including(each, patterns)) is not _NOTHING] or _NOTHING
    return _NOTHING


def _excluding(value: Any, patterns: list[_Pattern]) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, each in value.items():
            below = _matching(key, patterns)
            left = _NOTHING if below is None else _excluding(each, below) if below else each
            if left is not _NOTHING:
                kept[key] = left
        # What was empty before stays.
        return kept if kept or not value else _NOTHING
    if isinstance(value, list):
        left_over = [left for each in value if (left := _excluding(each, patterns)) is not _NOTHING]
        return left_over if left_over or not value else _NOTHING
    return value

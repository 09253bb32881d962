"""Changes JSON objects in their bytes, so that all else stays: numbers, escapes, keys that come twice. Pure.

All bytes are valid JSON in UTF-8, as somebody has parsed them before.
"""

import json
import re
from typing import NamedTuple

_STRING_OR_MARK = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_QUOTE = ord('"')


class Member(NamedTuple):
    """A key of an object and its value."""

    key: str
    # Where the key begins, where the value begins (or a space before it), and where it ends.
    start: int
    value: int
    end: int


def members(source: bytes) -> list[Member]:
    """Return the members of an object, not of those in it."""
    found: list[Member] = []
    depth = 0
    key, start, value = "", -1, -1
    for match in _STRING_OR_MARK.finditer(source):
        mark = source[match.start()]
        if mark == _QUOTE:
            if depth == 1 and start < 0:
                key, start = _string(match[0]), match.start()
        elif mark in b"{[":
            depth += 1
        elif mark == ord(":"):
            if depth == 1:
                value = match.end()
        else:
            if depth == 1 and start >= 0:
                found.append(Member(key, start, value, match.start()))
                start = -1
            if mark in b"]}":
                depth -= 1
                if depth == 0:
                    break
    return found


def with_member(source: bytes, key: str, value: bytes) -> bytes:
    """Return an object with one more member, at its end.

    Args:
        source: The object, which has no such key.
        key: The key.
        value: The value, as JSON.
    """
    end = source.rindex(b"}")
    is_empty = source[:end].rstrip(b" \t\r\n").endswith(b"{")
    return b"".join(
        (source[:end], b"" if is_empty else b",", json.dumps(key).encode(), b":", value, source[end:])
    )


def without_object(source: bytes, key: str) -> bytes:
    """Return an object without a key, and without dotted keys for what is in it."""
    kept = [
        source[each.start : each.end]
        for each in members(source)
        if each.key != key and not each.key.startswith(f"{key}.")
    ]
    return b"{%b}" % b",".join(kept)


def _string(source: bytes) -> str:
    # Not orjson: the string may be half a character.
    return str(json.loads(source.decode(errors="surrogatepass")))

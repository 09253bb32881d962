"""What reads requests takes time in proportion to them, whatever they are: none holds up the process."""

import contextlib
import time
from collections.abc import Callable

import pytest

from esdedup.serving.framing import framing_fault
from esdedup.sidecar.bulk_request import (
    RequestRefused,
    article_path,
    members,
    parts_of,
    read_bulk,
    values_of,
    with_member,
    without_object,
)

SMALL, TIMES = 20_000, 8
# Beside one that is eight times as large, a quadratic one takes 64 times as long.
MOST_TIMES = 24


def bulk(body: bytes) -> None:
    with contextlib.suppress(RequestRefused):
        read_bulk(body, index="news")


def spaced(count: int) -> bytes:
    return b'{"index":' + b" " * count + b"{}}\n{}\n"


CASES: dict[str, tuple[Callable[[bytes], object], Callable[[int], bytes]]] = {
    "blank lines": (bulk, lambda count: b"\n" * count),
    "spaces in an action line": (bulk, spaced),
    "spaces without an end": (bulk, lambda count: b" " * count),
    "quotes in an action line": (bulk, lambda count: b'{"index":{"_id":"' + b'\\"' * count),
    "backslashes": (bulk, lambda count: b'{"index":{"_id":"' + b"\\" * count + b'"}}\n{}\n'),
    "deep action lines": (bulk, lambda count: b"[" * count + b"\n"),
    "many items": (bulk, lambda count: b'{"index":{}}\n{"text":"a"}\n' * (count // 10)),
    "members": (members, lambda count: b"{" + b",".join([b'"a":1'] * count) + b"}"),
    "deep members": (members, lambda count: b'{"a":' * count + b"1" + b"}" * count),
    "a string without an end": (members, lambda count: b'{"a":"' + b'\\"' * count),
    "a member more": (lambda body: with_member(body, "d", b"1"), lambda count: b"{" + b" " * count + b"}"),
    "an object less": (
        lambda body: without_object(body, "d"),
        lambda count: b"{" + b",".join([b'"d.e":1', b'"a":1'] * count) + b"}",
    ),
    "a head of one header": (framing_fault, lambda count: b"GET / HTTP/1.1\r\nA: " + b" " * count),
    "a head of many": (framing_fault, lambda count: b"GET / HTTP/1.1\r\n" + b"content-length\t \r\n" * count),
    "blank lines before a head": (framing_fault, lambda count: b"\r\n" * count),
    "slashes": (lambda path: article_path("POST", path), lambda count: b"/" * count),
    "escapes": (lambda path: article_path("POST", path), lambda count: b"/a/_doc/" + b"%41" * count),
    "parts": (parts_of, lambda count: b"/a" * count),
    "parameters": (values_of, lambda count: b"a=b&" * count),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_larger_takes_longer_in_proportion(name: str) -> None:
    parse, of = CASES[name]

    def taken_s(count: int) -> float:
        given, least_s = of(count), float("inf")
        for _ in range(3):
            began_s = time.process_time()
            parse(given)
            least_s = min(least_s, time.process_time() - began_s)
        return least_s

    # What takes less than a millisecond cannot be measured.
    assert taken_s(TIMES * SMALL) <= max(MOST_TIMES * taken_s(SMALL), 0.02)

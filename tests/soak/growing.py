"""Checks that processor time grows no faster than the body of a request."""

import itertools
from collections.abc import Callable, Mapping

from tests.soak.odd_bytes import request
from tests.soak.odd_requests import Asked
from tests.soak.watched import Watched

# The ratio of the largest body to the smallest.
_SIZES = (2_000, 8_000, 32_000)
# Processor time that does not depend on the body.
_NOISE_S = 0.1
# What is quadratic would take 16 times as much, and the next 256 times.
_MOST_FACTOR = 10.0


def _keys(n: int) -> bytes:
    return b",".join(b'"a%d":{}' % each for each in range(n))


_REPEATED: Mapping[str, Callable[[int], bytes]] = {
    "an id of quotes": lambda n: b'{"index":{"_id":"%b"}}\n{"text":"a b"}\n' % (b'\\"' * n),
    "an id without an end": lambda n: b'{"index":{"_id":"%b\n{}\n' % (b'"' * n),
    "an action with many keys": lambda n: b'{"index":{%b}}\n{}\n' % _keys(n),
    "an action of brackets": lambda n: b'{"index":{"a":%b}}\n{}\n' % (b"[" * n),
    "an action of spaces": lambda n: b'{"index":%b{}}\n{"text":"a b"}\n' % (b" " * n),
    "a number of many digits": lambda n: b'{"index":{"_id":%b}}\n{"text":"a b"}\n' % (b"1" * n),
    "lines without anything": lambda n: b"\n" * n,
    "many deletions": lambda n: b'{"delete":{"_id":"z"}}\n' * n,
    "many documents without a text": lambda n: b'{"index":{}}\n{}\n' * n,
    "many names of indices": lambda n: b"".join(
        b'{"index":{"_index":"none-%d"}}\n{"text":"a b"}\n' % each for each in range(n)
    ),
    "a document of quotes": lambda n: b'{"index":{}}\n{"dedup":1,"title":"%b\n' % (b'"' * n),
    "a document with many keys": lambda n: b'{"index":{}}\n{"dedup":1,%b,"text":1}\n' % _keys(n),
    "many forged objects": lambda n: b'{"index":{}}\n{%b"text":1}\n' % (b'"dedup.root":"x",' * n),
    "lone surrogates": lambda n: b'{"index":{}}\n{"dedup":1,"title":"%b"}\n' % (b"\\ud800" * n),
    "backslashes": lambda n: b'{"index":{}}\n{"dedup":1,"title":"%b"}\n' % (b"\\\\" * n),
    "many lists": lambda n: b'{"index":{}}\n{"dedup":1,"a":[%b]}\n' % (b"[]," * n),
    "spaces in a date": lambda n: b'{"index":{}}\n{"text":"a b c","published_at":"%b"}\n' % (b" " * n),
    "an address of dots": lambda n: b'{"index":{}}\n{"text":"a b c","url":"http://%b"}\n' % (b"a." * n),
    "an address of brackets": lambda n: b'{"index":{}}\n{"text":"a b c","url":"%b"}\n' % (b"//[" * n),
    "a text of lines": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % (b"a\\n" * n),
    "a text of dots": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % (b"." * n),
    "a text of marks": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % (b"<" * n),
    "a text of comments": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % (b"<!--" * n),
    "a text of references": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % (b"&#" * n),
    "a text of accents": lambda n: b'{"index":{}}\n{"text":"a%b"}\n' % ("\u0301".encode() * n),
    "a text of long letters": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % ("\ufdfa".encode() * n),
    "a text of one word": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % (b"ab" * n),
    "a text of Chinese": lambda n: b'{"index":{}}\n{"text":"%b"}\n' % ("\u4e2d\u3002".encode() * n),
    "a text in lists": lambda n: b'{"index":{}}\n{"text":[%b"a"]}\n' % (b'"a",' * n),
    "an update of quotes": lambda n: b'{"update":{"_id":"1"}}\n{"doc":{"dedup":1,"a":"%b"}}\n' % (b'\\"' * n),
    "an update with many keys": lambda n: b'{"update":{"_id":"1"}}\n{"doc":{"dedup":1},%b}\n' % _keys(n),
}


def check_growth(watched: Watched, index: str) -> None:
    """Note what takes more than its part of the time when it grows."""
    for what, made in _REPEATED.items():
        took_s = []
        for size in _SIZES:
            asked = Asked(
                "growing", request("POST", f"/{index}/_bulk", made(size), content_type="application/json")
            )
            before_s = watched.cpu_s()
            answer = watched.ask(asked)
            took_s.append(watched.cpu_s() - before_s)
        for less_s, more_s in itertools.pairwise(took_s):
            if more_s > _MOST_FACTOR * (less_s + _NOISE_S):
                watched.fault(f"{what}: {', '.join(f'{each:.2f}' for each in took_s)} s", asked, answer)

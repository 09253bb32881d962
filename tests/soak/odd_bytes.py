"""Requests whose heads and bodies contradict each other, and bodies that are expensive to read."""

import json

FORGED = "f" * 32
"""The root in forged requests, in the format of a real root."""


def request(method: str, target: str | bytes, body: bytes = b"", /, **headers: str) -> bytes:
    """Return the bytes of a request that closes its connection."""
    raw = target if isinstance(target, bytes) else target.encode("utf-8", "surrogatepass")
    named = {"host": "localhost", "connection": "close", "content-length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return b"%b %b HTTP/1.1\r\n%b\r\n%b" % (method.encode(), raw, lines.encode("latin-1"), body)


def large_bodies(n: int) -> list[bytes]:
    """Return bodies of bulk requests that each repeat a pattern about `n` times."""
    return [
        b'{"index":{"_id":"%b"}}\n{"text":"a"}\n' % (b"\\\\" * n),
        b'{"index":{%b}}\n{}\n' % b",".join(b'"a%d":1' % each for each in range(n)),
        b'{"index":{"a":%b}}\n{}\n' % (b"[" * n), b'{"index":{"a":%b%b}}\n{}\n' % (b"[" * min(n, 900),
        b"]" * min(n, 900)), b'{"delete":{"_id":"z"}}\n' * (n // 4), b"\n" * n * 9, b" " * n * 9,
        b'{"index":{"_id":"' + b'"' * n, b'{"index":{}}\n' + b'"' * n + b"\n",
        b'{"index":{}}\n{"text":"%b","dedup":1}\n' % (b'\\"' * n),
        b'{"index":{}}\n{"dedup":1,%b,"text":"x"}\n' % b",".join(b'"a%d":{}' % each
        for each in range(n // 8)), b'{"index":{}}\n{"dedup":1,"text":"%b"}\n' % (b"." * n * 5),
        b'{"index":{}}\n{"text":"%b"}\n' % (b"<p>" * n), b'{"index":{}}\n{"text":"%b"}\n' % (b"a\\n" * n),
        b'{"index":{}}\n{"text":"%b"}\n' % (b"&amp;" * n),
        b'{"index":{}}\n{"text":"%b"}\n' % ("\u0301".encode() * n),
        b'{"index":{}}\n{"text":"%b"}\n' % ("\ufdfa".encode() * n),
        b'{"index":{}}\n{"text":"%b"}\n' % ("\u4e00\u3002".encode() * n),
        b'{"index":{"_index":"%b"}}\n{"text":"a"}\n' % (b"a" * n),
        b'{"index":{}}\n{"text":%b}\n' % json.dumps(["a b"] * n).encode(),
        b'{"update":{"_id":"1"}}\n{"doc":%b}\n' % (b'{"a":' * min(n, 900) + b"1" + b"}" * min(n, 900)),
        b'{"index":{}}\n{"url":"http://%b","text":"a b c"}\n' % (b"a." * n),
        b'{"index":{}}\n{"published_at":"%b","text":"a b c"}\n' % (b"1" * n),
        b'{"index":{}}\n{"published_at":%b,"text":"a b c"}\n' % (b"1" * n),
        b'{"index":{"_id":%b}}\n{"text":"a"}\n' % (b"1" * n),
        b'{"index":{}}\n{"text":"%b","dedup":1}\n' % (b"\\ud800" * n),
        b'{"index":{}}\n{"source":"%b","text":"a"}\n' % (b"a" * n),
        b'{"index":{}}\n{"text":"%b"}\n' % (b"<script>" * (n // 2)),
    ]  # fmt: skip


def misframed(path: str, body: bytes, hidden: bytes, *, cut: int) -> list[bytes]:
    """Return requests whose end is ambiguous.

    Args:
        path: The path of every request.
        body: The body of every request.
        hidden: A request that some of the requests smuggle in.
        cut: The position at which the body is split or truncated.
    """
    start, type_ = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode(),
        b"Content-Type: application/x-ndjson\r\n",
    )
    size = len(body)
    length, chunked = b"Content-Length: %d\r\n" % size, b"Transfer-Encoding: chunked\r\n"
    in_chunks = b"0\r\n\r\n"
    if 0 < cut < size:
        in_chunks = b"%x\r\n%b\r\n%x;a=b\r\n%b\r\n0\r\n\r\n" % (cut, body[:cut], size - cut, body[cut:])
    return [
        start + type_ + length + b"\r\n" + body[:cut], start + type_ + chunked + b"\r\n" + in_chunks, start
        + type_ + chunked + b"\r\n" + in_chunks[:cut], start + type_ + chunked + length + b"\r\n"
        + in_chunks, start + type_ + length + length + b"\r\n" + body, start + type_
        + b"Content-Length: -1\r\n\r\n" + body, start + type_ + b"Content-Length: %d\r\n\r\n" % 10**30
        + body, start + type_ + b"Content-Length: 0x10\r\n\r\n" + body, start + type_
        + b"Content-Length: +5\r\n\r\n" + body, start + type_ + b"Content-Length: \r\n\r\n" + body, start
        + type_ + b"Content-Length : %d\r\n\r\n" % size + body, start + b" folded: x\r\n" + length + b"\r\n"
        + body, (start + type_ + length).replace(b"\r\n", b"\n") + b"\n" + body, start.replace(b"1.1",
        b"1.0") + chunked + b"\r\n" + in_chunks, start.replace(b"POST", b"post") + length + b"\r\n" + body,
        start.replace(b"1.1", b"2.0") + length + b"\r\n" + body, start + type_
        + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + in_chunks, start + type_
        + b"Transfer-Encoding: xchunked\r\n\r\n" + in_chunks, start + type_ + chunked + b"\r\n-1\r\n", start
        + type_ + chunked + b"\r\n" + b"f" * 40 + b"\r\n", start + type_ + chunked + b"\r\n5 \r\nab", start
        + type_ + chunked + b"\r\n0\r\nTrailer: x\r\n\r\n", start + type_ + b"Expect: 100-continue\r\n"
        + length + b"\r\n" + body, start + type_ + b"Expect: 100-continue\r\n" + length + b"\r\n", start
        + b"A: " + b"a" * 70_000 + b"\r\n\r\n", start + b"".join(b"A%d: b\r\n" % each
        for each in range(3_000)) + b"\r\n", start[: cut % len(start)], b"\r\n" * 5_000, b"\0" * 100,
        b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", start + type_ + length + b"\r\n"
        + body + hidden, start + type_ + length + b"\r\n" + body + start + type_ + length + b"\r\n" + body,
        start + type_ + b"Content-Length: 3\r\n\r\n" + hidden, start + type_
        + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + in_chunks + hidden, start
        + b"Transfer-Encoding:\x0bchunked\r\n\r\n" + in_chunks + hidden, start + type_ + chunked + b"\r\n"
        + b"1\r\n{\r\n" * 3_000 + b"0\r\n\r\n", start
        + b"Content-Encoding: gzip\r\nContent-Encoding: identity\r\n" + type_ + length + b"\r\n" + body,
        start.replace(b"Host: localhost\r\n", b"") + length + b"\r\n" + body, start + b"Host: evil\r\n"
        + length + b"\r\n" + body, start.replace(b"localhost", b"evil.example") + length + b"\r\n" + body,
        start + type_ + b"Content-Length: %d, %d\r\n\r\n" % (size, size) + body, start + b"X: \0\r\n"
        + length + b"\r\n" + body, b"GET /x\r\n\r\n", b"POST  /x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]  # fmt: skip

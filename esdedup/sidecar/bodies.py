"""Bodies of requests: their types, and how they are read whole, unpacked and parsed."""

import asyncio
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from esdedup.ingest.json_values import parsed_with_surrogates
from esdedup.serving.limits import HOLD
from esdedup.sidecar.bulk_request import UTF8_MARK, RequestRefused

JSON, NDJSON = "application/json", "application/x-ndjson"
_READ = frozenset(
    (JSON, NDJSON, "application/vnd.elasticsearch+json", "application/vnd.elasticsearch+x-ndjson")
)
# Sent by older Logstash with JSON; current Elasticsearch refuses it.
_UNSAID = frozenset(("", "text/plain"))


def json_content_type(content_type: str | None, *, usual: str) -> str:
    """Return the header `Content-Type` for Elasticsearch, by default `usual`; raises for other than JSON."""
    given = content_type or ""
    media_type = given.partition(";")[0].strip().lower()
    if media_type in _UNSAID:
        return usual
    if media_type in _READ:
        return given
    raise RequestRefused(
        415,
        "media_type_header_exception",
        f"Content-Type header [{given}] is not supported where articles are enriched: send JSON",
    )


# Larger bodies take more than some milliseconds, too long for the event loop.
_MOST_BYTES_AT_ONCE = 100_000
_Result = TypeVar("_Result")


async def in_thread_if_large(size_bytes: int, work: Callable[[], _Result]) -> _Result:
    """Process a body, in a thread if it is large, to keep the event loop free."""
    return work() if size_bytes <= _MOST_BYTES_AT_ONCE else await asyncio.to_thread(work)


_GZIP = 16 + zlib.MAX_WBITS
_MAGIC = b"\x1f\x8b"
# The first piece that is unpacked; each further one is twice as large: little is copied after small ones.
_FIRST_PIECE_BYTES = 4_096
# Members of one gzip body: each takes some microseconds, however small it is.
_MOST_MEMBERS = 10_000


async def unpacked(body: bytes, *, scope: Scope, most_bytes: int) -> bytes:
    """Return the body of a request, unpacked by its `Content-Encoding`; raises `RequestRefused`."""
    # Servers disagree on several encodings.
    encoding = ", ".join(Headers(scope=scope).getlist("content-encoding")).strip().lower()
    if encoding in {"", "identity"}:
        return body
    if encoding not in _UNPACKED_BY:
        raise RequestRefused(
            415, "media_type_header_exception", f"Content-Encoding [{encoding}] is not supported"
        )
    whole = await in_thread_if_large(len(body), lambda: _UNPACKED_BY[encoding](body, most_bytes))
    if HOLD in scope:
        scope[HOLD](len(whole))
    return whole


def _inflated(packed: bytes, most_bytes: int) -> bytes:
    for window_bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        stream = zlib.decompressobj(window_bits)
        try:
            whole = stream.decompress(packed, most_bytes + 1)
        except zlib.error:
            continue
        if len(whole) > most_bytes:
            raise _too_large(most_bytes)
        if stream.eof:
            return whole
    raise _damaged("the body is not deflate, or breaks off")


def _unzipped(packed: bytes, most_bytes: int) -> bytes:
    """Decompress gzip, perhaps in several parts; ignore other data after them."""
    parts: list[bytes] = []
    at, left_bytes = 0, most_bytes
    for _ in range(_MOST_MEMBERS):
        member, size = zlib.decompressobj(_GZIP), _FIRST_PIECE_BYTES
        while not member.eof:
            piece = packed[at : at + size]
            if not piece:
                raise _damaged("the body is gzip that breaks off")
            try:
                # At least one byte: 0 means no limit.
                part = member.decompress(piece, left_bytes + 1)
            except zlib.error as error:
                raise _damaged(f"the body is not gzip: {error}") from error
            at, size, left_bytes = at + len(piece), 2 * size, left_bytes - len(part)
            if left_bytes < 0:
                raise _too_large(most_bytes)
            parts.append(part)
        at -= len(member.unused_data)
        if not packed.startswith(_MAGIC, at):
            return b"".join(parts)
    raise _damaged(f"the body is gzip of more than {_MOST_MEMBERS:,} parts: pack it at once")


_UNPACKED_BY = {"deflate": _inflated, "gzip": _unzipped, "x-gzip": _unzipped}


def _too_large(most_bytes: int) -> RequestRefused:
    return RequestRefused(
        413,
        "content_too_long_exception",
        f"the request is larger than {most_bytes:,} bytes unpacked: send fewer articles at once",
    )


def _damaged(reason: str) -> RequestRefused:
    return RequestRefused(400, "parse_exception", reason)


# Content types of pipelines that send JSON to our own endpoints: NiFi sends this one.
_UNSAID_TO_US = _UNSAID | {"application/octet-stream"}


async def read_object(request: Request, *, most_bytes: int) -> tuple[bytes, dict[str, Any]]:
    """Return the body of a request, unpacked, and the JSON object in it; errors as for `unpacked`."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _UNSAID_TO_US and not media_type.endswith(("/json", "+json")):
        raise RequestRefused(
            415,
            "unsupported_media_type",
            f"the body is said to be {media_type:.100}: send JSON, with Content-Type: application/json",
        )
    body = await unpacked(await request.body(), scope=request.scope, most_bytes=most_bytes)
    body = body.removeprefix(UTF8_MARK)
    parsed = await in_thread_if_large(len(body), lambda: _parsed(body))
    if not isinstance(parsed, dict):
        raise RequestRefused(400, "invalid_request", "the body is not a JSON object")
    return body, parsed


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # A lone surrogate in it must reject one article, not all.
        try:
            return parsed_with_surrogates(body)
        except ValueError:
            raise RequestRefused(400, "invalid_request", f"the body is not JSON: {error}") from error

"""Reads bodies of requests: checks their content types, decompresses and parses them."""

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
# Types that say nothing about the body. Older versions of Logstash send JSON as text/plain.
_UNSPECIFIC = frozenset(("", "text/plain"))


def json_content_type(content_type: str | None, *, usual: str) -> str:
    """Return the `Content-Type` to send to Elasticsearch; raises `RequestRefused` unless it is JSON."""
    given = content_type or ""
    media_type = given.partition(";")[0].strip().lower()
    if media_type in _UNSPECIFIC:
        return usual
    if media_type in _READ:
        return given
    raise RequestRefused(
        415,
        "media_type_header_exception",
        f"Content-Type header [{given}] is not supported for requests that write articles: send JSON",
    )


# Larger bodies would block the event loop for more than a few milliseconds.
_MOST_BYTES_AT_ONCE = 100_000
_Result = TypeVar("_Result")


async def in_thread_if_large(size_bytes: int, work: Callable[[], _Result]) -> _Result:
    """Return `work()`; call it in a thread if the body is large, to keep the event loop free."""
    return work() if size_bytes <= _MOST_BYTES_AT_ONCE else await asyncio.to_thread(work)


_GZIP = 16 + zlib.MAX_WBITS
_MAGIC = b"\x1f\x8b"
# Size of a member's first piece; further pieces double in size. Small members leave little unused data.
_FIRST_PIECE_BYTES = 4_096
# The maximum number of members in a gzip body: even an empty member takes a few microseconds.
_MOST_MEMBERS = 10_000


async def unpacked(body: bytes, *, scope: Scope, most_bytes: int) -> bytes:
    """Return the body of a request, decompressed by its `Content-Encoding`; raises `RequestRefused`."""
    # Refuse a body with more than one encoding, since servers interpret such bodies differently.
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
    raise _damaged("the body is not deflate data, or is truncated")


def _unzipped(packed: bytes, most_bytes: int) -> bytes:
    """Decompress gzip data of one or more members; ignore any data after them."""
    parts: list[bytes] = []
    at, left_bytes = 0, most_bytes
    for _ in range(_MOST_MEMBERS):
        member, size = zlib.decompressobj(_GZIP), _FIRST_PIECE_BYTES
        while not member.eof:
            piece = packed[at : at + size]
            if not piece:
                raise _damaged("the body is truncated gzip")
            try:
                # Pass at least 1, since zlib takes 0 to mean no limit.
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
    raise _damaged(f"the body is gzip with more than {_MOST_MEMBERS:,} members: compress it as a whole")


_UNPACKED_BY = {"deflate": _inflated, "gzip": _unzipped, "x-gzip": _unzipped}


def _too_large(most_bytes: int) -> RequestRefused:
    return RequestRefused(
        413,
        "content_too_long_exception",
        f"the request is larger than {most_bytes:,} bytes when decompressed: send fewer articles per request",
    )


def _damaged(reason: str) -> RequestRefused:
    return RequestRefused(400, "parse_exception", reason)


# Unspecific types that clients send with JSON to our own endpoints; NiFi sends application/octet-stream.
_UNSPECIFIC_TO_US = _UNSPECIFIC | {"application/octet-stream"}


async def read_object(request: Request, *, most_bytes: int) -> tuple[bytes, dict[str, Any]]:
    """Return the decompressed body of a request, and the JSON object in it; raises `RequestRefused`."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _UNSPECIFIC_TO_US and not media_type.endswith(("/json", "+json")):
        raise RequestRefused(
            415,
            "unsupported_media_type",
            f"the Content-Type is {media_type:.100}: send JSON, with Content-Type: application/json",
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
        # A lone surrogate must cause the rejection of a single article, not of the whole body.
        try:
            return parsed_with_surrogates(body)
        except ValueError:
            raise RequestRefused(400, "invalid_request", f"the body is not JSON: {error}") from error

"""Bodies of requests that are read whole, and unpacked."""

import zlib
from collections.abc import Callable

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from esdedup.sidecar.refusals import RequestRefused

_GZIP = 16 + zlib.MAX_WBITS
_MAGIC = b"\x1f\x8b"
# So much is unpacked at first, and then twice as much each time: what follows a small part is not copied.
_FIRST_PIECE_BYTES = 4_096
# Each takes some microseconds, however little is in it.
_MOST_MEMBERS = 10_000


async def read_whole(receive: Receive) -> bytes:
    """Return a body as it came.

    Raises:
        ClientDisconnect: The caller has left.
    """
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def unpacked(body: bytes, *, encoding: str | None, most_bytes: int, hold: Callable[[int], None]) -> bytes:
    """Return a body without its gzip, if it has any.

    Args:
        body: As it came.
        encoding: The header `Content-Encoding`.
        most_bytes: Of the unpacked body.
        hold: Called with its size.

    Raises:
        RequestRefused: It is packed otherwise, damaged, or too large.
    """
    encoding = (encoding or "identity").strip().lower()
    if encoding == "identity":
        return body
    if encoding not in {"gzip", "x-gzip"}:
        raise RequestRefused(
            415, "media_type_header_exception", f"Content-Encoding [{encoding}] is not supported"
        )
    whole = _unzipped(body, most_bytes=most_bytes)
    hold(len(whole))
    return whole


def _unzipped(packed: bytes, *, most_bytes: int) -> bytes:
    """Return what is in gzip, of which several may follow each other, as where files were joined.

    What follows the last one and is no gzip counts for nothing, as it does to Elasticsearch.

    Raises:
        RequestRefused: It is damaged, or too large.
    """
    parts: list[bytes] = []
    at, left_bytes = 0, most_bytes
    for _ in range(_MOST_MEMBERS):
        member, size = zlib.decompressobj(_GZIP), _FIRST_PIECE_BYTES
        while not member.eof:
            piece = packed[at : at + size]
            if not piece:
                raise _damaged("the body is gzip that breaks off")
            try:
                # At least one byte, for 0 is no limit.
                part = member.decompress(piece, left_bytes + 1)
            except zlib.error as error:
                raise _damaged(f"the body is not gzip: {error}") from error
            at, size, left_bytes = at + len(piece), 2 * size, left_bytes - len(part)
            if left_bytes < 0:
                raise RequestRefused(
                    413,
                    "content_too_long_exception",
                    f"the request is larger than {most_bytes:,} bytes unpacked: send fewer articles at once",
                )
            parts.append(part)
        at -= len(member.unused_data)
        if not packed.startswith(_MAGIC, at):
            return b"".join(parts)
    raise _damaged(f"the body is gzip of more than {_MOST_MEMBERS:,} parts: pack it at once")


def _damaged(reason: str) -> RequestRefused:
    return RequestRefused(400, "parse_exception", reason)

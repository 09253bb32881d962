"""Bodies of requests that are read whole, and unpacked."""

import zlib
from collections.abc import Callable

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from esdedup.sidecar.refusals import RequestRefused

_GZIP = 16 + zlib.MAX_WBITS


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
    unpacking = zlib.decompressobj(_GZIP)
    try:
        whole = unpacking.decompress(body, most_bytes)
    except zlib.error as error:
        raise RequestRefused(400, "parse_exception", f"the body is not gzip: {error}") from error
    if unpacking.unconsumed_tail:
        raise RequestRefused(
            413,
            "content_too_long_exception",
            f"the request is larger than {most_bytes:,} bytes unpacked: send fewer articles at once",
        )
    if not unpacking.eof:
        raise RequestRefused(400, "parse_exception", "the body is gzip that breaks off")
    hold(len(whole))
    return whole

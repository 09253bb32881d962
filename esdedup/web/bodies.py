"""The body of a request, read whole, and bounded in size and structure before anybody parses it."""

from fastapi import Request
from starlette.exceptions import HTTPException

from esdedup.web.api import MAX_TEXT

MAX_BODY_BYTES = 6 * MAX_TEXT + 1_000
"""The longest text however it is written: a character takes at most 6 bytes as JSON (``\\u4e2d``). Only those
beyond the common ones take 12; they must be written as UTF-8."""
_MAX_STRUCTURE_BYTES = 1_000
"""What a body may have outside its strings. Parsing takes up to 50 times as long for brackets and numbers as
for the characters of a string, and nothing else runs meanwhile."""
FORM_TYPE = "application/x-www-form-urlencoded"
# The field's name and the text are two.
_MAX_STRINGS = 16


async def read_body(request: Request) -> bytes:
    """Read the body of a request whole.

    Raises:
        HTTPException: It is too large, no UTF-8, or has too many values.
        ClientDisconnect: The visitor has gone.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            # The rest is not read.
            raise HTTPException(
                413, f"the request is larger than {MAX_BODY_BYTES:,} bytes", {"Connection": "close"}
            )
    # UTF-16 and UTF-32, which JSON parsers also take, have zeros; there a quote is no single byte.
    if b"\0" in body:
        raise HTTPException(400, "the request is not UTF-8")
    is_form = request.headers.get("content-type", "").startswith(FORM_TYPE)
    # Of a form nothing is parsed as JSON.
    if not is_form and _structure_bytes(body) > _MAX_STRUCTURE_BYTES:
        raise HTTPException(400, 'the request has too many values; send {"text": "…"}')
    return bytes(body)


def _structure_bytes(body: bytearray) -> int:
    """Return how many bytes of JSON stand outside its strings, and in strings beyond the first 16."""
    without_escapes = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return sum(map(len, without_escapes.split(b'"', 2 * _MAX_STRINGS)[::2]))

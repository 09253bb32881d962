"""Requests and answers that are taken whole; bodies are bounded before anybody parses them."""

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.serving.problems import Answer, Problem
from esdedup.serving.refusals import Refused
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


class Whole:
    """Passes a request on when its body has arrived whole, and its answer when that is known whole."""

    def __init__(self, app: ASGIApp, *, answer: Answer) -> None:
        self._app = app
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the body is refused."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(Request(scope, receive))
        except ClientDisconnect:
            return
        except Refused as refused:
            response = self._answer(scope, Problem.of_error(refused))
            # The rest is not read.
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])
        messages: list[Message] = []

        async def receive_again() -> Message:
            return next(parts, None) or await receive()

        async def collect(message: Message) -> None:
            messages.append(message)

        await self._app(scope, receive_again, collect)
        for message in messages:
            await send(message)


async def read_body(request: Request) -> bytes:
    """Read the body of a request whole.

    Raises:
        Refused: It is too large, no UTF-8, or has too many values.
        ClientDisconnect: The visitor has gone.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            too_large = f"the request is larger than {MAX_BODY_BYTES:,} bytes"
            raise Refused(too_large, status=413, kind="body_too_large")
    # UTF-16 and UTF-32, which JSON parsers also take, have zeros; there a quote is no single byte.
    if b"\0" in body:
        raise Refused("the request is not UTF-8")
    is_form = request.headers.get("content-type", "").startswith(FORM_TYPE)
    # Of a form nothing is parsed as JSON.
    if not is_form and _structure_bytes(body) > _MAX_STRUCTURE_BYTES:
        raise Refused('the request has too many values; send {"text": "…"}')
    return bytes(body)


def _structure_bytes(body: bytearray) -> int:
    """Return how many bytes of JSON stand outside its strings, and in strings beyond the first 16."""
    without_escapes = body.replace(rb"\\", b"").replace(rb"\"", b"")
    return sum(map(len, without_escapes.split(b'"', 2 * _MAX_STRINGS)[::2]))

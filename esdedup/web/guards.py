"""Middleware: headers, limits, complete bodies, entity tags, and responses to HEAD.

Any response may change: a cluster grows with new articles, an article may be indexed again, and the forest
learns boilerplate. So caches must validate every response (``no-cache``); an entity tag saves the transfer,
but not the search. Responses are ``private``, so that a proxy that authenticates visitors does not send one
visitor's response to another visitor.
"""

import hashlib

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.errors import Refused
from esdedup.fingerprint import MAX_TEXT_LENGTH
from esdedup.messages import translatable
from esdedup.serving.limits import Limits
from esdedup.serving.problems import Problem
from esdedup.web.errors import error_answer

_POLICY = "Content-Security-Policy"
HEADERS = {
    # Only thumbnails are loaded from other servers. The only script is `pages.js`.
    _POLICY: "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
MAX_REQUESTS = 32
"""The maximum number of concurrent requests; more would not make Elasticsearch faster."""
MAX_ANSWER_S = 60.0
"""The time limit for a response, equal to the limit for one request to Elasticsearch."""
_BUSY = Problem.of(503, "requests", translatable("too many requests at once; try again"))
MAX_BODY_BYTES = 6 * MAX_TEXT_LENGTH + 1_000
"""Enough for the longest text if a character takes up to 6 bytes in JSON (``\\u4e2d``). Rare characters take
12 bytes if they are escaped, so a long text of rare characters must be sent as UTF-8."""
UNKEPT = "no-store"
"""The `Cache-Control` of errors, responses to POST, and exports."""
_TAG_BYTES = 12


def with_headers(app: ASGIApp, *, has_thumbnails: bool = False) -> ASGIApp:
    """Add the headers to every response, including responses to requests that match no route."""
    headers = dict(HEADERS)
    if has_thumbnails:
        headers[_POLICY] = HEADERS[_POLICY].replace("img-src 'self'", "img-src 'self' https:")

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                answered.update(headers)
                answered.setdefault("Cache-Control", UNKEPT)
            await send(message)

        await app(scope, receive, send_with_headers)

    return answering


def answering_head(app: ASGIApp) -> ASGIApp:
    """Answer HEAD requests, which link checkers send, like GET but without the body."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await app({**scope, "method": "GET"}, receive, send_head)
        else:
            await app(scope, receive, send)

    return answering


def limited(app: ASGIApp) -> ASGIApp:
    """Limit requests in size, number and time.

    A request counts from the arrival of its last byte until its response is ready, so slow visitors do not
    block other visitors. The limit on connections also limits the memory for arriving requests.
    """
    limits = Limits(app, answer=error_answer, max_requests=MAX_REQUESTS, busy=_BUSY, timeout_s=MAX_ANSWER_S)

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        try:
            body = await read_body(Request(scope, receive))
        except ClientDisconnect:
            return
        except Refused as refused:
            response = error_answer(scope, Problem.of_error(refused))
            # The rest of the body is not read.
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive_again() -> Message:
            return next(parts, None) or await receive()

        for message in await _collected(limits, scope, receive_again):
            await send(message)

    return answering


def tagged(app: ASGIApp) -> ASGIApp:
    """Add entity tags to responses to GET; return 304 for a matching ETag."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await app(scope, receive, send)
            return
        start, *bodies = await _collected(app, scope, receive)
        headers = MutableHeaders(scope=start)
        if start["status"] in {200, 304}:
            headers.setdefault("Cache-Control", "private, no-cache")
        # Static files have their own tags.
        if start["status"] == 200 and "etag" not in headers and headers["cache-control"] != UNKEPT:
            _tag(start, bodies, Headers(scope=scope).get("if-none-match", ""))
        for message in (start, *bodies):
            await send(message)

    return answering


def _tag(start: Message, bodies: list[Message], known: str) -> None:
    """Add the tag to the start of a response; drop the body if the client has it already."""
    digest = hashlib.blake2b(
        b"".join(each.get("body", b"") for each in bodies), digest_size=_TAG_BYTES
    ).hexdigest()
    headers = MutableHeaders(scope=start)
    # The tag is weak, because the same response may be sent compressed.
    headers["ETag"] = f'W/"{digest}"'
    if known.strip() == "*" or f'"{digest}"' in (
        each.strip().removeprefix("W/") for each in known.split(",")
    ):
        start["status"] = 304
        bodies[:] = [{"type": "http.response.body", "body": b""}]
        for name in ("content-length", "content-type"):
            del headers[name]


async def _collected(app: ASGIApp, scope: Scope, receive: Receive) -> list[Message]:
    messages: list[Message] = []

    async def collect(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, collect)
    return messages


async def read_body(request: Request) -> bytes:
    """Read the whole body of a request; raise `Refused` if it is too large, or not UTF-8."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            too_large = f"the request is larger than {MAX_BODY_BYTES:,} bytes"
            raise Refused(too_large, status=413, kind="body_too_large")
    # UTF-16 and UTF-32, which JSON parsers also accept, contain zero bytes.
    if b"\0" in body:
        raise Refused("the request is not UTF-8")
    return bytes(body)

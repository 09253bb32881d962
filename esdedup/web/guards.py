"""What stands before the routes: headers, limits, bodies taken whole, entity tags, and answers to HEAD.

A root never changes, but every answer has something that does: a cluster grows with each new article, an
article may be indexed again, and the forest learns what is boilerplate in it. So no answer is fresh for any
time (``no-cache``), and an entity tag spares its way over the network, though not the search. Answers are for
one reader (``private``): a proxy with a log-in before the pages must not give them to another.
"""

import hashlib

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.messages import translatable
from esdedup.serving.limits import Limits
from esdedup.serving.problems import Answer, Problem
from esdedup.serving.refusals import Refused
from esdedup.web.api import MAX_TEXT
from esdedup.web.errors import error_answer

HEADERS = {
    # Nothing is loaded from other servers, and no script runs but the one of the pages, which asks them only.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
MAX_REQUESTS = 32
"""Requests in progress: Elasticsearch answers no faster with more at once."""
MAX_ANSWER_S = 60.0
"""As long as one request to Elasticsearch may take; reading looks at a limited number of articles."""
_BUSY = Problem.of(503, "requests", translatable("too many requests at once; try again"))
MAX_BODY_BYTES = 6 * MAX_TEXT + 1_000
"""The longest text however it is written: a character takes at most 6 bytes as JSON (``\\u4e2d``). Only those
beyond the common ones take 12; they must be written as UTF-8."""
_MAX_STRUCTURE_BYTES = 1_000
"""What a body may have outside its strings. Parsing takes up to 50 times as long for brackets and numbers as
for the characters of a string, and nothing else runs meanwhile."""
FORM_TYPE = "application/x-www-form-urlencoded"
# The field's name and the text are two.
_MAX_STRINGS = 16
UNKEPT = "no-store"
"""Of errors, of answers to POST, and of exports."""
REVALIDATED = "private, no-cache"
_TAG_BYTES = 12


class SafeHeaders:
    """Adds headers to every answer, also to those that no route gives."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", UNKEPT)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def limited(app: ASGIApp) -> ASGIApp:
    """Return an application whose requests are limited in size, number and time.

    A request is in progress from when it has arrived whole until its answer is known whole: visitors who send
    or read slowly take no place from others. What they hold is bounded by the number of connections, since
    neither a request nor an answer is large.
    """
    limits = Limits(app, answer=error_answer, max_requests=MAX_REQUESTS, busy=_BUSY, timeout_s=MAX_ANSWER_S)
    return Whole(limits, answer=error_answer)


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
    """Read the body of a request whole, unless it is too large, no UTF-8, or has too many values."""
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


class EntityTags:
    """Gives the answers to GET an entity tag, and answers 304 to who has what would be sent."""

    def __init__(self, app: ASGIApp) -> None:
        """Tag the answers of an application that sends each body in one part."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with or without a body."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match", "")
        start: Message | None = None

        async def send_tagged(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if message["status"] in {200, 304}:
                    headers.setdefault("Cache-Control", REVALIDATED)
                    if message["status"] == 200 and _is_taggable(headers):
                        # Held back until its body is known.
                        start = message
                        return
            elif start is not None:
                held, start = start, None
                if not message.get("more_body"):
                    _tag(held, message, known)
                await send(held)
            await send(message)

        await self._app(scope, receive, send_tagged)


def _is_taggable(headers: MutableHeaders) -> bool:
    # Static files have a tag of their own.
    return "etag" not in headers and headers["cache-control"] != UNKEPT


def _tag(start: Message, body: Message, known: str) -> None:
    """Add a tag to the start of an answer; drop the body if the reader has it."""
    # Weak, as the same answer may be sent compressed.
    tag = f'W/"{hashlib.blake2b(body["body"], digest_size=_TAG_BYTES).hexdigest()}"'
    headers = MutableHeaders(scope=start)
    headers["ETag"] = tag
    if known.strip() == "*" or tag.removeprefix("W/") in (
        each.strip().removeprefix("W/") for each in known.split(",")
    ):
        start["status"] = 304
        body["body"] = b""
        for name in ("content-length", "content-type"):
            del headers[name]


class Heads:
    """Answers HEAD, with which links are checked and servers watched, as GET but without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; every method but HEAD is left alone."""

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, send_head)
        else:
            await self._app(scope, receive, send)

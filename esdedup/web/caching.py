"""How long answers may be kept: all are asked for again, and those that are the same are not sent again.

A root never changes, but every answer has something that does: a cluster grows with each new article, an
article may be indexed again, and the forest learns what is boilerplate in it. So no answer is fresh for any
time (``no-cache``), and an entity tag spares its way over the network, though not the search. Answers are for
one reader (``private``): a proxy with a log-in before the pages must not give them to another.

HEAD is answered here too: what GET would be, but for the body.
"""

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNKEPT = "no-store"
"""Of errors, of answers to POST, and of exports."""
REVALIDATED = "private, no-cache"
_TAG_BYTES = 12


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

"""What stands before the routes: the headers of every answer, hosts, foreign pages, and limits."""

import asyncio
from collections.abc import Collection

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.messages import translatable
from esdedup.origins import is_foreign, is_known_host
from esdedup.serving.problems import Problem
from esdedup.web.bodies import read_body
from esdedup.web.caching import UNKEPT
from esdedup.web.cors import is_allowed
from esdedup.web.errors import error_answer, refused_answer

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


class Visitors:
    """Refuses requests for another host, and requests that a page of another site has made.

    A link on another site may lead to a page. Anything else that such a site can make a browser send would
    only cost time, since the browser keeps the answer from it.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str] = ()) -> None:
        """Guard an application.

        Args:
            app: The application.
            hosts: The names under which it is reached, besides localhost.
            origins: The other sites whose pages may read answers, see `cors`.
        """
        self._app = app
        self._origins = origins
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the request is refused."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            refusal: Problem | None = None
            if not is_known_host(host, self._hosts):
                refusal = Problem.of(
                    421,
                    "host",
                    f"this server is not known as {host!r}; `serve --allow-host NAME` adds a name",
                )
            elif not is_allowed(headers.get("origin"), self._origins) and is_foreign(
                scope["method"],
                host=host,
                origin=headers.get("origin"),
                site=headers.get("sec-fetch-site"),
                goal=headers.get("sec-fetch-dest"),
            ):
                refusal = Problem.of(
                    403, "foreign_page", translatable("pages of other sites may only link to this one")
                )
            if refusal is not None:
                await error_answer(Request(scope), refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Limits:
    """Bounds the size of a request, the time that its answer takes, and the number of requests at once.

    A request is in progress from when it has arrived whole until its answer is known whole: visitors who send
    or read slowly take no place from others. What they hold is bounded by the number of connections, since
    neither a request nor an answer is large.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer within the limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            body = await read_body(request)
        except ClientDisconnect:
            return
        except HTTPException as refused:
            await refused_answer(request, refused)(scope, receive, send)
            return
        if self._in_progress >= MAX_REQUESTS:
            busy = Problem.of(503, "requests", translatable("too many requests at once; try again"))
            await error_answer(request, busy)(scope, receive, send)
            return
        self._in_progress += 1
        try:
            answer = await self._answer(scope, _receive_again(body, receive))
        finally:
            self._in_progress -= 1
        for message in answer:
            await send(message)

    async def _answer(self, scope: Scope, receive: Receive) -> list[Message]:
        answer: list[Message] = []

        async def collect(message: Message) -> None:
            answer.append(message)

        try:
            async with asyncio.timeout(MAX_ANSWER_S) as clock:
                await self._app(scope, receive, collect)
        except TimeoutError:
            if not clock.expired():
                raise
            answer.clear()
            late = Problem.of(504, "late", f"no answer within {MAX_ANSWER_S:.0f} seconds")
            await error_answer(Request(scope), late)(scope, receive, collect)
        return answer


def _receive_again(body: bytes, receive: Receive) -> Receive:
    """Return a channel on which a body that has been read arrives once more, and then what else comes."""
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(parts, None) or await receive()

    return receive_again

"""Who may send requests, and how much may be in progress: bodies by size, requests by number and time."""

import asyncio
import math
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.origins import is_allowed, is_foreign, is_known_host
from esdedup.serving.problems import Answer, Problem
from esdedup.serving.refusals import Refused

HOLD = "esdedup.hold"
"""Where the scope of a request has what is called with the size of its unpacked body."""


class Limits:
    """Limits what is in progress."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        answer: Answer,
        max_requests: int,
        busy: Problem,
        timeout_s: float,
        max_body_bytes: float = math.inf,
        max_bodies_bytes: float = math.inf,
        is_free: Callable[[Scope], bool] = lambda _: False,
        measured: Callable[[Scope], AbstractContextManager[None]] = lambda _: nullcontext(),
        on_held: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Limit an application.

        Args:
            app: The application.
            answer: Gives a refusal its shape.
            max_requests: In progress.
            busy: What further ones are told.
            timeout_s: Of one request.
            max_body_bytes: Of one request.
            max_bodies_bytes: Of all requests in progress.
            is_free: Whether a request is answered however much is going on.
            measured: Is around each other request.
            on_held: Called with how many bytes more, or less, the bodies in progress have.
        """
        self._app = app
        self._answer = answer
        self._max_requests = max_requests
        self._busy = busy
        self._timeout_s = timeout_s
        self._max_body_bytes = max_body_bytes
        self._max_bodies_bytes = max_bodies_bytes
        self._is_free = is_free
        self._measured = measured
        self._on_held = on_held
        self._in_progress = 0
        self._bodies_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer within the limits."""
        if scope["type"] != "http" or self._is_free(scope):
            await self._app(scope, receive, send)
            return
        with self._measured(scope):
            await self._limited(_Exchange(scope, receive, send, self._answer))

    async def _limited(self, exchange: "_Exchange") -> None:
        if self._in_progress >= self._max_requests:
            await exchange.refuse(self._busy)
            return
        try:
            self._admit(exchange.announced_bytes, of=exchange)
        except Refused as refused:
            await exchange.refuse(Problem.of_error(refused))
            return
        self._in_progress += 1
        scope = {**exchange.scope, HOLD: lambda size: self._hold_unpacked(exchange, size)}
        try:
            async with asyncio.timeout(self._timeout_s) as clock:
                await self._app(scope, lambda: self._receive(exchange), exchange.send)
        except TimeoutError:
            if not clock.expired():
                raise
            late = f"no answer within {self._timeout_s:,.0f} seconds"
            await exchange.refuse(Problem.of(504, "late", late))
        except asyncio.CancelledError:
            # The server does that when the time is over that requests have after SIGTERM.
            ended = "this process has ended before it could answer: send this again"
            await exchange.refuse(Problem.of(503, "shutting_down", ended))
        except Exception:
            # What was told that its caller has left may fail.
            if not exchange.is_refused:
                raise
        finally:
            self._in_progress -= 1
            self._hold(exchange, -exchange.held_bytes)

    async def _receive(self, exchange: "_Exchange") -> Message:
        """Return the next part of a body; if it is too much, refuse it, and say that the caller has left."""
        message = await exchange.receive()
        size = len(message.get("body", b""))
        try:
            self._admit(exchange.held_bytes + size, of=exchange)
        except Refused as refused:
            await exchange.refuse(Problem.of_error(refused))
            return {"type": "http.disconnect"}
        self._hold(exchange, size)
        return message

    def _admit(self, size: int, *, of: "_Exchange") -> None:
        """Raise `Refused` if the body of a request may not have so many bytes."""
        if size > self._max_body_bytes:
            raise Refused(
                f"the request is larger than {self._max_body_bytes:,} bytes: send fewer articles at once",
                status=413,
                kind="body_too_large",
            )
        self._admit_more(size - of.held_bytes)

    def _admit_more(self, size: int) -> None:
        """Raise `Refused` if the bodies of all requests together may not have so many bytes more."""
        if self._bodies_bytes + size > self._max_bodies_bytes:
            raise Refused(
                f"the requests in progress have {self._bodies_bytes:,} bytes, and together no more than "
                f"{self._max_bodies_bytes:,} may: try again",
                status=429,
                kind="bodies",
            )

    def _hold_unpacked(self, exchange: "_Exchange", size: int) -> None:
        """Count the bytes of an unpacked body among those of all requests in progress, if they may be."""
        self._admit_more(size)
        self._hold(exchange, size)

    def _hold(self, exchange: "_Exchange", size: int) -> None:
        exchange.held_bytes += size
        self._bodies_bytes += size
        self._on_held(size)


class _Exchange:
    """A request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self._answer = answer
        # Of the body, as far as it has been read.
        self.held_bytes = 0
        self._has_begun = self.is_refused = False

    @property
    def announced_bytes(self) -> int:
        """The size of the body as the caller announced it, else 0."""
        length = Headers(scope=self.scope).get("content-length", "")
        return int(length) if length.isdecimal() else 0

    async def send(self, message: Message) -> None:
        """Send a part of the answer, unless the request was refused meanwhile."""
        if not self.is_refused:
            self._has_begun = True
            await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer that the request is refused; an answer that has begun breaks off with `Refused`."""
        response = self._answer(self.scope, problem)
        if self._has_begun:
            raise Refused(problem.detail, status=problem.status, kind=problem.kind)
        self.is_refused = True
        # The rest of the body is not read.
        response.headers["Connection"] = "close"
        await response(self.scope, self.receive, self._send)


class Guard:
    """Refuses requests for another host, and requests that a page of another site has made.

    A link on another site may lead here. Anything else that such a site can make a browser send would only
    cost time, since the browser keeps the answer from it; or it would write, since a browser sends a body of
    the type ``text/plain`` to any address that it reaches, this machine's included.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        answer: Answer,
        naming: str,
        foreign: str,
        origins: Collection[str] = (),
        readable: str = "/",
        is_open: Callable[[Scope], bool] = lambda _: False,
    ) -> None:
        """Guard an application.

        Args:
            app: The application.
            hosts: The names under which it is reached, besides localhost and addresses.
            answer: Gives a refusal its shape.
            naming: What is to be done about a name that is unknown, for the message.
            foreign: What pages of other sites are told.
            origins: The other sites whose pages may read answers all the same.
            readable: The beginning of the paths that these may read.
            is_open: Says of a request whether anybody may send it.
        """
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._answer = answer
        self._naming = naming
        self._foreign = foreign
        self._origins = origins
        self._readable = readable
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the request is refused."""
        refusal = self._refusal(scope) if scope["type"] == "http" and not self._is_open(scope) else None
        app = self._app if refusal is None else self._answer(scope, refusal)
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_known_host(host, self._hosts):
            return Problem.of(421, "host", f"this server is not known as {host!r}; {self._naming}")
        if scope["path"].startswith(self._readable) and is_allowed(origin, self._origins):
            return None
        site, goal = headers.get("sec-fetch-site"), headers.get("sec-fetch-dest")
        if is_foreign(scope["method"], host=host, origin=origin, site=site, goal=goal):
            return Problem.of(403, "foreign_page", self._foreign)
        return None

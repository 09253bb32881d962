"""Limits the number, size and duration of requests, and refuses requests from other sites' pages."""

import asyncio
import dataclasses
import math
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.errors import Refused
from esdedup.origins import is_allowed, is_foreign, is_known_host
from esdedup.serving.problems import Answer, Problem

HOLD = "esdedup.hold"
"""Key in the scope of a request for a function that is called with the size of the decompressed body."""


@dataclasses.dataclass(eq=False)
class Limits:
    """Limits the requests that an application has in progress."""

    app: ASGIApp
    _: dataclasses.KW_ONLY
    # Builds the response to a refused request.
    answer: Answer
    max_requests: int
    # The response when `max_requests` are in progress.
    busy: Problem
    # Limits on each request.
    timeout_s: float
    max_body_bytes: float = math.inf
    # Limit on the total size of the bodies of all requests in progress.
    max_bodies_bytes: float = math.inf
    # Whether a request is exempt from these limits.
    is_free: Callable[[Scope], bool] = lambda _: False
    # Context manager around each limited request.
    measured: Callable[[Scope], AbstractContextManager[None]] = lambda _: nullcontext()
    # Called with each change in the total size of the bodies in progress.
    on_held: Callable[[int], None] = lambda _: None
    _in_progress: int = dataclasses.field(default=0, init=False)
    _bodies_bytes: int = dataclasses.field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or refuse a request that exceeds the limits."""
        if scope["type"] != "http" or self.is_free(scope):
            await self.app(scope, receive, send)
            return
        with self.measured(scope):
            await self._limited(_Exchange(scope, receive, send, self.answer))

    async def _limited(self, exchange: "_Exchange") -> None:
        if self._in_progress >= self.max_requests:
            await exchange.refuse(self.busy)
            return
        try:
            length = Headers(scope=exchange.scope).get("content-length", "")
            self._admit(int(length) if length.isdecimal() else 0, of=exchange)
        except Refused as refused:
            await exchange.refuse(Problem.of_error(refused))
            return
        self._in_progress += 1

        def hold_unpacked(size: int) -> None:
            self._admit_more(size)
            self._hold(exchange, size)

        scope = {**exchange.scope, HOLD: hold_unpacked}
        try:
            async with asyncio.timeout(self.timeout_s) as clock:
                await self.app(scope, lambda: self._receive(exchange), exchange.send)
        except TimeoutError:
            if not clock.expired():
                raise
            late = f"no response within {self.timeout_s:,.0f} seconds"
            await exchange.refuse(Problem.of(504, "late", late))
        except asyncio.CancelledError:
            # The server cancels requests that take too long after SIGTERM.
            ended = "this process shut down before it could respond: send the request again"
            await exchange.refuse(Problem.of(503, "shutting_down", ended))
        except Exception:
            # A refusal reports a disconnect to the application, which may then fail.
            if not exchange.is_refused:
                raise
        finally:
            self._in_progress -= 1
            self._hold(exchange, -exchange.held_bytes)

    async def _receive(self, exchange: "_Exchange") -> Message:
        """Receive the next part of a body; if it is too large, refuse the request and report a disconnect."""
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
        if size > self.max_body_bytes:
            raise Refused(
                f"the request is larger than {self.max_body_bytes:,} bytes: send fewer articles per request",
                status=413,
                kind="body_too_large",
            )
        self._admit_more(size - of.held_bytes)

    def _admit_more(self, size: int) -> None:
        """Raise `Refused` if all bodies together would become too large."""
        if self._bodies_bytes + size > self.max_bodies_bytes:
            raise Refused(
                f"the bodies of the requests in progress have {self._bodies_bytes:,} bytes; the limit is "
                f"{self.max_bodies_bytes:,}: try again",
                status=429,
                kind="bodies",
            )

    def _hold(self, exchange: "_Exchange", size: int) -> None:
        exchange.held_bytes += size
        self._bodies_bytes += size
        self.on_held(size)


@dataclasses.dataclass(eq=False)
class _Exchange:
    """A request and its response."""

    scope: Scope
    receive: Receive
    _send: Send
    _answer: Answer
    # The bytes counted for this request: the bytes received, and the decompressed body.
    held_bytes: int = 0
    is_refused: bool = False
    _has_begun: bool = False

    async def send(self, message: Message) -> None:
        """Send a part of the response, unless the request has been refused."""
        if not self.is_refused:
            self._has_begun = True
            await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Respond with `problem`; if a response has already begun, raise `Refused` to abort it."""
        response = self._answer(self.scope, problem)
        if self._has_begun:
            raise Refused(problem.detail, status=problem.status, kind=problem.kind)
        self.is_refused = True
        # The rest of the body is not read, so the connection cannot be reused.
        response.headers["Connection"] = "close"
        await response(self.scope, self.receive, self._send)


@dataclasses.dataclass(eq=False)
class Guard:
    """Refuses requests for unknown hosts, and requests from other sites' pages, except for followed links.

    Otherwise, any web page could make browsers post a body of the type ``text/plain``, and so write articles.
    """

    app: ASGIApp
    _: dataclasses.KW_ONLY
    # The host names that clients use to reach the server, in addition to localhost and IP addresses.
    hosts: Collection[str]
    # Builds the response to a refused request.
    answer: Answer
    # Messages: how to allow an unknown host, and why pages of other sites are refused.
    naming: str
    foreign: str
    # Origins of other sites whose pages may read responses, from paths that begin with `readable`.
    origins: Collection[str] = ()
    readable: str = "/"
    # Whether a request is exempt.
    is_open: Callable[[Scope], bool] = lambda _: False

    def __post_init__(self) -> None:
        self.hosts = frozenset(host.lower() for host in self.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or respond with a refusal."""
        refusal = self._refusal(scope) if scope["type"] == "http" and not self.is_open(scope) else None
        app = self.app if refusal is None else self.answer(scope, refusal)
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_known_host(host, self.hosts):
            return Problem.of(421, "host", f"this server is not known as {host!r}; {self.naming}")
        if scope["path"].startswith(self.readable) and is_allowed(headers.get("origin"), self.origins):
            return None
        if is_foreign(scope["method"], headers.get):
            return Problem.of(403, "foreign_page", self.foreign)
        return None

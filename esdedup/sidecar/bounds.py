"""How much callers may send at once: bodies of a limited size, requests of a limited number and time."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esdedup.sidecar.metrics import Metrics, RequestKind
from esdedup.sidecar.own_paths import is_own, is_watching
from esdedup.sidecar.problems import Refused, answer, problem_of
from esdedup.sidecar.requests import HOLD

_DOCUMENTS = ("_doc", "_create", "_update")


class Bounds:
    """Bounds what is in progress, and measures it. Those who ask how the sidecar is are always answered."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_requests: int,
        max_body_bytes: int,
        max_bodies_bytes: int,
        timeout_s: float,
        metrics: Metrics,
    ) -> None:
        """Bound an application.

        Args:
            app: The application.
            max_requests: In progress.
            max_body_bytes: Of one request.
            max_bodies_bytes: Of all requests in progress.
            timeout_s: Of one request.
            metrics: Counts requests, and what is refused.
        """
        self._app = app
        self._max_requests = max_requests
        self._max_body_bytes = max_body_bytes
        self._max_bodies_bytes = max_bodies_bytes
        self._timeout_s = timeout_s
        self._metrics = metrics
        self._in_progress = 0
        self._bodies_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer within the bounds."""
        if scope["type"] != "http" or is_watching(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._metrics.request(kind_of(scope)):
            await self._bounded(_Exchange(scope, receive, send))

    async def _bounded(self, exchange: "_Exchange") -> None:
        try:
            self._admit_one()
            self._admit(exchange.announced_bytes, of=exchange)
        except Refused as refused:
            await self._refuse(exchange, refused)
            return
        self._in_progress += 1
        scope = {**exchange.scope, HOLD: lambda size: self._hold_unpacked(exchange, size)}
        try:
            async with asyncio.timeout(self._timeout_s) as clock:
                await self._app(scope, lambda: self._receive(exchange), exchange.send)
        except TimeoutError:
            if not clock.expired():
                raise
            late = Refused(f"no answer within {self._timeout_s:,.0f} seconds", status=504, reason="late")
            await self._refuse(exchange, late)
        except asyncio.CancelledError:
            # The server does that when the time is over that requests have after SIGTERM.
            ending = Refused(
                "this process has ended before it could answer: send this again",
                status=503,
                reason="shutting_down",
            )
            await self._refuse(exchange, ending)
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
            await self._refuse(exchange, refused)
            return {"type": "http.disconnect"}
        self._hold(exchange, size)
        return message

    def _admit_one(self) -> None:
        """Make sure that there may be one more request.

        Raises:
            Refused: There are too many.
        """
        if self._in_progress >= self._max_requests:
            raise Refused(
                f"{self._in_progress:,} requests are in progress, and no more may be: try again",
                status=429,
                reason="requests",
            )

    def _admit(self, size: int, *, of: "_Exchange") -> None:
        """Make sure that the body of a request may have so many bytes.

        Raises:
            Refused: It is too large, or the bodies of all requests together are.
        """
        if size > self._max_body_bytes:
            raise Refused(
                f"the request is larger than {self._max_body_bytes:,} bytes: send fewer articles at once",
                status=413,
                reason="body_too_large",
            )
        self._admit_more(size - of.held_bytes)

    def _admit_more(self, size: int) -> None:
        """Make sure that the bodies of all requests together may have so many bytes more.

        Raises:
            Refused: They are too large.
        """
        if self._bodies_bytes + size > self._max_bodies_bytes:
            raise Refused(
                f"the requests in progress have {self._bodies_bytes:,} bytes, and together no more than "
                f"{self._max_bodies_bytes:,} may: try again",
                status=429,
                reason="bodies",
            )

    def _hold_unpacked(self, exchange: "_Exchange", size: int) -> None:
        """Count the bytes of an unpacked body among those of all requests in progress.

        Raises:
            Refused: Together they are too many.
        """
        try:
            self._admit_more(size)
        except Refused as refused:
            self._metrics.refused(refused.reason)
            raise
        self._hold(exchange, size)

    def _hold(self, exchange: "_Exchange", size: int) -> None:
        exchange.held_bytes += size
        self._bodies_bytes += size
        self._metrics.bodies(size)

    async def _refuse(self, exchange: "_Exchange", refused: Refused) -> None:
        self._metrics.refused(refused.reason)
        await exchange.refuse(refused)


class _Exchange:
    """A request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        # Of the body, as far as it has been read.
        self.held_bytes = 0
        self._has_begun = self.is_refused = False

    @property
    def announced_bytes(self) -> int:
        """The size of the body as the caller announced it, 0 if he did not."""
        length = Headers(scope=self.scope).get("content-length", "")
        return int(length) if length.isdecimal() else 0

    async def send(self, message: Message) -> None:
        """Send a part of the answer, unless the request was refused meanwhile."""
        if not self.is_refused:
            self._has_begun = True
            await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Answer that the request is refused; an answer that has begun breaks off.

        Raises:
            Refused: The answer has begun.
        """
        if self._has_begun:
            raise refused
        self.is_refused = True
        response = answer(self.scope, problem_of(refused))
        # The rest of the body is not read.
        response.headers["Connection"] = "close"
        await response(self.scope, self.receive, self._send)


def kind_of(scope: Scope) -> RequestKind:
    """Return under which kind a request is counted."""
    method, path = scope["method"], scope["path"]
    if is_own(method, path):
        return "own"
    if method in {"GET", "HEAD", "DELETE"}:
        return "other"
    parts = path.strip("/").split("/")
    if parts[-1] == "_bulk":
        return "bulk"
    return "document" if len(parts) > 1 and parts[1] in _DOCUMENTS else "other"

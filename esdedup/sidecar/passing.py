"""`Passing`: the route of all requests that Elasticsearch shall answer as if nobody stood between."""

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import AsyncIterator, Callable

from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.errors import ServerUnavailable
from esdedup.serving.problems import Problem
from esdedup.sidecar.own_paths import answer as answer_of
from esdedup.sidecar.requests import RequestUnreadable
from esdedup.sidecar.upstream import Upstream, UpstreamAnswer

_log = logging.getLogger(__name__)

# An answer of unknown length is held whole for a caller that speaks HTTP/1.0, in which an answer that breaks
# off looks like a whole one. Larger ones are for callers that speak HTTP/1.1.
_MAX_HELD_BYTES = 100 << 20


def target_of(scope: Scope) -> bytes:
    """Return the path and query of a request as they came."""
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"]
    return path + b"?" + query if query else path


class Passing(BaseRoute):
    """Sends a request on, and its answer back. Matches all: none is refused for its path or its method."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match all requests over HTTP."""
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. An answer that breaks off stays incomplete, and so the server ends the connection."""
        caller = Caller(scope, receive)
        try:
            async with caller.waiting():
                await self.send_on(scope, receive, send, body=caller.body())
        except ClientDisconnect:
            _log.debug("a caller has left before his answer")

    async def send_on(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        body: bytes | AsyncIterator[bytes] | None,
        watch: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """Send a request on with this body, and its answer back; errors are answered too.

        `watch` is called with each part of the answer's body.
        """
        has_begun = False
        try:
            async with self._upstream.send(
                scope["method"], target_of(scope), scope["headers"], body
            ) as answer:
                headers, parts = answer.headers, answer.stream()
                if scope["http_version"] == "1.0" and not _has_length(answer):
                    held = await _hold(parts)
                    headers, parts = [*headers, (b"content-length", b"%d" % len(held))], _only(held)
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                has_begun = True
                async for part in parts:
                    watch(part)
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except RequestUnreadable as error:
            await answer_of(scope, Problem.of_error(error))(scope, receive, send)
        except ServerUnavailable as error:
            if has_begun:
                _log.warning("%s; the caller's connection is closed", error)
            else:
                _log.warning("%s", error)
                # What a proxy says of the server behind it. Whether to try again, clients know.
                problem = dataclasses.replace(Problem.of_error(error), status=502, retry_after_s=None)
                await answer_of(scope, problem)(scope, receive, send)


class Caller:
    """The side of a request that a caller holds: his body, and whether he waits."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._has_body = any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in scope["headers"]
        )
        self._has_sent = asyncio.Event()
        if not self._has_body:
            self._has_sent.set()

    def body(self) -> AsyncIterator[bytes] | None:
        """Return the body as it comes, None if there is none. Raises `ClientDisconnect` if he leaves."""
        return self._parts() if self._has_body else None

    @contextlib.asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """End what happens inside when the caller leaves.

        Elasticsearch then cancels a search that nobody waits for.

        Raises:
            ClientDisconnect: He has left.
        """
        try:
            async with asyncio.timeout(None) as patience:
                watching = asyncio.create_task(self._watch(patience))
                try:
                    yield
                finally:
                    watching.cancel()
        except TimeoutError:
            if patience.expired():
                raise ClientDisconnect from None
            raise

    async def _parts(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if part := message.get("body"):
                yield part
            more = message.get("more_body", False)
        self._has_sent.set()

    async def _watch(self, patience: asyncio.Timeout) -> None:
        # Only now: whoever asks for the body makes the server ask the caller for it.
        await self._has_sent.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        patience.reschedule(0)


def _has_length(answer: UpstreamAnswer) -> bool:
    return any(name.lower() == b"content-length" for name, _ in answer.headers)


async def _hold(parts: AsyncIterator[bytes]) -> bytes:
    held = bytearray()
    async for part in parts:
        held += part
        if len(held) > _MAX_HELD_BYTES:
            raise ServerUnavailable("the answer is too large for HTTP/1.0; ask with HTTP/1.1")
    return bytes(held)


async def _only(part: bytes) -> AsyncIterator[bytes]:
    yield part

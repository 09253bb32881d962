"""What the sidecar's own endpoints share: how bodies are read, and what is answered where there is none."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import orjson
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.ingest.json_values import parsed_with_surrogates
from esdedup.serving.problems import Problem
from esdedup.sidecar.own_paths import is_under_v1
from esdedup.sidecar.problems import answer
from esdedup.sidecar.refusals import RequestRefused
from esdedup.sidecar.requests import unpacked

_UTF8_MARK = b"\xef\xbb\xbf"
# What pipelines say who send what they have, and it is JSON: Logstash the first, NiFi the second.
_UNSAID = frozenset(("", "text/plain", "application/octet-stream"))


def json_route(*, max_body_bytes: int, check: Callable[[], None] = lambda: None) -> type[APIRoute]:
    """Return a kind of route whose bodies are JSON, perhaps gzip, of at most that size unpacked.

    `check` is called before a body is read, and raises if it is not to be.
    """

    class JsonRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handler(request: Request) -> Response:
                if self.body_field is None:
                    return await handle(request)
                check()
                return await handle(await _JsonRequest.of(request, max_body_bytes=max_body_bytes))

            return handler

    return JsonRoute


async def read_body(request: Request, *, max_body_bytes: int) -> bytes:
    """Return the body of a request, unpacked.

    Raises:
        ClientDisconnect: The caller has left.
        RequestRefused: It is packed otherwise than by gzip, damaged, or too large.
    """
    encoding = request.headers.get("content-encoding")
    return unpacked(await request.body(), scope=request.scope, encoding=encoding, most_bytes=max_body_bytes)


class _JsonRequest(Request):
    """A request whose body has been unpacked and parsed."""

    @classmethod
    async def of(cls, request: Request, *, max_body_bytes: int) -> "_JsonRequest":
        """Read a request.

        Raises:
            ClientDisconnect: The caller has left.
            RequestRefused: Its body is not JSON.
        """
        _require_json(request.headers.get("content-type", ""))
        body = (await read_body(request, max_body_bytes=max_body_bytes)).removeprefix(_UTF8_MARK)
        kept = [header for header in request.scope["headers"] if header[0] != b"content-type"]
        scope = {**request.scope, "headers": [*kept, (b"content-type", b"application/json")]}
        read = cls(scope, request.receive)
        read._body = body
        # Large ones take long. Meanwhile others have their turn.
        read._json = await asyncio.to_thread(_parsed, body)
        return read


class NotServed(BaseRoute):
    """Matches what is under the sidecar's own path without an endpoint; Elasticsearch has none there."""

    def __init__(self, endpoints: Sequence[BaseRoute]) -> None:
        """Answer for what is not among these endpoints."""
        self._endpoints = endpoints

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the path."""
        is_ours = scope["type"] == "http" and is_under_v1(scope["path"])
        return (Match.FULL if is_ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer which methods there are, or that there is nothing."""
        methods = sorted(
            method
            for each in self._endpoints
            if each.matches(scope)[0] is not Match.NONE
            for method in getattr(each, "methods", None) or ()
        )
        problem = Problem(status=404, kind="no_such_endpoint", detail="the description is /v1/openapi.json")
        if methods:
            problem = Problem(
                status=405,
                kind="method_not_allowed",
                detail=f"this endpoint is asked with {' or '.join(methods)}, not with {scope['method']:.20}",
            )
        response = answer(scope, problem)
        if methods:
            response.headers["Allow"] = ", ".join(methods)
        await response(scope, receive, send)


def _require_json(content_type: str) -> None:
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in _UNSAID and not media_type.endswith(("/json", "+json")):
        raise RequestRefused(
            415,
            "unsupported_media_type",
            f"the body is said to be {media_type:.100}: send JSON, with Content-Type: application/json",
        )


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # It may have half a character in it, for which one article is rejected, not all.
        try:
            return parsed_with_surrogates(body)
        except ValueError:
            raise RequestRefused(400, "invalid_request", f"the body is not JSON: {error}") from error

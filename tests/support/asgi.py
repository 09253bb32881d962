"""Sends requests to the pages' ASGI application in this process, without a socket."""

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp, Receive

from esdedup.elastic.client import connect_async
from esdedup.web.app import create_app


@dataclasses.dataclass(frozen=True)
class Response:
    """A response from the application."""

    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def body(self) -> str:
        return self.content.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """A request to send; its query string is not validated."""

    path: str
    query: str = ""
    method: str = "GET"
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""


def request(
    url: str, index: str, path: str, /, *, post: Any = None, of: Mapping[str, Any] | None = None, **query: Any
) -> Response:
    """Send one request to the pages of an index.

    Args:
        url: The address of Elasticsearch.
        index: The index that the pages show.
        path: The path of the page.
        post: The body of a POST request, sent as JSON; None sends a GET request.
        of: Further arguments of `create_app`.
        query: Query parameters.
    """
    given = Request(path=path, query=urlencode(query, doseq=True))
    if post is not None:
        json_type = {"content-type": "application/json"}
        given = dataclasses.replace(given, method="POST", headers=json_type, body=json.dumps(post).encode())
    (response,) = requests(url, index, [given], of=of)
    return response


def requests(
    url: str, index: str, given: Iterable[Request], *, of: Mapping[str, Any] | None = None
) -> list[Response]:
    """Send requests to the pages of an index, one after the other."""

    async def all_responses() -> list[Response]:
        async with connect_async(url) as client:
            app = create_app(client, index, **of or {})
            return [await send(app, each) for each in given]

    return asyncio.run(all_responses())


async def unread() -> Any:
    """Fail the test: the application must respond before it reads the body."""
    raise AssertionError("the body was read")


def arriving(*parts: Mapping[str, Any] | bytes) -> Receive:
    """Return a callable that delivers parts of a body or whole messages, and then waits forever."""
    coming = iter(parts)
    left = len(parts)

    async def receive() -> Any:
        nonlocal left
        for part in coming:
            left -= 1
            if isinstance(part, bytes):
                return {"type": "http.request", "body": part, "more_body": left > 0}
            return part
        return await asyncio.Future()

    return receive


async def send(app: ASGIApp, request: Request, receive: Receive | None = None) -> Response:
    """Send one request to an application; if `receive` is None, the body arrives in one part."""
    sent: list[Any] = []

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "headers": [
            (name.encode(), value.encode())
            for name, value in ({"host": "localhost:8000"} | dict(request.headers)).items()
        ],
    }
    # After an unexpected error, the application sends a response and raises the error again for the server's
    # log.
    with contextlib.suppress(Exception):
        await app(scope, receive or arriving(request.body), collect)
    body = b"".join(each.get("body", b"") for each in sent)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Response(sent[0]["status"], body, headers)

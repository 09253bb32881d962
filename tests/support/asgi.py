"""Requests to the pages' application in this process, without a socket."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from elasticsearch import AsyncElasticsearch

from esdedup.web import create_app


@dataclasses.dataclass(frozen=True)
class Response:
    """What the application answered."""

    status: int
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    url: str, index: str, path: str, /, *, post: Any = None, of: Mapping[str, Any] | None = None, **query: Any
) -> Response:
    """Send one request to the pages of an index.

    Args:
        url: The server's.
        index: What the pages show.
        path: Of the page.
        post: Sent as JSON; None gets the page.
        of: Further arguments of `create_app`.
        query: Parameters in the address.
    """
    return asyncio.run(_request(url, index, path, post, of or {}, query))


async def _request(
    url: str, index: str, path: str, post: Any, of: Mapping[str, Any], query: Mapping[str, Any]
) -> Response:
    async with AsyncElasticsearch(url) as client:
        app = create_app(client, index, **of)
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(post).encode()}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET" if post is None else "POST",
            "path": path,
            "query_string": urlencode(query).encode(),
            "headers": [] if post is None else [(b"content-type", b"application/json")],
        }
        await app(scope, receive, send)
    body = b"".join(each.get("body", b"") for each in sent)
    return Response(sent[0]["status"], body.decode())

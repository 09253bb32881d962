"""Clients whose requests a test can watch, delay, change or refuse.

Tests pass these clients to the package like any other client, so faults occur where real faults would.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import elastic_transport
from elastic_transport._node import NodeApiResponse
from elastic_transport.client_utils import DEFAULT
from elasticsearch import Elasticsearch

from esdedup.elastic.client import _Transport


@dataclasses.dataclass(frozen=True)
class Sent:
    """A request that the client sends."""

    method: str
    # The path without query parameters.
    path: str
    body: bytes

    @property
    def operation(self) -> str:
        """The last part of the path: `_search`, `_bulk`, `_refresh`, ..."""
        return self.path.rpartition("/")[2]

    @property
    def items(self) -> list[bytes]:
        """The documents of a bulk request, each with its action."""
        lines = self.body.splitlines(keepends=True)
        return [b"".join(pair) for pair in zip(lines[::2], lines[1::2], strict=True)]


Answer = NodeApiResponse


class Send(Protocol):
    """Sends the request, with a different body if one is given."""

    def __call__(self, body: bytes | None = ...) -> Answer: ...


Between = Callable[[Sent, Send], Answer]
"""Called with each request in place of the server, in the thread that sends the request."""


@contextlib.contextmanager
def client_with(url: str, between: Between) -> Iterator[Elasticsearch]:
    """Yield a client of a server of version 8.19 or 9 that passes each request to `between`."""

    class Node(elastic_transport.Urllib3HttpNode):
        def perform_request(
            self,
            method: str,
            target: str,
            body: bytes | None = None,
            headers: elastic_transport.HttpHeaders | None = None,
            request_timeout: Any = DEFAULT,
        ) -> Answer:
            whole, plain = body, super().perform_request

            def send(body: bytes | None = whole) -> Answer:
                return plain(method, target, body, headers, request_timeout)

            return between(Sent(method, target.partition("?")[0], whole or b""), send)

    with Elasticsearch(url, node_class=Node, transport_class=_Transport) as client:
        yield client


@contextlib.contextmanager
def recording(url: str) -> Iterator[tuple[Elasticsearch, list[Sent]]]:
    """Yield a client and the list of the requests that it sends."""
    sent: list[Sent] = []

    def between(request: Sent, send: Send) -> Answer:
        sent.append(request)
        return send()

    with client_with(url, between) as client:
        yield client, sent


def failure() -> Answer:
    """Return an error response that no client retries."""
    return answer(500, {"error": {"type": "x", "reason": "failed on purpose"}})


def no_answer() -> elastic_transport.TransportError:
    """Return a connection error, which clients retry only for bulk requests."""
    return elastic_transport.TransportError("failed on purpose")


def answer(status: int, body: dict[str, Any]) -> Answer:
    """Return a response from a server."""
    headers = elastic_transport.HttpHeaders(
        {"content-type": "application/json", "x-elastic-product": "Elasticsearch"}
    )
    node = elastic_transport.NodeConfig("http", "127.0.0.1", 9)
    meta = elastic_transport.ApiResponseMeta(status, "1.1", headers, 0.0, node)
    return Answer(meta, json.dumps(body).encode())

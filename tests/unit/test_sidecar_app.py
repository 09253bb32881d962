"""Which requests are the sidecar's own, and which are Elasticsearch's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from esdedup.sidecar.app import OPENAPI_PATH, create_app
from esdedup.sidecar.upstream import Upstream
from tests.support.wire import OK, Connection, ScriptedServer

PASSED, OWN, WRITES = "{}", '"own"', "writes"


@pytest.mark.parametrize(
    ("method", "path", "answered"),
    [
        ("GET", "/healthz", OWN),
        ("POST", "/v1/enrich", OWN),
        ("GET", "/v1/other/abc", OWN),
        ("POST", "/_bulk", WRITES),
        # An index may have any of these names.
        ("HEAD", "/healthz", ""),
        ("PUT", "/healthz", PASSED),
        ("DELETE", "/healthz", PASSED),
        ("GET", "/healthz/", PASSED),
        ("GET", "/healthz/_doc/1", PASSED),
        ("POST", "/v1/_search", PASSED),
        ("GET", "/v1", PASSED),
        ("GET", "/v1/", PASSED),
        ("GET", "/docs", PASSED),
        ("GET", "/openapi.json", PASSED),
        ("GET", "/_bulk", PASSED),
        ("GET", "//_bulk", PASSED),
        ("OPTIONS", "/_bulk", PASSED),
        ("PROPFIND", "/a", PASSED),
    ],
)
def test_only_exact_paths_and_methods_are_the_sidecars_own(method: str, path: str, answered: str) -> None:
    assert _ask(method, path) == (200, answered)


def test_the_description_tells_of_the_own_endpoints_alone() -> None:
    status, body = _ask("GET", OPENAPI_PATH)
    assert status == 200
    assert "/v1/enrich" in body
    assert "_bulk" not in body


def test_what_runs_alongside_begins_in_order_and_ends_in_reverse() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def thing(name: str) -> AsyncIterator[None]:
        events.append(f"begin {name}")
        yield
        events.append(f"end {name}")

    async def run() -> None:
        app = create_app(Upstream(["http://localhost:9200"]), alongside=[thing("one"), thing("two")])
        async with app.router.lifespan_context(app):
            events.append("running")

    asyncio.run(run())
    assert events == ["begin one", "begin two", "running", "end two", "end one"]


def _ask(method: str, path: str) -> tuple[int, str]:
    own = APIRouter()
    for its_method, its_path in (("GET", "/healthz"), ("POST", "/v1/enrich"), ("GET", "/v1/other/{name}")):
        own.add_api_route(its_path, lambda: "own", methods=[its_method])

    async def write(_: Request) -> PlainTextResponse:
        return PlainTextResponse(WRITES)

    async def run(url: str) -> tuple[int, str]:
        upstream = Upstream([url])
        app = create_app(upstream, own=[own], others=[Route("/_bulk", write, methods=["POST", "PUT"])])
        sent: list[Any] = []
        parts = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> Any:
            return next(parts, None) or await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"sidecar")],
        }
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode()

    def script(connection: Connection) -> None:
        head = connection.head()
        connection.send(OK.removesuffix(b"{}") if head.startswith(b"HEAD") else OK)

    with ScriptedServer(script).running() as server:
        return asyncio.run(run(server.url))

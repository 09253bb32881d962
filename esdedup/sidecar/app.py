"""The application: which requests are the sidecar's own, which bring articles, and that all others pass.

Elasticsearch's paths begin with an underscore or with the name of an index, and an index may be called
``metrics`` or ``v1``. So the sidecar's own paths are exact ones, for exact methods: ``GET /metrics`` is ours,
``HEAD /metrics``, ``PUT /metrics`` and ``/metrics/_search`` are Elasticsearch's; ``POST /v1/enrich`` is ours,
for Elasticsearch has no path of two names without an underscore; ``/v1`` and ``/v1/_doc/1`` are its own. What
is ours and has no endpoint is answered here, so that a wrong method or name is told of in our words.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.serving.problems import Problem
from esdedup.sidecar.own_paths import PAGES, V1, answer, is_under
from esdedup.sidecar.passing import Passing
from esdedup.sidecar.upstream import Upstream

OPENAPI_PATH = "/v1/openapi.json"


def create_app(
    upstream: Upstream,
    *,
    own: Sequence[APIRouter] = (),
    others: Sequence[BaseRoute] = (),
    alongside: Sequence[AbstractAsyncContextManager[object]] = (),
) -> FastAPI:
    """Return the application.

    Args:
        upstream: Where requests go on to; opened when the application starts, closed when it ends.
        own: The sidecar's own endpoints; they come first.
        others: The routes of what writes articles, and of what shows them; a request that none of them
            matches passes.
        alongside: What begins with the application, in this order, and ends with it.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as open_things:
            for each in (upstream, *alongside):
                await open_things.enter_async_context(each)
            yield

    app = FastAPI(
        title="esdedup sidecar",
        summary="Elasticsearch's own interface, with the roots of near-duplicates added to articles.",
        version="1",
        lifespan=running,
        openapi_url=OPENAPI_PATH,
        # These pages load scripts from other servers.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in own:
        app.include_router(router)
    endpoints = [route for router in own for route in router.routes]
    app.router.routes += [_NotServed(endpoints), *others, Passing(upstream)]
    return app


class _NotServed(BaseRoute):
    """Matches what is under the sidecar's own path without an endpoint; Elasticsearch has none there."""

    def __init__(self, endpoints: Sequence[BaseRoute]) -> None:
        """Answer for what is not among these endpoints."""
        self._endpoints = endpoints

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the path."""
        is_ours = scope["type"] == "http" and is_under(V1, scope)
        return (Match.FULL if is_ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer which methods there are, or that there is nothing."""
        methods = sorted(
            method
            for each in self._endpoints
            if each.matches(scope)[0] is not Match.NONE
            for method in getattr(each, "methods", None) or ()
        )
        if methods:
            detail = f"this endpoint is asked with {' or '.join(methods)}, not with {scope['method']:.20}"
            response = answer(scope, Problem(status=405, kind="method_not_allowed", detail=detail))
            response.headers["Allow"] = ", ".join(methods)
        else:
            detail = "the description is /v1/openapi.json"
            response = answer(scope, Problem(status=404, kind="no_such_endpoint", detail=detail))
        await response(scope, receive, send)


class PagesRoute(BaseRoute):
    """Matches the paths of the pages. An index may be called ``pages``: its paths are Elasticsearch's."""

    def __init__(self, app: ASGIApp) -> None:
        """Show the pages of an application."""
        self._app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        if scope["type"] != "http":
            return Match.NONE, {}
        start, slash, rest = scope["path"].removeprefix("/").partition("/")
        is_page = f"/{start}" == PAGES and not rest.startswith("_") and (slash or scope["method"] == "GET")
        return (Match.FULL if is_page else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a page."""
        if scope["path"] == PAGES:
            await RedirectResponse(f"{PAGES}/")(scope, receive, send)
            return
        await self._app({**scope, "root_path": PAGES}, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Begin the application, and end it."""
        given: asyncio.Queue[Any] = asyncio.Queue()
        told: asyncio.Queue[Any] = asyncio.Queue()
        task = asyncio.ensure_future(self._app({"type": "lifespan"}, given.get, told.put))
        await given.put({"type": "lifespan.startup"})
        if (await told.get())["type"] != "lifespan.startup.complete":
            # Raises what has failed.
            await task
        try:
            yield
        finally:
            await given.put({"type": "lifespan.shutdown"})
            await task

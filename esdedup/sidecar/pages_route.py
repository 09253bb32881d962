"""`PagesRoute`: the pages of `esdedup serve`, as a part of the sidecar."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/pages"


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
        is_page = f"/{start}" == PREFIX and not rest.startswith("_") and (slash or scope["method"] == "GET")
        return (Match.FULL if is_page else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a page."""
        if scope["path"] == PREFIX:
            await RedirectResponse(f"{PREFIX}/")(scope, receive, send)
            return
        await self._app({**scope, "root_path": PREFIX}, receive, send)

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

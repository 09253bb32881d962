"""The pages and their JSON API in the sidecar: the same routes as in `esdedup serve`.

The API reads from Elasticsearch with the caller's credentials. A request may name the index to read.
"""

import dataclasses
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import parse_qsl, urlencode

from elasticsearch import AsyncElasticsearch
from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.elastic.client import CREDENTIALS
from esdedup.errors import ServerError, SettingError
from esdedup.reading.reader import AsyncReader
from esdedup.serving.problems import Problem, described
from esdedup.sidecar.paths import API, PAGES, is_under
from esdedup.times import zone_named
from esdedup.web.api_app import create_api
from esdedup.web.context import Context, FreshMarking
from esdedup.web.errors import problem_of

# Scope key of the indices that a request names with its parameter `index`.
_NAMED = "esdedup.indices"
_INDEX = {
    "name": "index",
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": "The index, alias or pattern to read; by default the index that the sidecar's pages show.",
}
_ERRORS = described(
    s401="Elasticsearch does not know the caller, or the token of the sidecar is missing.",
    s403="The caller may not read the index or the forest.",
    s413="The body is too large.",
)


class ReadingApi(BaseRoute):
    """Matches the paths of the API, which Elasticsearch does not have."""

    def __init__(
        self, reader: AsyncReader, client: AsyncElasticsearch, *, index: str | None, time_zone: str
    ) -> None:
        """Use `client` with each caller's credentials; requests may override `index` and `time_zone`."""
        self._reader = reader
        self._client = client
        self._index = index
        self._zone = zone_named(time_zone)
        self._app = create_api(self._context_of, problem_of=_problem_of)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the path."""
        return (Match.FULL if is_under(API, scope) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request; move its parameter `index` from the query string to the scope."""
        given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        named = [value for name, value in given if name == "index" and value]
        if named:
            rest = urlencode([each for each in given if each[0] != "index"], encoding="utf-8")
            scope = {**scope, "query_string": rest.encode("latin-1")}
        await self._app({**scope, _NAMED: named}, receive, send)

    def describe(self, app: FastAPI) -> None:
        """Add these routes, with the parameter `index`, to the OpenAPI description of `app`."""
        whole, own = app.openapi(), self._app.openapi()
        for methods in own["paths"].values():
            for operation in methods.values():
                others = [each for each in operation.get("parameters", ()) if each["name"] != "index"]
                answers = {
                    **operation["responses"],
                    **{str(status): each for status, each in _ERRORS.items()},
                }
                operation.update({"parameters": [*others, _INDEX], "responses": answers, "tags": ["reading"]})
        whole["paths"] |= own["paths"]
        schemas: dict[str, Any] = whole.setdefault("components", {}).setdefault("schemas", {})
        schemas |= own["components"]["schemas"]

    def _context_of(self, request: Request) -> Context:
        named = request.scope[_NAMED]
        if len(named) > 1:
            raise SettingError("index is given more than once; give it once")
        index = named[0] if named else self._index
        if index is None:
            raise SettingError("index is missing: name the index to read")
        given = request.headers
        own = {name: given.getlist(name)[-1] for name in CREDENTIALS if name in given}
        reader = self._reader.with_client(self._client.options(headers=own))
        marking = FreshMarking(reader)
        return Context(request=request, reader=reader, index=index, marking=marking, default_zone=self._zone)


def _problem_of(request: Request, error: Exception) -> Problem:
    """Describe an error; Elasticsearch's refusals concern the caller, whose credentials were sent."""
    if isinstance(error, ServerError) and error.status == 401:
        return Problem.of(401, "caller_refused", "Elasticsearch refuses the caller with status 401")
    if type(error) is ServerError and error.status == 403:
        return Problem.of(403, "not_allowed", "the caller may not read the index or the forest")
    return problem_of(request, error)


@dataclasses.dataclass(eq=False)
class PagesRoute(BaseRoute):
    """Matches the paths of the pages, but not the paths of an index called ``pages``."""

    app: FastAPI

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        start, slash, rest = scope["path"].removeprefix("/").partition("/")
        is_page = f"/{start}" == PAGES and not rest.startswith("_") and (slash or scope["method"] == "GET")
        return (Match.FULL if is_page else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a page, or redirect to the first page."""
        if scope["path"] == PAGES:
            await RedirectResponse(f"{PAGES}/")(scope, receive, send)
            return
        await self.app({**scope, "root_path": PAGES}, receive, send)

    def running(self) -> AbstractAsyncContextManager[object]:
        """Return the context manager that starts the application, and shuts it down on exit."""
        return self.app.router.lifespan_context(self.app)

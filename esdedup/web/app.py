"""The application: its routes, the status of each error, and headers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources

from elasticsearch import AsyncElasticsearch
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import (
    ArticleNotFound,
    ArticleRejected,
    EsdedupError,
    ForestError,
    IndexBlocked,
    IndexNotReady,
    ServerUnavailable,
    SettingError,
)
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.reading.reader import AsyncReader
from esdedup.web import api, pages
from esdedup.web.state import Site

_STATUS: list[tuple[type[EsdedupError], int]] = [
    (SettingError, 400),
    (ArticleRejected, 400),
    (ArticleNotFound, 404),
    (ForestError, 409),
    (IndexBlocked, 503),
    (IndexNotReady, 503),
    (ServerUnavailable, 503),
]
_HEADERS = {
    # Nothing is loaded from other servers, and no script runs.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def create_app(
    client: AsyncElasticsearch,
    index: str,
    *,
    fields: Fields = Fields(),  # noqa: B008 - frozen
    forest: str = DEFAULT_FOREST,
    profile: Profile = DEFAULT,
) -> FastAPI:
    """Return an application that shows one index.

    Args:
        client: Closed when the application ends.
        index: An index, alias or pattern.
        fields: The names of the articles' fields.
        forest: The forest's index; only looking up a text needs it.
        profile: The profile that the forest was made with.
    """

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        yield
        await client.close()

    app = FastAPI(
        title="esdedup",
        summary="Articles, one row for each cluster of near-duplicates, and who else published them.",
        version="1",
        lifespan=closing,
        # These pages load scripts from other servers; openapi.json is served.
        docs_url=None,
        redoc_url=None,
    )
    reader = AsyncReader(client, fields=fields, forest=forest, profile=profile)
    app.state.site = Site(reader=reader, index=index, fields=fields)
    app.include_router(api.router)
    app.include_router(pages.router)
    static = resources.files("esdedup.web") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    app.add_exception_handler(EsdedupError, _failed)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_exception_handler(HTTPException, _not_served)
    app.add_exception_handler(Exception, _broken)
    app.middleware("http")(_with_headers)
    description = app.openapi()
    for path in description["paths"].values():
        for operation in path.values():
            # This application answers invalid parameters with 400.
            operation["responses"].pop("422", None)
    return app


async def _with_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await answer(request)
    response.headers.update(_HEADERS)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 502)
    return _error(request, status, str(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    messages = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return _error(request, 400, messages)


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "there is no such page" if error.status_code == 404 else str(error.detail)
    return _error(request, error.status_code, message)


async def _broken(request: Request, _: Exception) -> Response:
    return _error(request, 500, "internal error; the server's log has the details")


def _error(request: Request, status: int, message: str) -> Response:
    if request.url.path.startswith(api.PREFIX):
        return JSONResponse({"error": message}, status_code=status)
    return pages.render_error(request, status, message)

"""The application: its routes, and what stands before them."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import resources
from typing import Any

from elasticsearch import AsyncElasticsearch
from fastapi import Depends, FastAPI, Request
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.reading.reader import AsyncReader
from esdedup.web import (
    api,
    article_page,
    comparison_page,
    description,
    downloads,
    explanation,
    language_page,
    list_page,
    try_out,
)
from esdedup.web.caching import EntityTags, Heads
from esdedup.web.cors import origin_of, with_cors
from esdedup.web.errors import handle_errors
from esdedup.web.form import REPEATABLE
from esdedup.web.guards import Limits, SafeHeaders, Visitors
from esdedup.web.marking import Marking
from esdedup.web.state import Site

# As often as Elasticsearch refreshes an index by itself: visitors who look up texts cost no more.
_REFRESH_INTERVAL_S = 1.0
# A smaller answer fits into one packet anyway.
_MIN_PACKED_BYTES = 1_400
# The most that still takes less time than it saves in a local network.
_PACKING = 4


def create_app(
    client: AsyncElasticsearch,
    index: str,
    *,
    fields: Fields | None = None,
    forest: str = DEFAULT_FOREST,
    profile: Profile = DEFAULT,
    pins: Pins = NO_PINS,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
) -> ASGIApp:
    """Return an application that shows one index. Its links begin with the root path of the server.

    Args:
        client: Closed when the application ends.
        index: An index, alias or pattern.
        fields: The names of the articles' fields; None: those that the index keeps.
        forest: The forest's index, to look up texts, and to mark boilerplate in those of articles.
        profile: The profile that the forest was made with.
        pins: The pins that the forest is fed with.
        hosts: The names under which the application is reached, besides localhost and addresses.
        origins: The origins of other sites whose pages may read what programs may (CORS), such as
            ``https://desk.example``; ``*`` are all.

    Raises:
        SettingError: An origin is none.
    """
    origins = [origin_of(each) for each in origins]

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        site.marking.begin()
        yield
        await site.marking.end()
        await client.close()

    app = _with_routes(closing)
    reader = AsyncReader(
        client,
        fields=fields,
        forest=forest,
        profile=profile,
        pins=pins,
        refresh_interval_s=_REFRESH_INTERVAL_S,
    )
    app.state.site = site = Site(
        reader=reader,
        index=index,
        marking=Marking(reader),
    )
    static = resources.files("esdedup.web") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    handle_errors(app)
    # The last one added comes first.
    app.add_middleware(EntityTags)
    app.add_middleware(GZipMiddleware, minimum_size=_MIN_PACKED_BYTES, compresslevel=_PACKING)
    app.add_middleware(Limits)
    app.add_middleware(Heads)
    app.add_middleware(Visitors, hosts=hosts, origins=origins)
    # Outside the application, since not even its middleware sees the answer to an unexpected error.
    return SafeHeaders(with_cors(app, origins) if origins else app)


def api_description() -> dict[str, Any]:
    """Return the description of the API (OpenAPI), which is the same for every index."""
    return _with_routes(None).openapi()


def _with_routes(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None) -> FastAPI:
    app = FastAPI(
        title="esdedup",
        summary="Articles, one row for each cluster of near-duplicates, and who else published them.",
        description=api.DESCRIPTION,
        version="1",
        lifespan=lifespan,
        # These pages load scripts from other servers; `try_out` has one of our own.
        docs_url=None,
        redoc_url=None,
        # Clients that are generated name their functions so.
        generate_unique_id_function=lambda route: route.name,
    )
    for routes in (
        api,
        explanation,
        try_out,
        downloads,
        list_page,
        article_page,
        comparison_page,
        language_page,
    ):
        app.include_router(routes.router, dependencies=[Depends(_check_parameters)])
    description.correct(app.openapi())
    return app


async def _check_parameters(request: Request) -> None:
    """Refuse what would be silently left out.

    Pages, feeds and files ignore parameters that they do not have: those who share links add some.

    Raises:
        SettingError: A parameter is repeated that has one value, or unknown to an operation of the API.
    """
    given = request.query_params
    for name in given:
        if name not in REPEATABLE and len(given.getlist(name)) > 1:
            raise SettingError(f"{name} is given more than once; give it once")
    path = request.scope["route"].path
    operation = request.app.openapi()["paths"].get(path, {}).get(request.method.lower())
    if operation is None or not path.startswith(api.PREFIX):
        return
    known = [each["name"] for each in operation.get("parameters", [])]
    for name in given:
        if name not in known:
            raise SettingError(f"there is no parameter {name!r} here; there are {', '.join(known)}")

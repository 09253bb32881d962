"""The application: its routes, and what stands before them."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib import resources

from elasticsearch import AsyncElasticsearch
from fastapi import Depends, FastAPI, Request
from fastapi.staticfiles import StaticFiles
from starlette.types import ASGIApp

from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.reading.reader import AsyncReader
from esdedup.web import api, article_page, language_page, list_page
from esdedup.web.errors import handle_errors
from esdedup.web.guards import Limits, SafeHeaders, Visitors
from esdedup.web.marking import Marking
from esdedup.web.state import Site

# As often as Elasticsearch refreshes an index by itself: visitors who look up texts cost no more.
_REFRESH_INTERVAL_S = 1.0


def create_app(
    client: AsyncElasticsearch,
    index: str,
    *,
    fields: Fields | None = None,
    forest: str = DEFAULT_FOREST,
    profile: Profile = DEFAULT,
    pins: Pins = NO_PINS,
    hosts: Collection[str] = (),
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
    """

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        site.marking.begin()
        yield
        await site.marking.end()
        await client.close()

    app = FastAPI(
        title="esdedup",
        summary="Articles, one row for each cluster of near-duplicates, and who else published them.",
        description=api.DESCRIPTION,
        version="1",
        lifespan=closing,
        # These pages load scripts from other servers; openapi.json is served.
        docs_url=None,
        redoc_url=None,
    )
    reader = AsyncReader(
        client,
        fields=fields,
        forest=forest,
        profile=profile,
        pins=pins,
        refresh_interval_s=_REFRESH_INTERVAL_S,
    )
    app.state.site = site = Site(reader=reader, index=index, marking=Marking(reader))
    for routes in (api, list_page, article_page, language_page):
        app.include_router(routes.router, dependencies=[Depends(_check_given_once)])
    static = resources.files("esdedup.web") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    handle_errors(app)
    # The last one added comes first.
    app.add_middleware(Limits)
    app.add_middleware(Visitors, hosts=hosts)
    description = app.openapi()
    for path in description["paths"].values():
        for operation in path.values():
            # This application answers invalid parameters with 400.
            operation["responses"].pop("422", None)
    # Outside the application, since not even its middleware sees the answer to an unexpected error.
    return SafeHeaders(app)


async def _check_given_once(request: Request) -> None:
    """Refuse a parameter that is repeated: only one of its values would count.

    Raises:
        SettingError: A parameter is given more than once.
    """
    for name in request.query_params:
        if len(request.query_params.getlist(name)) > 1:
            raise SettingError(f"{name} is given more than once; give it once")

"""The application of the pages: routes and middleware."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from elasticsearch import AsyncElasticsearch
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.execute import AskedAsync
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.maintenance.editor import AsyncEditor
from esdedup.messages import translatable
from esdedup.origins import origin_of
from esdedup.reading.reader import REFRESH_INTERVAL_S, AsyncReader, asking_owner
from esdedup.serving.connections import BoundedConnection
from esdedup.serving.limits import Guard
from esdedup.times import zone_named
from esdedup.web import api, article_pages, downloads, editing, languages, list_page, try_out
from esdedup.web.api_app import add_layers, with_routes
from esdedup.web.context import Context, Marking
from esdedup.web.errors import error_answer
from esdedup.web.guards import HEADERS, MAX_ANSWER_S, with_headers

# This is added to the time limit for a response.
_MARGIN_S = 5.0
_PAGES = (try_out, downloads, list_page, article_pages, editing, languages)
_ROUTERS = [api.router, article_pages.api_router, editing.api_router, *(each.router for each in _PAGES)]


def create_app(
    client: AsyncElasticsearch,
    index: str,
    *,
    fields: Fields | None = None,
    forest: str | None = None,
    profile: Profile = DEFAULT,
    overrides: Overrides = NO_OVERRIDES,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    time_zone: str = "UTC",
    ask_owner: AskedAsync | None = None,
    editor_header: str | None = None,
    thumbnail_field: str | None = None,
) -> FastAPI:
    """Return an application that shows one index. Its links begin with the root path of the server.

    Args:
        client: Closed when the application stops.
        index: An index, alias or pattern.
        fields: The names of the articles' fields; by default the names that the index stores.
        forest: As for `AsyncReader`; used to look up texts, and to mark boilerplate in articles.
        profile: The forest's profile.
        overrides: The overrides of the process that feeds the forest.
        hosts: The host names that visitors may use, besides localhost and IP addresses.
        origins: The origins of other sites whose pages may read responses (CORS), such as
            ``https://desk.example``; ``*`` allows all.
        time_zone: The time zone for API clients, and for visitors whose browsers do not report one.
        ask_owner: Asks the forest's owner, if it is in this process, how it would assign a text.
        editor_header: The header in which a proxy names the editor who sends a request; the proxy must
            overwrite it in requests of other visitors. None disables editing.
        thumbnail_field: The articles' field with the address of a picture (https), which visitors' browsers
            load from the picture's server. None shows no pictures.

    Raises:
        SettingError: An origin is invalid, or there is no such time zone.
    """
    origins = [origin_of(each) for each in origins]

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        marking.begin()
        yield
        await marking.end()
        await client.close()

    app = with_routes(_ROUTERS, lifespan=closing)
    reader = AsyncReader(
        client,
        fields=fields,
        forest=forest,
        profile=profile,
        overrides=overrides,
        refresh_interval_s=REFRESH_INTERVAL_S,
    )
    if ask_owner is not None:
        reader = asking_owner(reader, ask_owner)
    stories = None if editor_header is None else AsyncEditor(client, forest=forest, fields=fields)
    marking, zone = Marking(reader), zone_named(time_zone)

    app.state.context_of = lambda request: Context(
        request=request,
        reader=reader,
        index=index,
        marking=marking,
        stories=stories,
        editor_header=editor_header,
        thumbnail_field=thumbnail_field,
        default_zone=zone,
    )
    static = resources.files("esdedup.web") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    add_layers(app)
    app.add_middleware(
        Guard,
        hosts=hosts,
        answer=error_answer,
        naming="`serve --allow-host NAME` adds a name",
        foreign=translatable("pages of other sites may only link to these pages"),
        origins=origins,
    )
    # These go outside of Starlette's own middleware, which answers after an unexpected error.
    outer = app.build_middleware_stack()
    if origins:
        # Let these pages read the responses to requests that carry no cookies or credentials.
        outer = CORSMiddleware(
            outer,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "If-None-Match"],
            expose_headers=["ETag", "Link", "Retry-After", "Content-Disposition"],
        )
    app.middleware_stack = with_headers(outer, has_thumbnails=thumbnail_field is not None)
    return app


def api_description() -> dict[str, Any]:
    """Return the description of the API (OpenAPI), which is the same for every index."""
    return with_routes(_ROUTERS).openapi()


class Visit(BoundedConnection):
    """A visitor's connection."""

    # Far below the usual limit on the open files of a process, 1,024.
    max_connections = 200
    max_request_s = 20.0
    max_answer_s = max_idle_s = MAX_ANSWER_S + _MARGIN_S
    error_headers = HEADERS

"""Assembles the sidecar's application; ARCHITECTURE.md describes how it handles a request."""

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from prometheus_client.exposition import choose_encoder
from pydantic import SecretStr
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.boilerplate.overrides import Overrides
from esdedup.elastic.article_indices import Articles
from esdedup.elastic.client import client_of, connect_async
from esdedup.errors import EsdedupError
from esdedup.fields import fields_given
from esdedup.ingest.owner import Owner, OwnerSettings
from esdedup.ingest.word_files import words_never_cut
from esdedup.reading.reader import REFRESH_INTERVAL_S, AsyncReader, asking_owner
from esdedup.serving.limits import Guard, Limits
from esdedup.serving.problems import Answer, Problem, handle_errors
from esdedup.sidecar import paths
from esdedup.sidecar.auth import CallerRefused, Rights, TokenGuard
from esdedup.sidecar.batcher import BatchLimits
from esdedup.sidecar.bulk import BulkRoute, refused_answer
from esdedup.sidecar.bulk_request import RequestRefused
from esdedup.sidecar.enrich_api import enrich_routes
from esdedup.sidecar.enrichment import Enrichment, Indices
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership, OwnerThread
from esdedup.sidecar.proxy import Proxy, UnreadWrites
from esdedup.sidecar.reading import PagesRoute, ReadingApi
from esdedup.sidecar.settings import Settings
from esdedup.sidecar.upstream import Upstream
from esdedup.sidecar.words_api import words_routes

log = logging.getLogger("esdedup")

OPENAPI_PATH = "/v1/openapi.json"
# Connections for the sidecar's own requests, in addition to the connections for callers' requests.
_OWN_CONNECTIONS = 8
# Timeout for Elasticsearch's response in readiness checks; shorter than the usual timeout of probes.
_ASK_S = 2.0


def create_app(
    upstream: Upstream,
    *,
    own: Sequence[APIRouter] = (),
    others: Sequence[BaseRoute] = (),
    alongside: Sequence[AbstractAsyncContextManager[object]] = (),
    answer: Answer = paths.answer,
) -> FastAPI:
    """Return the application: the routes of `own`, then `others`, then a proxy for all other requests.

    The context managers in `alongside` are entered at startup, after the upstream, and exited at shutdown.
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
        # FastAPI's documentation pages load scripts from other servers.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in own:
        app.include_router(router)
    endpoints = [route for router in own for route in router.routes]
    app.router.routes += [_NotServed(endpoints), *others, Proxy(upstream)]

    async def refuse(request: Request, error: Exception) -> Response:
        # Call `answer` even if its response is not used, since `answer` counts the problem.
        response = answer(request.scope, Problem.of_error(error))
        if paths.is_own(request.scope):
            return response
        assert isinstance(error, RequestRefused | CallerRefused)
        return error.as_elasticsearch() if isinstance(error, CallerRefused) else refused_answer(error)

    handle_errors(app, answer)
    app.add_exception_handler(RequestRefused, refuse)
    app.add_exception_handler(CallerRefused, refuse)
    return app


def health_routes(
    forest: str, ownership: Callable[[], Ownership], *, ask: Callable[[], Awaitable[object]], metrics: Metrics
) -> APIRouter:
    """Return the routes for health and metrics; `ask` sends Elasticsearch a small request."""
    router = APIRouter(tags=["health"])

    @router.get(paths.HEALTH)
    async def alive() -> JSONResponse:
        """Whether the process is alive."""
        return JSONResponse({"status": "alive"})

    @router.get(paths.READY, responses={503: {"description": "Articles cannot be accepted now."}})
    async def ready(request: Request) -> Response:
        """Whether articles are accepted: this process owns the forest, and Elasticsearch responds."""
        owned = ownership()
        # One sentence for each unmet condition.
        missing = []
        if not owned.is_owner:
            missing.append(
                f"this process does not own the forest {forest!r}: {owned.error or 'it is being opened'}"
            )
        elif owned.error is not None:
            missing.append(Problem.of_error(owned.error).detail)
        try:
            async with asyncio.timeout(_ASK_S):
                await ask()
        except TimeoutError:
            missing.append(f"Elasticsearch does not answer within {_ASK_S:.0f} seconds")
        except EsdedupError as error:
            missing.append(Problem.of_error(error).detail)
        owner = "this process" if owned.is_owner else getattr(owned.error, "owner", None)
        facts: dict[str, Any] = {"missing": missing, "forest": forest, "owner": owner and str(owner)}
        if owned.url is not None:
            facts["url"] = owned.url
        if not missing:
            return JSONResponse({"status": "ready", **facts})
        problem = Problem(
            status=503, kind="not_ready", detail="; ".join(missing), retry_after_s=1, facts=facts
        )
        return paths.answer(request.scope, problem)

    @router.get(paths.METRICS)
    async def exposed(request: Request) -> Response:
        """The metrics of the sidecar, for Prometheus."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.registry), media_type=content_type)

    return router


class _NotServed(BaseRoute):
    """Answers requests under the sidecar's own path that match none of its endpoints."""

    def __init__(self, endpoints: Sequence[BaseRoute]) -> None:
        self._endpoints = endpoints

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if paths.is_under(paths.V1, scope) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 405 with the endpoint's allowed methods, or 404 if there is no such endpoint."""
        methods = sorted(
            method
            for each in self._endpoints
            if each.matches(scope)[0] is not Match.NONE
            for method in getattr(each, "methods", None) or ()
        )
        if methods:
            detail = f"this endpoint accepts {' or '.join(methods)}, not {scope['method']:.20}"
            response = paths.answer(scope, Problem(status=405, kind="method_not_allowed", detail=detail))
            response.headers["Allow"] = ", ".join(methods)
        else:
            detail = "the endpoints are described in /v1/openapi.json"
            response = paths.answer(scope, Problem(status=404, kind="no_such_endpoint", detail=detail))
        await response(scope, receive, send)


def assemble(settings: Settings, *, port: int, metrics: Metrics | None = None) -> ASGIApp:
    """Return the application of a sidecar that listens on a port; raises `SettingError`."""
    profile, fields = settings.fingerprint_profile, fields_given(settings)
    for line in words_never_cut(profile):
        log.warning("%s", line)
    metrics = metrics or Metrics(settings.forest)
    upstream = Upstream(
        settings.urls,
        ca_certs=settings.ca_certs,
        max_connections=settings.max_requests + _OWN_CONNECTIONS,
        connect_timeout_s=settings.connect_timeout_s,
        read_timeout_s=settings.answer_timeout_s,
        metrics=metrics,
    )

    client = client_of(settings.url, **_login(settings))
    overrides = settings.overrides()
    owner = OwnerThread(
        Owner(
            client,
            _owner_settings(settings, overrides),
            forest=settings.forest,
            profile=profile,
            address=settings.reached_at(port),
            expires_at_once=True,
        ),
        forest=settings.forest,
        limits=BatchLimits(batch_articles=settings.batch_size, waiting_articles=settings.queue_articles),
        metrics=metrics,
    )
    # This client has no credentials: each request is sent with its caller's credentials.
    anyone = connect_async(settings.url, ca_certs=settings.ca_certs)
    reader = AsyncReader(
        anyone,
        fields=fields,
        forest=settings.forest,
        profile=profile,
        overrides=overrides,
        refresh_interval_s=REFRESH_INTERVAL_S,
    )
    api = ReadingApi(
        asking_owner(reader, owner.look_up), anyone, index=settings.pages_index, time_zone=settings.time_zone
    )
    pages = _pages(settings, overrides, owner)
    indices = Indices(Articles(client, fields=fields).find)
    enrichment = Enrichment(
        forest=settings.forest,
        find=indices.find,
        may_write=Rights(upstream.ask).may_write,
        assigning=owner.assigning,
        ownership=lambda: owner.ownership,
        metrics=metrics,
        unknown_index=settings.unknown_index,
    )
    answer = paths.counting(metrics)
    app = create_app(
        upstream,
        answer=answer,
        own=[
            health_routes(
                settings.forest,
                lambda: owner.ownership,
                # Any status means that the server answers, even if it requires credentials.
                ask=lambda: upstream.ask("HEAD", b"/"),
                metrics=metrics,
            ),
            enrich_routes(
                enrichment,
                learn=owner.learn,
                fields=fields,
                profile=profile.label,
                max_body_bytes=settings.max_body_bytes,
            ),
            words_routes(profile, max_body_bytes=settings.max_body_bytes),
        ],
        others=[
            *pages,
            api,
            BulkRoute(
                upstream,
                enrichment,
                max_body_bytes=settings.max_body_bytes,
                passes_rejected=settings.rejected == "pass",
            ),
            UnreadWrites(upstream, indices.find),
        ],
        alongside=[indices, owner, anyone, *(each.running() for each in pages)],
    )
    api.describe(app)
    return guarded(app, settings, answer, metrics)


def guarded(app: ASGIApp, settings: Settings, answer: Answer, metrics: Metrics) -> ASGIApp:
    """Return the application wrapped in the middleware that checks and limits requests."""
    most = settings.max_requests
    limited = Limits(
        app,
        answer=answer,
        max_requests=most,
        busy=Problem.of(429, "requests", f"{most:,} requests are in progress, which is the limit: try again"),
        timeout_s=settings.request_timeout_s + settings.answer_timeout_s,
        max_body_bytes=settings.max_body_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        # Health and metrics requests are exempt from limits.
        is_free=paths.is_watching,
        measured=lambda scope: metrics.request(paths.kind_of(scope)),
        on_held=metrics.bodies.inc,
    )
    return Guard(
        TokenGuard(limited, token=_secret_value(settings.token), answer=answer),
        hosts=settings.hosts,
        answer=answer,
        naming="allow it with --allow-host or ESDEDUP_SIDECAR_ALLOW_HOSTS",
        foreign="pages of other sites may not send requests",
        origins=settings.allow_origins,
        readable=f"{paths.PAGES}/",
        # Health checks may send any host name.
        is_open=paths.is_probe,
    )


def _login(settings: Settings) -> dict[str, Any]:
    password = _secret_value(settings.password)
    user = None if settings.user is None or password is None else (settings.user, password)
    return {"user": user, "api_key": _secret_value(settings.api_key), "ca_certs": settings.ca_certs}


def _secret_value(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _pages(settings: Settings, overrides: Overrides, owner: OwnerThread) -> list[PagesRoute]:
    """Return the route of the pages, if enabled; the pages use the sidecar's own credentials."""
    if not settings.pages or settings.pages_index is None:
        return []
    # Imported here, because the pages need the packages of the extra `serve`.
    from esdedup.web.app import create_app as create_pages

    app = create_pages(
        connect_async(settings.url, **_login(settings)),
        settings.pages_index,
        fields=fields_given(settings),
        forest=settings.forest,
        profile=settings.fingerprint_profile,
        overrides=overrides,
        hosts=settings.hosts,
        origins=settings.allow_origins,
        time_zone=settings.time_zone,
        ask_owner=owner.look_up,
    )
    return [PagesRoute(app)]


def _owner_settings(settings: Settings, overrides: Overrides) -> OwnerSettings:
    retention = None if (days := settings.retention_days) is None else timedelta(days=days)
    same = settings.model_dump(include={each.name for each in dataclasses.fields(OwnerSettings)})
    return OwnerSettings(retention=retention, overrides=overrides, **same)

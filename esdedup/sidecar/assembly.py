"""The sidecar with all its parts, made from its settings."""

import logging
from datetime import timedelta
from typing import Any

from pydantic import SecretStr
from starlette.types import ASGIApp

from esdedup.boilerplate.pins import Pins
from esdedup.elastic.article_indices import Articles
from esdedup.elastic.client import client_of, connect_async
from esdedup.fields import fields_given
from esdedup.ingest.learn import read_pins
from esdedup.ingest.owner import Owner
from esdedup.ingest.owner_settings import OwnerSettings
from esdedup.ingest.word_files import words_never_cut
from esdedup.reading.reader import AsyncReader, asking_owner
from esdedup.serving.errors import handle_errors
from esdedup.serving.guards import Guard
from esdedup.serving.limits import Limits
from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.app import PagesRoute, create_app
from esdedup.sidecar.enrich_api import enrich_routes
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.feeding import Feeding, Ownership
from esdedup.sidecar.guards import TokenGuard
from esdedup.sidecar.health import health_routes
from esdedup.sidecar.indices import PATH, ElasticAnswer, Indices, Rights
from esdedup.sidecar.intake import BatchBounds
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import PAGES, counting, is_probe, is_watching, kind_of
from esdedup.sidecar.reading_api import ReadingApi
from esdedup.sidecar.requests import Headers
from esdedup.sidecar.settings import Settings
from esdedup.sidecar.unread_writes import UnreadWrites
from esdedup.sidecar.upstream import Upstream
from esdedup.sidecar.writing import Writing

log = logging.getLogger("esdedup")

# Beside those for the requests of callers: for what the sidecar asks by itself.
_OWN_CONNECTIONS = 8
# As often as Elasticsearch refreshes an index by itself: looking up texts costs no more.
_REFRESH_INTERVAL_S = 1.0


def assemble(settings: Settings, *, port: int) -> ASGIApp:
    """Return the application behind all that stands before it. Nothing is sent yet.

    Args:
        settings: All of them.
        port: On which it listens.

    Raises:
        SettingError: A setting cannot be used.
    """
    profile, fields = settings.fingerprint_profile, fields_given(settings)
    for line in words_never_cut(profile):
        log.warning("%s", line)
    metrics = Metrics(settings.forest)
    upstream = Upstream(
        settings.urls,
        ca_certs=settings.ca_certs,
        max_connections=settings.max_requests + _OWN_CONNECTIONS,
        connect_timeout_s=settings.connect_timeout_s,
        read_timeout_s=settings.answer_timeout_s,
        metrics=metrics,
    )

    async def ask() -> None:
        # Whatever it answers: without credentials a secured one refuses.
        async with upstream.send("HEAD", b"/", ()):
            pass

    async def ask_rights(headers: Headers, body: bytes) -> ElasticAnswer:
        async with upstream.send("POST", PATH, headers, body) as given:
            return ElasticAnswer(given.status, given.headers, await given.read())

    def ownership() -> Ownership:
        return feeding.ownership

    client = client_of(settings.url, **_login(settings))
    pins = read_pins(settings.pins_file, keep_boilerplate=settings.keep_boilerplate)
    feeding = Feeding(
        Owner(
            client,
            _owner_settings(settings, pins),
            forest=settings.forest,
            profile=profile,
            address=settings.reached_at(port),
            expires_at_once=True,
        ),
        forest=settings.forest,
        bounds=BatchBounds(batch_articles=settings.batch_size, waiting_articles=settings.queue_articles),
        metrics=metrics,
    )
    reading = connect_async(settings.url, ca_certs=settings.ca_certs)
    reader = AsyncReader(
        reading,
        fields=fields,
        forest=settings.forest,
        profile=profile,
        pins=pins,
        refresh_interval_s=_REFRESH_INTERVAL_S,
    )
    reader = asking_owner(reader, feeding.look_up)
    api = ReadingApi(reader, reading, index=settings.pages_index)
    pages = _pages(settings, pins, feeding)
    indices = Indices(Articles(client, fields=fields).find)
    enrichment = Enrichment(
        forest=settings.forest,
        find=indices.find,
        may_write=Rights(ask_rights).may_write,
        assigning=feeding.assigning,
        metrics=metrics,
    )
    app = create_app(
        upstream,
        own=[
            health_routes(forest=settings.forest, ownership=ownership, ask=ask, metrics=metrics),
            enrich_routes(
                enrichment,
                fields=fields,
                forest=settings.forest,
                profile=profile.label,
                ownership=ownership,
                max_body_bytes=settings.max_body_bytes,
            ),
        ],
        others=[
            *pages,
            api,
            Writing(
                upstream,
                enrichment,
                ownership=ownership,
                metrics=metrics,
                max_body_bytes=settings.max_body_bytes,
                passes_rejected=settings.rejected == "pass",
            ),
            UnreadWrites(upstream, indices.find),
        ],
        alongside=[indices, feeding, reading, *(each.running() for each in pages)],
    )
    api.describe(app)
    handle_errors(app, answer := counting(metrics))
    return guarded(app, settings, answer, metrics)


def guarded(app: ASGIApp, settings: Settings, answer: Answer, metrics: Metrics) -> ASGIApp:
    """Return an application behind all that stands before it.

    Args:
        app: The application.
        settings: All of them.
        answer: Gives a refusal its shape.
        metrics: Measures requests.
    """
    most = settings.max_requests
    limited = Limits(
        app,
        answer=answer,
        max_requests=most,
        busy=Problem.of(429, "requests", f"{most:,} requests are in progress, and no more may be: try again"),
        timeout_s=settings.request_timeout_s + settings.answer_timeout_s,
        max_body_bytes=settings.max_body_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        # Those who ask how the sidecar is are always answered.
        is_free=is_watching,
        measured=lambda scope: metrics.request(kind_of(scope)),
        on_held=metrics.bodies.inc,
    )
    return Guard(
        TokenGuard(limited, token=_shown(settings.token), answer=answer),
        hosts=settings.hosts,
        answer=answer,
        naming="--allow-host or ESDEDUP_SIDECAR_ALLOW_HOSTS names it",
        foreign="pages of other sites may not send requests",
        origins=settings.allow_origins,
        readable=f"{PAGES}/",
        # Health checks name us as they like.
        is_open=is_probe,
    )


def _login(settings: Settings) -> dict[str, Any]:
    """Return as whom a client asks for what the sidecar itself reads and writes, and whom it trusts."""
    password = _shown(settings.password)
    user = None if settings.user is None or password is None else (settings.user, password)
    return {"user": user, "api_key": _shown(settings.api_key), "ca_certs": settings.ca_certs}


def _shown(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _pages(settings: Settings, pins: Pins, feeding: Feeding) -> list[PagesRoute]:
    """Return the route of the pages, which are read with the sidecar's own credentials, if they are shown."""
    if not settings.pages or settings.pages_index is None:
        return []
    # The pages need the extra `serve`.
    from esdedup.web import create_app as create_pages

    app = create_pages(
        connect_async(settings.url, **_login(settings)),
        settings.pages_index,
        fields=fields_given(settings),
        forest=settings.forest,
        profile=settings.fingerprint_profile,
        pins=pins,
        hosts=settings.hosts,
        origins=settings.allow_origins,
        ask_owner=feeding.look_up,
    )
    return [PagesRoute(app)]


def _owner_settings(settings: Settings, pins: Pins) -> OwnerSettings:
    days = settings.retention_days
    return OwnerSettings(
        retention=None if days is None else timedelta(days=days),
        lease_ttl_s=settings.lease_ttl_s,
        lookup=settings.lookup,
        memory_bytes=settings.memory_bytes,
        most_plausible_leaves=settings.most_plausible_leaves,
        pins=pins,
        workers=settings.workers,
        expire_every_s=settings.expire_every_s,
    )

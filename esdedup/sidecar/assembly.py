"""The sidecar with all its parts, made from its settings."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from elasticsearch import AsyncElasticsearch, Elasticsearch
from starlette.types import ASGIApp

from esdedup.boilerplate.pins import Pins
from esdedup.elastic.article_indices import Articles
from esdedup.elastic.client import client_of, connect_async
from esdedup.forest import Aging
from esdedup.ingest.assigner import Assigner
from esdedup.ingest.held_forest import HeldForest
from esdedup.ingest.pins_file import read_pins
from esdedup.ingest.word_files import words_never_cut
from esdedup.reading.reader import AsyncReader
from esdedup.sidecar.app import create_app
from esdedup.sidecar.assign_api import assign_routes
from esdedup.sidecar.bounds import Bounds, BoundsApart
from esdedup.sidecar.cluster_api import cluster_routes
from esdedup.sidecar.decide_api import decide_routes
from esdedup.sidecar.enrich_api import enrich_routes
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.feeding import Feeding
from esdedup.sidecar.forests import Forests
from esdedup.sidecar.guards import Callers
from esdedup.sidecar.headers import Headers
from esdedup.sidecar.health import Readiness, health_routes
from esdedup.sidecar.indices import Indices
from esdedup.sidecar.intake import BatchBounds
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_endpoints import handle_errors
from esdedup.sidecar.pages_route import PagesRoute
from esdedup.sidecar.peers import Peers
from esdedup.sidecar.rights import PATH, Answer, Rights
from esdedup.sidecar.server import run
from esdedup.sidecar.settings import Settings
from esdedup.sidecar.upstream import Upstream
from esdedup.sidecar.writing import Writing

log = logging.getLogger("esdedup")

_Client = TypeVar("_Client", Elasticsearch, AsyncElasticsearch)

# Beside those for the requests of callers: for what the sidecar asks by itself.
_OWN_CONNECTIONS = 8
# As often as Elasticsearch refreshes an index by itself: looking up texts costs no more.
_REFRESH_INTERVAL_S = 1.0


def serve(settings: Settings, *, on_listening: Callable[[str], None] = lambda _: None) -> None:
    """Take requests until told to end, then answer those that were accepted.

    Args:
        settings: All of them.
        on_listening: Called with the address, as soon as it can be reached.

    Raises:
        SettingError: A setting cannot be used.
    """
    run(lambda port: assemble(settings, port=port), settings, on_listening=on_listening)


def assemble(settings: Settings, *, port: int) -> ASGIApp:
    """Return the application behind all that stands before it. Nothing is sent yet.

    Args:
        settings: All of them.
        port: On which it listens.

    Raises:
        SettingError: A setting cannot be used.
    """
    for line in words_never_cut(settings.fingerprint_profile()):
        log.warning("%s", line)
    choice = settings.forest_choice
    metrics = Metrics(choice.names)
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

    async def ask_rights(headers: Headers, body: bytes) -> Answer:
        async with upstream.send("POST", PATH, headers, body) as given:
            return Answer(given.status, given.headers, await given.read())

    client = _client(client_of, settings)
    pins = read_pins(settings.pins_file, keep_boilerplate=settings.keep_boilerplate)
    feedings = {
        name: _feeding(client, name, settings, pins, metrics, address=settings.reached_at(port))
        for name in choice.names
    }
    peers = Peers(
        token=settings.read_token(),
        ca_certs=settings.peer_ca_certs,
        connect_timeout_s=settings.connect_timeout_s,
        max_connections=settings.max_requests,
        max_body_bytes=settings.max_body_bytes,
        metrics=metrics,
    )
    forests = Forests(feedings, choice=choice, peers=None if settings.standby_refuses else peers)
    reading = connect_async(settings.url, ca_certs=settings.ca_certs)
    pages = _pages(settings, pins)
    indices = Indices(Articles(client, fields=settings.fields()).find)
    enrichment = Enrichment(find=indices.find, may_write=Rights(ask_rights).may_write, assign=forests.assign)
    readiness = Readiness(
        ownerships=lambda: forests.ownerships,
        ask=ask,
        ask_owner=None if settings.standby_refuses else peers.check,
    )
    app = create_app(
        upstream,
        own=[
            health_routes(readiness=readiness, metrics=metrics),
            decide_routes(forests, max_body_bytes=settings.max_body_bytes),
            enrich_routes(
                enrichment, fields=settings.fields(), metrics=metrics, max_body_bytes=settings.max_body_bytes
            ),
            assign_routes(
                feedings,
                profile=settings.fingerprint_profile(),
                metrics=metrics,
                max_body_bytes=settings.max_body_bytes,
                relay=forests.relay,
            ),
            cluster_routes(
                {name: _reader(reading, name, settings, pins) for name in choice.names},
                reading,
                choice=choice,
                index=settings.pages_index,
                max_body_bytes=settings.max_body_bytes,
            ),
        ],
        writes=[
            *pages,
            Writing(upstream, enrichment, metrics=metrics, max_body_bytes=settings.max_body_bytes),
        ],
        alongside=[indices, peers, *feedings.values(), forests, reading, *(each.running() for each in pages)],
    )
    handle_errors(app, metrics)
    callers, peers_bounds = (
        Bounds(
            app,
            max_requests=settings.max_requests,
            max_body_bytes=settings.max_body_bytes,
            max_bodies_bytes=settings.max_bodies_bytes,
            timeout_s=settings.request_timeout_s + settings.answer_timeout_s,
            metrics=metrics,
        )
        for _ in range(2)
    )
    bounded = BoundsApart(callers=callers, peers=peers_bounds)
    return Callers(
        bounded,
        hosts=settings.hosts,
        token=settings.read_token(),
        metrics=metrics,
        origins=settings.allow_origins,
    )


def _client(make: Callable[..., _Client], settings: Settings) -> _Client:
    """Return the client for what the sidecar itself reads and writes."""
    password = settings.read_password()
    user = None if settings.user is None or password is None else (settings.user, password)
    return make(settings.url, user=user, api_key=settings.read_api_key(), ca_certs=settings.ca_certs)


def _pages(settings: Settings, pins: Pins) -> list[PagesRoute]:
    """Return the route of the pages, which are read with the sidecar's own credentials, if they are shown."""
    if not settings.pages or settings.pages_index is None:
        return []
    # The pages need the extra `serve`.
    from esdedup.web import create_app as create_pages

    app = create_pages(
        _client(connect_async, settings),
        settings.pages_index,
        fields=settings.fields(),
        forest=settings.forest,
        profile=settings.fingerprint_profile(),
        pins=pins,
        hosts=settings.hosts,
        origins=settings.allow_origins,
    )
    return [PagesRoute(app)]


def _reader(client: AsyncElasticsearch, forest: str, settings: Settings, pins: Pins) -> AsyncReader:
    return AsyncReader(
        client,
        fields=settings.fields(),
        forest=forest,
        profile=settings.fingerprint_profile(),
        pins=pins,
        refresh_interval_s=_REFRESH_INTERVAL_S,
    )


def _feeding(
    client: Elasticsearch, name: str, settings: Settings, pins: Pins, metrics: Metrics, *, address: str | None
) -> Feeding:
    profile = settings.fingerprint_profile()
    days = settings.retention_days
    held = HeldForest(
        client,
        name=name,
        profile=profile,
        aging=None if days is None else Aging.of(retention=timedelta(days=days)),
        wait_s=0.0,
        lease_ttl_s=settings.lease_ttl_s,
        memory_bytes=settings.memory_bytes // len(settings.forest_choice.names),
        address=address,
    )
    assigner = Assigner(
        profile,
        pins=pins,
        most_plausible_leaves=settings.most_plausible_leaves,
        threads=settings.workers,
    )
    bounds = BatchBounds(
        batch_articles=settings.batch_size,
        batch_wait_s=settings.batch_wait_ms / 1000,
        waiting_articles=settings.queue_articles,
    )
    return Feeding(
        held,
        assigner,
        name=name,
        bounds=bounds,
        expire_every_s=settings.expire_every_s,
        metrics=metrics,
    )

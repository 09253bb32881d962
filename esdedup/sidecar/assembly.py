"""The sidecar with all its parts, made from its settings."""

from starlette.types import ASGIApp

from esdedup.sidecar.app import create_app
from esdedup.sidecar.bounds import Bounds
from esdedup.sidecar.guards import Callers
from esdedup.sidecar.health import Readiness, health_routes
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.server import run
from esdedup.sidecar.settings import Settings
from esdedup.sidecar.upstream import Upstream

# Beside those for the requests of callers: for what the sidecar asks by itself.
_OWN_CONNECTIONS = 8


def serve(settings: Settings) -> None:
    """Take requests until told to end, then answer those that were accepted.

    Raises:
        SettingError: A setting cannot be used.
    """
    run(assemble(settings), settings)


def assemble(settings: Settings) -> ASGIApp:
    """Return the application behind all that stands before it. Nothing is sent yet.

    Raises:
        SettingError: A setting cannot be used.
    """
    metrics = Metrics()
    upstream = Upstream(
        settings.urls,
        ca_certs=settings.ca_certs,
        max_connections=settings.max_requests + _OWN_CONNECTIONS,
        connect_timeout_s=settings.connect_timeout_s,
        read_timeout_s=settings.answer_timeout_s,
    )

    async def ask() -> None:
        # Whatever it answers: without credentials a secured one refuses.
        async with upstream.send("HEAD", b"/", ()):
            pass

    readiness = Readiness(ownership=Ownership, ask=ask)
    app = create_app(upstream, own=[health_routes(missing=readiness.missing, metrics=metrics)])
    bounded = Bounds(
        app,
        max_requests=settings.max_requests,
        max_body_bytes=settings.max_body_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        timeout_s=settings.request_timeout_s + settings.answer_timeout_s,
        metrics=metrics,
    )
    return Callers(bounded, hosts=settings.hosts, token=settings.read_token(), metrics=metrics)

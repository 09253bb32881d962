"""Runs the sidecar on a socket until a signal stops it."""

import asyncio
import contextlib
import gc
import logging
import ssl
import time
from collections import deque
from datetime import timedelta
from typing import ClassVar

import uvicorn
from starlette.types import ASGIApp

from esdedup.errors import SettingError
from esdedup.ingest.settings import names_of
from esdedup.serving.connections import BoundedConnection, Server, address_of, listen
from esdedup.sidecar.app import assemble
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.paths import HEALTH, METRICS, READY
from esdedup.sidecar.settings import Settings

log = logging.getLogger("esdedup")

# How much longer the server's timeout is than the application's, so that the application responds first.
_MARGIN_S = 5.0


def serve(settings: Settings) -> None:
    """Serve requests until SIGTERM or SIGINT."""
    logging.getLogger("esdedup").setLevel(settings.log_level.upper())
    metrics, started_s = Metrics(settings.forest), time.monotonic()
    with contextlib.suppress(KeyboardInterrupt), listen(settings.host, settings.port) as listening:
        app = assemble(settings, port=listening.getsockname()[1], metrics=metrics)
        server = Server(config(app, settings))
        address = address_of(listening, scheme="https" if settings.tls_cert_file else "http")
        log.info("listening at %s for articles of the forest %s", address, settings.forest)
        if not settings.is_loopback and settings.tls_cert_file is None:
            log.warning(
                "other machines reach %s without encryption: articles and tokens can be intercepted unless a "
                "proxy in front of it encrypts; set a certificate with %s",
                address,
                names_of(Settings, "tls_cert_file", "tls_key_file"),
            )
        # Exempt all imported modules from garbage collection, whose pauses would delay batches.
        gc.freeze()
        server.run(sockets=[listening])
        if not server.started:
            # The application could not start; uvicorn's command exits with the same status.
            raise SystemExit(3)
    ran = timedelta(seconds=round(time.monotonic() - started_s))
    log.info("stopped after %s: %s", ran, metrics.summary)


def config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration; raises `SettingError` if the certificate cannot be used."""
    result = uvicorn.Config(
        app,
        http=_connection(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # The proxy forwards Elasticsearch's own headers.
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(settings.keep_alive_s),
        timeout_graceful_shutdown=int(settings.shutdown_timeout_s),
        ssl_certfile=settings.tls_cert_file,
        ssl_keyfile=settings.tls_key_file,
    )
    try:
        result.load()
    except (ssl.SSLError, OSError) as error:
        raise SettingError(
            f"the certificate cannot be used: {error}; {names_of(Settings, 'tls_cert_file', 'tls_key_file')} "
            "must name a certificate and its key, both PEM"
        ) from error
    return result


def _connection(settings: Settings) -> type[asyncio.Protocol]:

    class Connection(BoundedConnection):
        max_connections = settings.max_connections
        probes = tuple(f"GET {path} ".encode() for path in (HEALTH, READY, METRICS))
        spare: ClassVar[deque[BoundedConnection]] = deque()
        max_head_s = settings.header_timeout_s
        max_request_s = settings.request_timeout_s
        max_answer_s = settings.answer_timeout_s + _MARGIN_S
        max_idle_s = settings.keep_alive_s + settings.header_timeout_s

    return Connection

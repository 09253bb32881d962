"""Which pages of other sites may read answers: those of origins that are named (CORS)."""

from collections.abc import Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

_PREFLIGHT_S = 600


def with_cors(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Return an application that tells browsers that pages of some origins may read what it answers.

    They send no cookies or credentials: those belong to the proxy that checks them.
    """
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Content-Type", "If-None-Match"],
        expose_headers=["ETag", "Link", "Retry-After", "Content-Disposition"],
        max_age=_PREFLIGHT_S,
    )

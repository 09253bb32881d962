"""Which pages of other sites may read answers: those of origins that are named (CORS)."""

import re
from collections.abc import Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from esdedup.errors import SettingError

ANY = "*"
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")
_PREFLIGHT_S = 600


def origin_of(given: str) -> str:
    """Return an origin as browsers write it.

    Raises:
        SettingError: It is none.
    """
    origin = given.strip().lower().removesuffix("/")
    if origin != ANY and not _ORIGIN.fullmatch(origin):
        raise SettingError(
            f"{given!r} is not an origin: write it as https://desk.example or "
            "http://localhost:5173, or * for all"
        )
    # Browsers leave out the usual port.
    return re.sub(r"^(http:.*):80$|^(https:.*):443$", lambda found: found[1] or found[2], origin)


def is_allowed(origin: str | None, origins: Collection[str]) -> bool:
    """Return whether the page that sends a request is of an origin that may."""
    return origin is not None and (origin in origins or ANY in origins)


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

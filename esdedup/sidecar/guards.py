"""Who may send requests: callers that name this server, are no page of another site, and have the token."""

import secrets
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.origins import is_foreign, is_known_host
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import METRICS, PAGES, is_probe
from esdedup.sidecar.problems import Refused, answer, problem_of
from esdedup.web.cors import is_allowed

TOKEN_HEADER = "X-Esdedup-Token"  # noqa: S105 - its name
"""Elasticsearch needs ``Authorization`` for itself; clients in every language send headers of any name."""
_RAW_TOKEN_HEADER = TOKEN_HEADER.lower().encode()
_BEARER = b"bearer "


class Callers:
    """Refuses requests for another host, from pages of other sites, and without the token.

    A page of another site can make a browser send bodies of the type ``text/plain``, which bulk requests may
    have, to any address that the browser reaches, this machine's included.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        token: str | None,
        metrics: Metrics,
        origins: Collection[str] = (),
    ) -> None:
        """Guard an application.

        Args:
            app: The application.
            hosts: The names under which it is reached, besides localhost and addresses; in lower case.
            token: What callers must send; None if nothing.
            metrics: Counts what is refused.
            origins: The other sites whose pages may read what the pages show, see `esdedup.web.cors`.
        """
        self._app = app
        self._hosts = frozenset(hosts)
        self._token = None if token is None else token.encode()
        self._metrics = metrics
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the request is refused."""
        if scope["type"] == "http":
            try:
                self._check_origin(scope)
                self._check_token(scope)
            except Refused as refused:
                self._metrics.refused(refused.reason)
                await answer(scope, problem_of(refused))(scope, receive, send)
                return
            # It is for us: neither Elasticsearch nor its logs shall see it.
            kept = [header for header in scope["headers"] if header[0] != _RAW_TOKEN_HEADER]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)

    def _check_origin(self, scope: Scope) -> None:
        if is_probe(scope["method"], scope["path"]):
            # Health checks name us as they like.
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_known_host(host, self._hosts):
            raise Refused(
                f"this server is not known as {host!r}; --allow-host or ESDEDUP_SIDECAR_ALLOW_HOSTS names it",
                status=421,
                reason="host",
            )
        if scope["path"].startswith(f"{PAGES}/") and is_allowed(headers.get("origin"), self._origins):
            return
        if is_foreign(
            scope["method"],
            host=host,
            origin=headers.get("origin"),
            site=headers.get("sec-fetch-site"),
            goal=headers.get("sec-fetch-dest"),
        ):
            raise Refused("pages of other sites may not send requests", status=403, reason="foreign_page")

    def _check_token(self, scope: Scope) -> None:
        if self._token is None or is_probe(scope["method"], scope["path"]):
            return
        sent = [value for name, value in scope["headers"] if name == _RAW_TOKEN_HEADER]
        if scope["path"] == METRICS:
            # Elasticsearch needs nothing here, and Prometheus can send this in all its versions.
            sent += [
                value[len(_BEARER) :]
                for name, value in scope["headers"]
                if name == b"authorization" and value[: len(_BEARER)].lower() == _BEARER
            ]
        # All are compared, so that the time tells nothing.
        matches = [secrets.compare_digest(each.strip(), self._token) for each in sent]
        if not any(matches):
            wrong = "is not the token of this server" if sent else "is missing"
            raise Refused(f"the header {TOKEN_HEADER} {wrong}", status=401, reason="token")

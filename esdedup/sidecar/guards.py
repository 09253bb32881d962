"""The token that callers must send, where there is one."""

import secrets

from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.own_paths import METRICS, is_probe

TOKEN_HEADER = "X-Esdedup-Token"  # noqa: S105 - its name
"""Elasticsearch needs ``Authorization`` for itself; clients in every language send headers of any name."""
_RAW_TOKEN_HEADER = TOKEN_HEADER.lower().encode()
_BEARER = b"bearer "


class TokenGuard:
    """Refuses requests without the token, and takes it out of all others."""

    def __init__(self, app: ASGIApp, *, token: str | None, answer: Answer) -> None:
        """Guard an application.

        Args:
            app: The application.
            token: What callers must send; None if nothing.
            answer: Gives a refusal its shape.
        """
        self._app = app
        self._token = None if token is None else token.encode()
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the request is refused."""
        app = self._app
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            # It is for us: neither Elasticsearch nor its logs shall see it.
            kept = [header for header in scope["headers"] if header[0] != _RAW_TOKEN_HEADER]
            scope = {**scope, "headers": kept}
            if refusal is not None:
                app = self._answer(scope, refusal)
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        if self._token is None or is_probe(scope):
            return None
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
        if any(matches):
            return None
        wrong = "is not the token of this server" if sent else "is missing"
        return Problem.of(401, "token", f"the header {TOKEN_HEADER} {wrong}")

"""Checks callers: the token of the sidecar, and their privilege in Elasticsearch to write to an index.

The forest is written with the sidecar's own credentials. So before articles are assigned, Elasticsearch must
confirm that the caller may write to the index; privileges are cached for a short time.
"""

import dataclasses
import hashlib
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.elastic.client import CREDENTIALS
from esdedup.errors import Refused, ServerUnavailable
from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.paths import METRICS, is_probe
from esdedup.sidecar.upstream import Header, Headers, WholeAnswer, end_to_end

TOKEN_HEADER = "X-Esdedup-Token"  # noqa: S105 - its name
"""A header of our own, since callers authenticate to Elasticsearch with ``Authorization``."""
_RAW_TOKEN_HEADER = TOKEN_HEADER.lower().encode()
_BEARER = b"bearer "


@dataclasses.dataclass(eq=False)
class TokenGuard:
    """If a token is set, refuses requests without it; removes the token's header from all requests."""

    app: ASGIApp
    _: dataclasses.KW_ONLY
    token: str | None
    answer: Answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or answer with a refusal."""
        app = self.app
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            # Hide the token from Elasticsearch and its logs.
            kept = [header for header in scope["headers"] if header[0] != _RAW_TOKEN_HEADER]
            scope = {**scope, "headers": kept}
            if refusal is not None:
                app = self.answer(scope, refusal)
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        if self.token is None or is_probe(scope):
            return None
        sent = [value for name, value in scope["headers"] if name == _RAW_TOKEN_HEADER]
        if scope["path"] == METRICS:
            # Metrics are never forwarded, and every version of Prometheus can send a bearer token.
            sent += [
                value[len(_BEARER) :]
                for name, value in scope["headers"]
                if name == b"authorization" and value[: len(_BEARER)].lower() == _BEARER
            ]
        # Compare every token in constant time.
        matches = [secrets.compare_digest(each.strip(), self.token.encode()) for each in sent]
        if any(matches):
            return None
        wrong = "is not the token of this server" if sent else "is missing"
        return Problem.of(401, "token", f"the header {TOKEN_HEADER} {wrong}")


# Elasticsearch's endpoint for the privileges of the caller.
_PATH = b"/_security/user/_has_privileges"
# The smallest privilege that allows writing an article.
_PRIVILEGE = "create_doc"
# How long a privilege is cached. Refusals are not cached, since the privilege may be granted soon.
_GRANTED_S = 60.0
# The names of headers with credentials, as in ASGI scopes.
_CREDENTIALS = frozenset(name.encode() for name in CREDENTIALS)
# The maximum number of cached pairs of caller and index, limited since clients choose the index names.
_MOST_KNOWN = 10_000
# Parts of the error messages that Elasticsearch returns if its security features are missing or disabled.
_UNSECURED = (b"no handler found for uri", b"must be explicitly enabled", b"Invalid index name [_security]")


def caller_of(headers: Headers) -> bytes:
    """Identify the caller by a digest of the credentials in a request's headers."""
    return hashlib.sha256(repr(sorted(_credentials(headers))).encode()).digest()


def _credentials(headers: Headers) -> list[Header]:
    return [(name, value) for name, value in headers if name.lower() in _CREDENTIALS]


class CallerRefused(Refused):
    """Elasticsearch does not know the caller; `answer` is its response."""

    def __init__(self, answer: WholeAnswer) -> None:
        reason = f"Elasticsearch refuses the caller with status {answer.status}"
        super().__init__(reason, status=answer.status, kind="caller_refused")
        self.answer = answer

    def as_elasticsearch(self) -> Response:
        """Return Elasticsearch's own response."""
        response = Response(self.answer.body, self.answer.status)
        response.raw_headers = end_to_end(self.answer.headers)
        return response


class Rights:
    """Looks up which callers may write to which indices, and caches granted privileges for a short time."""

    def __init__(self, ask: Callable[[str, bytes, Headers, bytes], Awaitable[WholeAnswer]]) -> None:
        """Send requests with `ask`, which is `Upstream.ask`."""
        self._ask = ask
        # The time at which a cached privilege expires, by caller and index.
        self._granted: dict[tuple[bytes, str], float] = {}
        self._unsecured_until_s = -math.inf

    async def may_write(self, headers: Headers, indices: Collection[str]) -> Mapping[str, bool]:
        """Return for each index whether the caller with these headers may write to it.

        Raises `CallerRefused` if Elasticsearch does not know the caller, or `ServerUnavailable` if it fails.
        """
        now_s = time.monotonic()
        if now_s < self._unsecured_until_s:
            return dict.fromkeys(indices, True)
        caller = caller_of(headers)
        unknown = [each for each in indices if self._granted.get((caller, each), -math.inf) < now_s]
        granted = dict.fromkeys(indices, True)
        if unknown:
            granted |= await self._granted_now(_credentials(headers), unknown)
            if len(self._granted) + len(unknown) > _MOST_KNOWN:
                self._granted.clear()
            self._granted |= {(caller, each): now_s + _GRANTED_S for each in unknown if granted[each]}
        return granted

    async def _granted_now(self, credentials: Headers, indices: Sequence[str]) -> Mapping[str, bool]:
        answer = await self._ask(
            "POST",
            _PATH,
            [*credentials, (b"content-type", b"application/json")],
            orjson.dumps({"index": [{"names": indices, "privileges": [_PRIVILEGE]}]}),
        )
        if answer.status in {401, 403}:
            raise CallerRefused(answer)
        if answer.status == 200:
            found = orjson.loads(answer.body)["index"]
            return {each: bool(found.get(each, {}).get(_PRIVILEGE)) for each in indices}
        if any(each in answer.body for each in _UNSECURED):
            self._unsecured_until_s = time.monotonic() + _GRANTED_S
            return dict.fromkeys(indices, True)
        raise ServerUnavailable(
            f"Elasticsearch does not report who may write to {', '.join(indices)}: it answered with status "
            f"{answer.status}",
            status=answer.status,
        )

"""What callers are told when something fails: one tree of errors, in two shapes.

On Elasticsearch's paths an answer has the shape of Elasticsearch's errors, which its clients read; on our own
that of problem details (RFC 9457). Both name the same status, kind and detail.
"""

import dataclasses
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Scope

from esdedup.errors import (
    ArticleNotFound,
    ArticleRejected,
    EsdedupError,
    ForestBusy,
    ForestError,
    ForestLost,
    IndexBlocked,
    IndexNotReady,
    ProcessDied,
    ServerError,
    ServerUnavailable,
    SettingError,
)
from esdedup.sidecar.intake import Overloaded, ShuttingDown
from esdedup.sidecar.metrics import Metrics, Refusal
from esdedup.sidecar.own_paths import is_own
from esdedup.sidecar.owner import NotOwner, OwnerFailed
from esdedup.sidecar.refusals import RequestRefused
from esdedup.sidecar.rights import CallerMayNot, CallerRefused

PROBLEM_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:esdedup:problem:"
_JSON_TYPE = "application/json"
# Errors quote names that callers chose.
_MAX_DETAIL = 1_000
# In half a second the owner decides some ten thousand articles; a standby takes over within the lease.
_RETRY_AFTER_S = 1


class Refused(EsdedupError):
    """A request is refused before anybody looks at what it asks for.

    Attributes:
        status: The HTTP status.
        reason: Why, as metrics count it.
    """

    def __init__(self, message: str, *, status: int, reason: Refusal) -> None:
        super().__init__(message)
        self.status = status
        self.reason: Refusal = reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """What an answer says of an error."""

    status: int
    # By which programs tell errors apart: lower case with underscores, never changed.
    kind: str
    detail: str
    # After how many seconds to try again; None if that is no use.
    retry_after_s: int | None = None
    # Further members of problem details.
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def title(self) -> str:
        """The kind in words."""
        return self.kind.replace("_", " ").capitalize()

    def body(self) -> dict[str, Any]:
        """Return the problem details."""
        return {
            "type": f"{TYPE_PREFIX}{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.facts,
        }


# The first kind of error that fits counts.
_KNOWN: list[tuple[type[EsdedupError], int, str]] = [
    (Overloaded, 429, "queue_full"),
    (ShuttingDown, 503, "shutting_down"),
    (NotOwner, 503, "not_owner"),
    (ForestBusy, 503, "not_owner"),
    (ForestLost, 503, "not_owner"),
    (ProcessDied, 503, "process_died"),
    (ArticleRejected, 400, "article_rejected"),
    (ArticleNotFound, 404, "article_not_found"),
    (CallerMayNot, 403, "not_allowed"),
    (IndexBlocked, 503, "index_blocked"),
    (IndexNotReady, 409, "index_not_ready"),
    (ForestError, 503, "forest_not_usable"),
    (SettingError, 400, "invalid_request"),
    (ServerUnavailable, 502, "elasticsearch_unavailable"),
    (ServerError, 502, "elasticsearch_error"),
]
_TEMPORARY = frozenset((429, 502, 503))


def problem_of(error: BaseException) -> Problem:
    """Return what is said of an error; of one that is none of ours, only that it happened."""
    if isinstance(error, Refused):
        return _problem(error.status, error.reason, str(error))
    if isinstance(error, RequestRefused):
        return _problem(error.status, error.type, error.reason)
    if isinstance(error, OwnerFailed):
        return _problem(error.status, error.kind, str(error))
    if isinstance(error, CallerRefused):
        return _problem(error.answer.status, "caller_refused", str(error))
    for known, status, kind in _KNOWN:
        if isinstance(error, known):
            return _problem(status, kind, str(error))
    if isinstance(error, EsdedupError):
        return _problem(500, "failed", str(error))
    return _problem(500, "internal_error", "internal error; the sidecar's log has the details")


def answer(scope: Scope, problem: Problem) -> Response:
    """Return the answer to a request, in the shape of its path."""
    if is_own(scope["method"], scope["path"]):
        response = Response(orjson.dumps(problem.body()), problem.status, media_type=PROBLEM_TYPE)
    else:
        refusal = RequestRefused(problem.status, f"esdedup_{problem.kind}", problem.detail)
        response = Response(refusal.body(), problem.status, media_type=_JSON_TYPE)
    if problem.retry_after_s is not None:
        response.headers["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 401:
        is_ours = problem.kind == "token"
        response.headers["WWW-Authenticate"] = (
            'X-Esdedup-Token realm="esdedup"' if is_ours else 'Basic realm="Elasticsearch"'
        )
    return response


def count_refusal(error: EsdedupError, metrics: Metrics) -> None:
    """Count a request whose articles were not taken."""
    if isinstance(error, Overloaded):
        metrics.refused("queue")
    if isinstance(error, NotOwner | OwnerFailed):
        metrics.refused("not_owner")
    if isinstance(error, RequestRefused) and error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # Too large when unpacked, or with too many lines.
        metrics.refused("body_too_large")


def _problem(status: int, kind: str, detail: str) -> Problem:
    # A name may have half a character in it, which UTF-8 cannot encode.
    readable = detail.encode(errors="replace").decode()
    return Problem(
        status=status,
        kind=kind,
        detail=readable if len(readable) <= _MAX_DETAIL else f"{readable[:_MAX_DETAIL]}…",
        retry_after_s=_RETRY_AFTER_S if status in _TEMPORARY else None,
    )

"""What callers are told when something fails: one tree of errors, in two shapes.

On Elasticsearch's paths an answer has the shape of Elasticsearch's errors, which its clients read; on our own
that of problem details (RFC 9457). Both name the same status, kind and detail.
"""

from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Scope

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Problem
from esdedup.sidecar.feeding import NotOwner
from esdedup.sidecar.intake import Overloaded, ShuttingDown
from esdedup.sidecar.metrics import Metrics, Refusal
from esdedup.sidecar.own_paths import is_own
from esdedup.sidecar.refusals import RequestRefused
from esdedup.sidecar.rights import CallerMayNot, CallerRefused

_JSON_TYPE = "application/json"


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


# The first kind of error that fits counts; those of the library follow.
_KNOWN: list[tuple[type[EsdedupError], int, str]] = [
    (Overloaded, 429, "queue_full"),
    (ShuttingDown, 503, "shutting_down"),
    (NotOwner, 503, "not_owner"),
    (CallerMayNot, 403, "not_allowed"),
]


def problem_of(error: BaseException) -> Problem:
    """Return what is said of an error; of one that is none of ours, only that it happened."""
    if isinstance(error, Refused):
        return Problem.of(error.status, error.reason, str(error))
    if isinstance(error, RequestRefused):
        return Problem.of(error.status, error.type, error.reason)
    if isinstance(error, CallerRefused):
        return Problem.of(error.answer.status, "caller_refused", str(error))
    for known, status, kind in _KNOWN:
        if isinstance(error, known):
            return Problem.of(status, kind, str(error))
    return Problem.of_error(error)


def answer(scope: Scope, problem: Problem) -> Response:
    """Return the answer to a request, in the shape of its path."""
    if is_own(scope["method"], scope["path"]):
        response = problem.response()
    else:
        refusal = RequestRefused(problem.status, f"esdedup_{problem.kind}", problem.detail)
        response = Response(refusal.body(), problem.status, problem.headers, media_type=_JSON_TYPE)
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
    if isinstance(error, NotOwner):
        metrics.refused("not_owner")
    if isinstance(error, RequestRefused) and error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # Too large when unpacked, or with too many lines.
        metrics.refused("body_too_large")

"""What callers are told when something fails: one kind of problem, in two shapes.

On Elasticsearch's paths an answer has the shape of Elasticsearch's errors, which its clients read; on our own
that of problem details (RFC 9457). Both name the same status, kind and detail.
"""

from starlette.responses import Response
from starlette.types import Scope

from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import is_own
from esdedup.sidecar.refusals import error_body


def answer(scope: Scope, problem: Problem) -> Response:
    """Return the answer to a request, in the shape of its path."""
    if is_own(scope["method"], scope["path"]):
        return problem.response()
    body = error_body(problem.status, f"esdedup_{problem.kind}", problem.detail)
    return Response(body, problem.status, problem.headers, media_type="application/json")


def counting(metrics: Metrics) -> Answer:
    """Return what answers likewise, and counts what is refused."""

    def counted(scope: Scope, problem: Problem) -> Response:
        metrics.refused(problem.kind)
        return answer(scope, problem)

    return counted

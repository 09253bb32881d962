"""Which requests are the sidecar's own; all others are Elasticsearch's. Errors have the shape of each.

Elasticsearch's paths begin with an underscore or with the name of an index, and an index may be called
``metrics`` or ``v1``. So own paths are exact ones, for exact methods.

On Elasticsearch's paths an answer to what failed has the shape of Elasticsearch's errors, which its clients
read; on our own that of problem details (RFC 9457). Both name the same status, kind and detail.
"""

from starlette.responses import Response
from starlette.types import Scope

from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.metrics import Metrics, RequestKind
from esdedup.sidecar.refusals import error_body

HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
V1 = "/v1/"
API = "/api/v1/"
PAGES = "/pages"
_DOCUMENTS = ("_doc", "_create", "_update")


def is_probe(scope: Scope) -> bool:
    """Return whether a request asks if the sidecar lives and is ready; anybody may."""
    return scope["method"] == "GET" and scope["path"] in {HEALTH, READY}


def is_watching(scope: Scope) -> bool:
    """Return whether a request asks how the sidecar is, which is answered however much is going on."""
    return is_probe(scope) or (scope["method"] == "GET" and scope["path"] == METRICS)


def is_own(scope: Scope) -> bool:
    """Return whether a request is for the sidecar itself."""
    return is_watching(scope) or is_under(V1, scope) or is_under(API, scope)


def is_under(beginning: str, scope: Scope) -> bool:
    """Return whether a path is ours, with or without an endpoint; Elasticsearch has none like it."""
    path: str = scope["path"]
    return path.startswith(beginning) and path[len(beginning) :][:1] not in {"", "_"}


def kind_of(scope: Scope) -> RequestKind:
    """Return under which kind a request is counted."""
    method, path = scope["method"], scope["path"]
    if is_own(scope):
        return "own"
    if method in {"GET", "HEAD", "DELETE"}:
        return "other"
    parts = path.strip("/").split("/")
    if parts[-1] == "_bulk":
        return "bulk"
    return "document" if len(parts) > 1 and parts[1] in _DOCUMENTS else "other"


def answer(scope: Scope, problem: Problem) -> Response:
    """Return the answer to a request, in the shape of its path."""
    if is_own(scope):
        return problem.response()
    body = error_body(problem.status, f"esdedup_{problem.kind}", problem.detail)
    return Response(body, problem.status, problem.headers, media_type="application/json")


def counting(metrics: Metrics) -> Answer:
    """Return what answers likewise, and counts what is refused."""

    def counted(scope: Scope, problem: Problem) -> Response:
        metrics.refused(problem.kind)
        return answer(scope, problem)

    return counted

"""Classifies requests by path: requests to the sidecar itself, writes of articles, and all other requests.

An index may be called ``metrics`` or ``v1``, so the sidecar's own paths and methods must match exactly.
On these paths, errors are problem details (RFC 9457); on all other paths, they have Elasticsearch's format.

Elasticsearch splits a path before decoding it: `%2F` is part of an id, and `%5Fdoc` does not mean `_doc`.
"""

import dataclasses
import re
from collections.abc import Collection
from urllib.parse import quote, unquote, unquote_plus, unquote_to_bytes

import orjson
from starlette.responses import Response
from starlette.types import Scope

from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.metrics import Metrics, RequestKind

HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
V1 = "/v1/"
API = "/api/v1/"
PAGES = "/pages"


def is_probe(scope: Scope) -> bool:
    """Return whether this is a health or readiness check, which needs no token."""
    return scope["method"] == "GET" and scope["path"] in {HEALTH, READY}


def is_watching(scope: Scope) -> bool:
    """Return whether this is a health or metrics request, which is exempt from limits."""
    return is_probe(scope) or (scope["method"] == "GET" and scope["path"] == METRICS)


def is_own(scope: Scope) -> bool:
    """Return whether a request is for the sidecar itself."""
    return is_watching(scope) or is_under(V1, scope) or is_under(API, scope)


def is_under(beginning: str, scope: Scope) -> bool:
    """Return whether a request's path is under `beginning`; Elasticsearch has no paths of this form."""
    path: str = scope["path"]
    return path.startswith(beginning) and path[len(beginning) :][:1] not in {"", "_"}


DOCUMENTS = {
    b"_doc": ("index", frozenset(("POST", "PUT"))),
    b"_create": ("create", frozenset(("POST", "PUT"))),
    b"_update": ("update", frozenset(("POST",))),
}
"""Operation and methods of the endpoints for one document. Only a POST to `_doc` may lack the id."""
BULK = b"_bulk"
BULK_METHODS = frozenset(("POST", "PUT"))
_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PARAMETERS = re.compile(rb"[&;]")


@dataclasses.dataclass(frozen=True)
class ArticlePath:
    """The path of a request that writes articles."""

    # "bulk", or the operation on a document: "index", "create" or "update".
    operation: str
    # None if the path of a bulk request names no index.
    index: str | None
    # None if Elasticsearch generates the id, and for bulk requests.
    id: str | None


def article_path(method: str, raw_path: bytes) -> ArticlePath | None:
    """Parse the path of a request that writes articles; return None for other requests and invalid paths."""
    path = raw_path.partition(b"#")[0]
    # The leading slash is optional, and trailing slashes are ignored.
    parts = path.removeprefix(b"/").rstrip(b"/").split(b"/")
    if _NO_ESCAPE.search(path) or len(parts) > 3:
        return None
    if parts[-1] == BULK and len(parts) < 3:
        if method not in BULK_METHODS:
            return None
        return ArticlePath("bulk", unquote(parts[0]) if len(parts) == 2 else None, None)
    if len(parts) < 2 or parts[1] not in DOCUMENTS or not all(parts):
        return None
    operation, methods = DOCUMENTS[parts[1]]
    if method not in methods:
        return None
    if len(parts) == 2 and (method, operation) != ("POST", "index"):
        return None
    return ArticlePath(operation, unquote(parts[0]), unquote(parts[2]) if len(parts) == 3 else None)


def parts_of(raw_path: bytes) -> list[bytes]:
    """Return the non-empty parts of a path. The first part is decoded: it may name an index."""
    parts = [part for part in raw_path.partition(b"#")[0].split(b"/") if part]
    return [unquote_to_bytes(part) for part in parts[:1]] + parts[1:]


def kind_of(scope: Scope) -> RequestKind:
    """Return the kind by which the metrics count a request."""
    if is_own(scope):
        return "own"
    path = article_path(scope["method"], scope["raw_path"])
    if path is None:
        return "other"
    return "bulk" if path.operation == "bulk" else "document"


def routed(query: bytes, routing: str) -> bytes:
    """Return a query string with `routing`, which replaces any routing that the string contains."""
    return b"&".join((*without(query, {"routing"}), b"routing=" + quote(routing, safe="").encode()))


def without(query: bytes, names: Collection[str]) -> list[bytes]:
    """Return the parameters of a query string, still encoded, except the parameters in `names`."""
    given = _PARAMETERS.split(query.partition(b"#")[0])
    return [each for each in given if each and _name(each) not in names]


def values_of(query: bytes) -> dict[str, str]:
    """Return the decoded parameters of a query string; of a repeated parameter, the last value counts."""
    parts = [each.partition(b"=") for each in _PARAMETERS.split(query.partition(b"#")[0])]
    return {_name(name): unquote_plus(value.decode(errors="replace")) for name, _, value in parts}


def _name(parameter: bytes) -> str:
    return unquote_plus(parameter.partition(b"=")[0].decode(errors="replace"))


def error_body(status: int, kind: str, reason: str) -> bytes:
    """Return the body of an error in Elasticsearch's format."""
    # The reason may contain a lone surrogate, which UTF-8 cannot encode.
    cause = {"type": kind, "reason": reason.encode(errors="replace").decode()}
    return orjson.dumps({"error": {"root_cause": [cause], **cause}, "status": status})


def answer(scope: Scope, problem: Problem) -> Response:
    """Return the response for a problem, in the format that the request's path requires."""
    if is_own(scope):
        return problem.response()
    body = error_body(problem.status, f"esdedup_{problem.kind}", problem.detail)
    return Response(body, problem.status, problem.headers, media_type="application/json")


def counting(metrics: Metrics) -> Answer:
    """Return a version of `answer` that also counts refusals."""

    def counted(scope: Scope, problem: Problem) -> Response:
        metrics.refused(problem.kind)
        return answer(scope, problem)

    return counted

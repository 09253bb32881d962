"""Which requests are the sidecar's own; all others are Elasticsearch's.

Elasticsearch's paths begin with an underscore or with the name of an index, and an index may be called
``metrics`` or ``v1``. So own paths are exact ones, for exact methods.
"""

from starlette.types import Scope

from esdedup.sidecar.metrics import RequestKind

HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
V1 = "/v1/"
API = "/api/v1/"
PAGES = "/pages"
_DOCUMENTS = ("_doc", "_create", "_update")


def is_probe(method: str, path: str) -> bool:
    """Return whether a request asks if the sidecar lives and is ready; anybody may."""
    return method == "GET" and path in {HEALTH, READY}


def is_watching(method: str, path: str) -> bool:
    """Return whether a request asks how the sidecar is, which is answered however much is going on."""
    return is_probe(method, path) or (method == "GET" and path == METRICS)


def is_own(method: str, path: str) -> bool:
    """Return whether a request is for the sidecar itself."""
    return is_watching(method, path) or is_under_v1(path) or is_under_api(path)


def is_under_v1(path: str) -> bool:
    """Return whether a path is the sidecar's, with or without an endpoint; Elasticsearch has none like it."""
    return path.startswith(V1) and path[len(V1) :][:1] not in {"", "_"}


def is_under_api(path: str) -> bool:
    """Return whether a path is that of the API for reading, with or without an endpoint; likewise."""
    return path.startswith(API) and path[len(API) :][:1] not in {"", "_"}


def kind_of(scope: Scope) -> RequestKind:
    """Return under which kind a request is counted."""
    method, path = scope["method"], scope["path"]
    if is_own(method, path):
        return "own"
    if method in {"GET", "HEAD", "DELETE"}:
        return "other"
    parts = path.strip("/").split("/")
    if parts[-1] == "_bulk":
        return "bulk"
    return "document" if len(parts) > 1 and parts[1] in _DOCUMENTS else "other"

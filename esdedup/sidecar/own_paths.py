"""Which requests are the sidecar's own; all others are Elasticsearch's. Errors have the shape of each.

An index may be called ``metrics`` or ``v1``, so own paths are exact ones, for exact methods. Errors there are
problem details (RFC 9457), elsewhere those of Elasticsearch with the same status, kind and detail.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Answer, Problem
from esdedup.sidecar.bulk_request import article_path
from esdedup.sidecar.metrics import Metrics, RequestKind
from esdedup.sidecar.owner import Ownership


def error_body(status: int, kind: str, reason: str) -> bytes:
    """Return an error as Elasticsearch writes one."""
    # The reason may quote a lone surrogate, which UTF-8 cannot encode.
    cause = {"type": kind, "reason": reason.encode(errors="replace").decode()}
    return orjson.dumps({"error": {"root_cause": [cause], **cause}, "status": status})


HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
V1 = "/v1/"
API = "/api/v1/"
PAGES = "/pages"


def is_probe(scope: Scope) -> bool:
    """Return whether a request asks if the sidecar lives and is ready; anybody may."""
    return scope["method"] == "GET" and scope["path"] in {HEALTH, READY}


def is_watching(scope: Scope) -> bool:
    """Return whether this is a health or metrics request, which is exempt from limits."""
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
    if is_own(scope):
        return "own"
    path = article_path(scope["method"], scope["raw_path"])
    if path is None:
        return "other"
    return "bulk" if path.operation == "bulk" else "document"


def answer(scope: Scope, problem: Problem) -> Response:
    """Return the answer to a request, in the shape of its path."""
    if is_own(scope):
        return problem.response()
    body = error_body(problem.status, f"esdedup_{problem.kind}", problem.detail)
    return Response(body, problem.status, problem.headers, media_type="application/json")


# Shorter than the usual timeout of probes.
_ASK_S = 2.0


def health_routes(
    forest: str, ownership: Callable[[], Ownership], *, ask: Callable[[], Awaitable[object]], metrics: Metrics
) -> APIRouter:
    """Return the routes for health and metrics; `ask` sends Elasticsearch a small request."""
    router = APIRouter(tags=["health"])

    @router.get(HEALTH)
    async def alive() -> JSONResponse:
        """Whether the process answers at all."""
        return JSONResponse({"status": "alive"})

    @router.get(READY, responses={503: {"description": "Articles cannot be taken now."}})
    async def ready(request: Request) -> Response:
        """Whether articles can be taken: this process can write the forest, and Elasticsearch answers."""
        owned = ownership()
        # A sentence for each thing that is missing.
        missing = []
        if not owned.is_owner:
            missing.append(
                f"this process does not own the forest {forest!r}: {owned.error or 'it is being taken'}"
            )
        elif owned.error is not None:
            missing.append(Problem.of_error(owned.error).detail)
        try:
            async with asyncio.timeout(_ASK_S):
                await ask()
        except TimeoutError:
            missing.append(f"Elasticsearch does not answer within {_ASK_S:.0f} seconds")
        except EsdedupError as error:
            missing.append(Problem.of_error(error).detail)
        owner = "this process" if owned.is_owner else getattr(owned.error, "owner", None)
        facts: dict[str, Any] = {"missing": missing, "forest": forest, "owner": owner and str(owner)}
        if owned.url is not None:
            facts["url"] = owned.url
        if not missing:
            return JSONResponse({"status": "ready", **facts})
        problem = Problem(
            status=503, kind="not_ready", detail="; ".join(missing), retry_after_s=1, facts=facts
        )
        return answer(request.scope, problem)

    @router.get(METRICS)
    async def exposed(request: Request) -> Response:
        """What happens in the sidecar in figures, for Prometheus."""
        body, content_type = metrics.exposed(request.headers.get("accept", ""))
        return Response(body, media_type=content_type)

    return router


def counting(metrics: Metrics) -> Answer:
    """Return an `answer` that also counts refusals."""

    def counted(scope: Scope, problem: Problem) -> Response:
        metrics.refused(problem.kind)
        return answer(scope, problem)

    return counted

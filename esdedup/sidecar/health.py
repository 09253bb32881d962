"""Whether the sidecar lives, and whether it can take articles; and its metrics."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Problem
from esdedup.sidecar.feeding import Ownership
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import HEALTH, METRICS, READY, answer

# Less than probes usually wait.
_ASK_S = 2.0


async def _silent(asking: Awaitable[object]) -> str | None:
    """Return that Elasticsearch does not answer; None if it does."""
    try:
        async with asyncio.timeout(_ASK_S):
            await asking
    except TimeoutError:
        return f"Elasticsearch does not answer within {_ASK_S:.0f} seconds"
    except EsdedupError as error:
        return Problem.of_error(error).detail
    return None


def _owned(name: str, ownership: Ownership) -> dict[str, Any]:
    if ownership.is_owner:
        return {"forest": name, "owner": "this process"}
    owner = getattr(ownership.reason, "owner", None)
    at = {} if ownership.url is None else {"url": ownership.url}
    return {"forest": name, "owner": None if owner is None else str(owner)} | at


def health_routes(
    *,
    forest: str,
    ownership: Callable[[], Ownership],
    ask: Callable[[], Awaitable[object]],
    metrics: Metrics,
) -> APIRouter:
    """Return the routes.

    Args:
        forest: The name of the forest.
        ownership: Returns whether this process owns it.
        ask: Asks Elasticsearch something small; raises an `EsdedupError` if it does not answer.
        metrics: What is shown.
    """
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
                f"this process does not own the forest {forest!r}: {owned.reason or 'it is being taken'}"
            )
        if owned.failure is not None:
            missing.append(Problem.of_error(owned.failure).detail)
        if (silent := await _silent(ask())) is not None:
            missing.append(silent)
        facts = {"missing": missing, **_owned(forest, owned)}
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

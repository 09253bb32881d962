"""Whether the sidecar lives, and whether it can take articles; and its metrics."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from esdedup.errors import EsdedupError
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import HEALTH, METRICS, READY
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.problems import Problem, answer, problem_of

# Less than probes usually wait.
_ASK_S = 2.0


class Readiness:
    """What is missing before articles can be taken."""

    def __init__(self, *, ownership: Callable[[], Ownership], ask: Callable[[], Awaitable[object]]) -> None:
        """Look at nothing yet.

        Args:
            ownership: Returns whether this process owns the forest.
            ask: Asks Elasticsearch something small; raises an `EsdedupError` if it does not answer.
        """
        self._ownership = ownership
        self._ask = ask

    async def missing(self) -> Sequence[str]:
        """Return a sentence for each thing that is missing."""
        return [sentence for sentence in (self._owner(), await self._elasticsearch()) if sentence]

    def _owner(self) -> str | None:
        ownership = self._ownership()
        if ownership.is_owner:
            return None
        return f"this process does not own the forest: {ownership.reason or 'it is being taken'}"

    async def _elasticsearch(self) -> str | None:
        try:
            async with asyncio.timeout(_ASK_S):
                await self._ask()
        except TimeoutError:
            return f"Elasticsearch does not answer within {_ASK_S:.0f} seconds"
        except EsdedupError as error:
            return problem_of(error).detail
        return None


def health_routes(*, missing: Callable[[], Awaitable[Sequence[str]]], metrics: Metrics) -> APIRouter:
    """Return the routes.

    Args:
        missing: Returns what is missing before articles can be taken, a sentence each.
        metrics: What is shown.
    """
    router = APIRouter(tags=["health"])

    @router.get(HEALTH)
    async def alive() -> JSONResponse:
        """Whether the process answers at all."""
        return JSONResponse({"status": "alive"})

    @router.get(READY, responses={503: {"description": "Articles cannot be taken now."}})
    async def ready(request: Request) -> Response:
        """Whether articles can be taken: the forest is owned, and Elasticsearch answers."""
        lacking = list(await missing())
        if not lacking:
            return JSONResponse({"status": "ready"})
        problem = Problem(
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            kind="not_ready",
            detail="; ".join(lacking),
            retry_after_s=1,
            facts={"missing": lacking},
        )
        return answer(request.scope, problem)

    @router.get(METRICS)
    async def exposed(request: Request) -> Response:
        """What happens in the sidecar in figures, for Prometheus."""
        body, content_type = metrics.exposed(request.headers.get("accept", ""))
        return Response(body, media_type=content_type)

    return router

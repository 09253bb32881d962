"""Whether the sidecar lives, and whether it can take articles; and its metrics."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Problem
from esdedup.sidecar.feeding import Ownership
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import HEALTH, METRICS, READY
from esdedup.sidecar.problems import answer

# Less than probes usually wait.
_ASK_S = 2.0


class Readiness:
    """What is missing before articles can be taken, and who owns the forest."""

    def __init__(
        self,
        *,
        forest: str,
        ownership: Callable[[], Ownership],
        ask: Callable[[], Awaitable[object]],
    ) -> None:
        """Look at nothing yet.

        Args:
            forest: The name of the forest.
            ownership: Returns whether this process owns it.
            ask: Asks Elasticsearch something small; raises an `EsdedupError` if it does not answer.
        """
        self._forest = forest
        self._ownership = ownership
        self._ask = ask

    async def look(self) -> "Looked":
        """Look who owns the forest, and whether Elasticsearch answers."""
        ownership = self._ownership()
        missing = []
        if not ownership.is_owner:
            why = ownership.reason or "it is being taken"
            missing.append(f"this process does not own the forest {self._forest!r}: {why}")
        if (silent := await _silent("Elasticsearch", self._ask())) is not None:
            missing.append(silent)
        return Looked(missing, _owned(self._forest, ownership))


@dataclasses.dataclass(frozen=True)
class Looked:
    """Whether articles can be taken."""

    # A sentence for each thing that is missing.
    missing: list[str]
    # Who owns the forest.
    forest: dict[str, Any]


async def _silent(who: str, asking: Awaitable[object]) -> str | None:
    """Return that somebody does not answer; None if he does."""
    try:
        async with asyncio.timeout(_ASK_S):
            await asking
    except TimeoutError:
        return f"{who} does not answer within {_ASK_S:.0f} seconds"
    except EsdedupError as error:
        return Problem.of_error(error).detail
    return None


def _owned(name: str, ownership: Ownership) -> dict[str, Any]:
    if ownership.is_owner:
        return {"forest": name, "owner": "this process"}
    owner = getattr(ownership.reason, "owner", None)
    at = {} if ownership.url is None else {"url": ownership.url}
    return {"forest": name, "owner": None if owner is None else str(owner)} | at


def health_routes(*, readiness: Readiness, metrics: Metrics) -> APIRouter:
    """Return the routes.

    Args:
        readiness: Says what is missing before articles can be taken.
        metrics: What is shown.
    """
    router = APIRouter(tags=["health"])

    @router.get(HEALTH)
    async def alive() -> JSONResponse:
        """Whether the process answers at all."""
        return JSONResponse({"status": "alive"})

    @router.get(READY, responses={503: {"description": "Articles cannot be taken now."}})
    async def ready(request: Request) -> Response:
        """Whether articles can be taken: this process owns the forest, and Elasticsearch answers."""
        looked = await readiness.look()
        facts = {"missing": looked.missing, **looked.forest}
        if not looked.missing:
            return JSONResponse({"status": "ready", **facts})
        problem = Problem(
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            kind="not_ready",
            detail="; ".join(looked.missing),
            retry_after_s=1,
            facts=facts,
        )
        return answer(request.scope, problem)

    @router.get(METRICS)
    async def exposed(request: Request) -> Response:
        """What happens in the sidecar in figures, for Prometheus."""
        body, content_type = metrics.exposed(request.headers.get("accept", ""))
        return Response(body, media_type=content_type)

    return router

"""Whether the sidecar lives, and whether it can take articles; and its metrics."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Problem
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import HEALTH, METRICS, READY
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.problems import answer, problem_of

# Less than probes usually wait.
_ASK_S = 2.0


class Readiness:
    """What is missing before articles can be taken, and who owns the forests."""

    def __init__(
        self,
        *,
        ownerships: Callable[[], Mapping[str, Ownership]],
        ask: Callable[[], Awaitable[object]],
        ask_owner: Callable[[str, str], Awaitable[object]] | None,
    ) -> None:
        """Look at nothing yet.

        Args:
            ownerships: Returns whether this process owns each forest, by name.
            ask: Asks Elasticsearch something small; raises an `EsdedupError` if it does not answer.
            ask_owner: The same for the owner of a forest, by its address and the name of the forest; None: a
                standby refuses articles.
        """
        self._ownerships = ownerships
        self._ask = ask
        self._ask_owner = ask_owner

    async def look(self) -> "Looked":
        """Look who owns the forests, and who answers."""
        ownerships = self._ownerships()
        # An owner of several is asked about one of them.
        asked = {each.url: name for name, each in ownerships.items() if self._ask_owner and each.url}
        silent = await asyncio.gather(*(self._silent_owner(url, name) for url, name in asked.items()))
        missing = _missing_owners(ownerships, dict(zip(asked, silent, strict=True)))
        without = await _silent("Elasticsearch", self._ask())
        return Looked(
            # Where one of several forests is reached, not all articles need to wait.
            is_ready=without is None and (not ownerships or len(missing) < len(ownerships)),
            missing=[*dict.fromkeys(missing), *([] if without is None else [without])],
            forests=[_owned(name, each) for name, each in ownerships.items()],
        )

    async def _silent_owner(self, url: str, forest: str) -> str | None:
        assert self._ask_owner is not None
        return await _silent(f"the sidecar at {url}, which owns a forest,", self._ask_owner(url, forest))


@dataclasses.dataclass(frozen=True)
class Looked:
    """Whether articles can be taken."""

    is_ready: bool
    # A sentence for each thing that is missing.
    missing: list[str]
    # Who owns each forest.
    forests: list[dict[str, Any]]


def _missing_owners(ownerships: Mapping[str, Ownership], silent: Mapping[str, str | None]) -> list[str]:
    """Return a sentence for each forest whose owner is not reached.

    Args:
        ownerships: By the names of the forests.
        silent: By the addresses of the owners that were asked: what was wrong, None if they have answered.
    """
    sentences = []
    for name, ownership in ownerships.items():
        if ownership.is_owner:
            continue
        if ownership.url is None or ownership.url not in silent:
            why = ownership.reason or "it is being taken"
            sentences.append(f"this process does not own the forest {name!r}: {why}")
        elif (sentence := silent[ownership.url]) is not None:
            sentences.append(sentence)
    return sentences


async def _silent(who: str, asking: Awaitable[object]) -> str | None:
    """Return that somebody does not answer; None if he does."""
    try:
        async with asyncio.timeout(_ASK_S):
            await asking
    except TimeoutError:
        return f"{who} does not answer within {_ASK_S:.0f} seconds"
    except EsdedupError as error:
        return problem_of(error).detail
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
        """Whether articles can be taken: each forest's owner is reached, and Elasticsearch answers."""
        looked = await readiness.look()
        facts = {"missing": looked.missing, "forests": looked.forests}
        if looked.is_ready:
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

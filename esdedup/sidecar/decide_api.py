"""What other sidecars ask for: decisions for articles of a forest that this one owns, or that forest.

No part of the sidecar's description: only sidecars of the same version ask here.
"""

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from esdedup.sidecar.decided_form import ToDecide, ToRelease, written_decisions
from esdedup.sidecar.forests import Forests
from esdedup.sidecar.own_endpoints import json_route
from esdedup.sidecar.own_paths import DECIDE, RELEASE


def decide_routes(forests: Forests, *, max_body_bytes: int) -> APIRouter:
    """Return the routes.

    Args:
        forests: Those of this sidecar.
        max_body_bytes: Of a body that is unpacked.
    """
    router = APIRouter(route_class=json_route(max_body_bytes=max_body_bytes))

    @router.post(DECIDE, include_in_schema=False)
    async def decide_articles(given: ToDecide) -> Response:
        decided = await forests.decide(given.forest, [each.article() for each in given.articles])
        return Response(await asyncio.to_thread(written_decisions, decided), media_type="application/json")

    @router.post(RELEASE, include_in_schema=False)
    async def release_forest(given: ToRelease) -> dict[str, bool]:
        return {"released": await forests.release(given.forest, asker_owns=given.owned)}

    return router

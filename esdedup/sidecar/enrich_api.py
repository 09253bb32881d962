"""Articles in, articles with their roots out, for pipelines that write to Elasticsearch by themselves."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from esdedup.elastic.article_indices import WritableIndex
from esdedup.fields import Fields
from esdedup.serving.problems import Problem, described
from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.enrichment import Changed, Enrichment, Outcome, Rejected, count_articles
from esdedup.sidecar.headers import Headers
from esdedup.sidecar.json_splice import elements, members
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_endpoints import json_route
from esdedup.sidecar.problems import answer

_JSON = "application/json"
_ARTICLE: dict[str, Any] = {
    "_id": "wire-17",
    "title": "Harbour council votes for a second ferry",
    "text": "The harbour council voted on Monday to …",
    "published_at": "2026-09-07T21:32:00Z",
}
_ENRICHED: dict[str, Any] = _ARTICLE | {
    "dedup": {
        "root": "122c0d63bb65dc118aafa28e66b57fce",
        "seq": 4711,
        "seen": 1788816720000,
        "published": 1788816720000,
        "length": 1893,
        "partition": 17,
        "profile": "verified-3",
        "fingerprint": "19dfa27dbd6f2cbbb1a0a5a7a1f4ee53",
    }
}
_REJECTED: dict[str, Any] = {
    "error": {
        "type": "urn:esdedup:problem:article_rejected",
        "title": "Article rejected",
        "status": 400,
        "detail": "action 2: has no field 'text', or it is null",
    }
}
_INDEX = (
    "The index that the articles will be written to, which was set up. It names their fields, and the caller "
    "must be allowed to write to it. Without it they have the sidecar's names of fields, or the usual ones."
)


class ToEnrich(BaseModel):
    """Articles without roots."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"index": "news", "articles": [_ARTICLE]}]}
    )

    index: Annotated[str | None, Field(description=_INDEX)] = None
    articles: Annotated[
        list[Any],
        Field(
            description="In the order in which they arrive. `_id` of an article is the id that it will have.",
            json_schema_extra={"items": {"type": "object"}},
        ),
    ]


class Enriched(BaseModel):
    """The same articles with their roots."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"articles": [_ENRICHED, _REJECTED], "rejected": 1}]}
    )

    articles: Annotated[
        list[dict[str, Any]],
        Field(
            description="In the same order, each as it was sent, with the dedup object. In the place of one "
            "that was rejected stands an object with `error` alone: problem details."
        ),
    ]
    rejected: Annotated[int, Field(description="How many were rejected.")]


_ERRORS = described(
    s400="The request cannot be read, or the index can have no such name.",
    s401="Elasticsearch does not know the caller; or the token of the sidecar is missing.",
    s403="The caller may not write to the index.",
    s409="The index was not set up.",
    s413="The body is too large.",
    s415="The body is not JSON.",
    s429="Too many articles wait; send the same again after the seconds in `Retry-After`.",
    s502="Elasticsearch does not answer.",
    s503="The process that owns the forest is not reached; `detail` names it. Send the same again after the "
    "seconds in `Retry-After`.",
)


def enrich_routes(
    enrichment: Enrichment, *, fields: Fields | None, metrics: Metrics, max_body_bytes: int
) -> APIRouter:
    """Return the routes.

    Args:
        enrichment: Assigns the articles.
        fields: The names of the articles' fields where no index is named; None: the usual ones.
        metrics: Counts articles.
        max_body_bytes: Of a body that is unpacked.
    """
    router = APIRouter(
        prefix="/v1/enrich",
        tags=["enrich"],
        route_class=json_route(max_body_bytes=max_body_bytes),
        responses=_ERRORS,
    )
    unplaced = WritableIndex(fields=fields or Fields())

    async def enrich(
        sources: Sequence[bytes], documents: Sequence[Any], *, name: str | None, headers: Headers
    ) -> list[bytes | Rejected]:
        index = unplaced if name is None else await enrichment.writable(name, headers=headers)
        items = [
            _item(source, document, index=name, position=at)
            for at, (source, document) in enumerate(zip(sources, documents, strict=True), start=1)
        ]
        outcomes = await enrichment.enrich_for(items, index)
        count_articles(outcomes, metrics)
        return [_written(item, outcome) for item, outcome in zip(items, outcomes, strict=True)]

    @router.post("", summary="Give articles their roots", response_model=Enriched)
    async def enrich_articles(request: Request, given: ToEnrich) -> Response:
        """Nothing is written to the index; the forest remembers the articles.

        The same articles may be sent again: they get the same roots.
        """
        sources = await asyncio.to_thread(_sources, await request.body())
        written = await enrich(sources, given.articles, name=given.index, headers=request.scope["headers"])
        parts = [
            orjson.dumps({"error": _problem(each).body()}) if isinstance(each, Rejected) else each
            for each in written
        ]
        rejected = sum(isinstance(each, Rejected) for each in written)
        return Response(b'{"articles":[%b],"rejected":%d}' % (b",".join(parts), rejected), media_type=_JSON)

    @router.post(
        "/one",
        summary="Give one article its root",
        response_model=dict[str, Any],
        responses={200: {"content": {_JSON: {"example": _ENRICHED}}}},
    )
    async def enrich_one(
        request: Request,
        given: Annotated[dict[str, Any], Body(description="The article.", examples=[_ARTICLE])],
        index: Annotated[str | None, Query(description=_INDEX)] = None,
    ) -> Response:
        """For pipelines that send one event a request: the body is the article, and so is the answer.

        A rejected article is answered with 400. Articles that come at the same time are decided together.
        """
        (written,) = await enrich(
            [await request.body()], [given], name=index, headers=request.scope["headers"]
        )
        if isinstance(written, Rejected):
            return answer(request.scope, _problem(written))
        return Response(written, media_type=_JSON)

    return router


def _sources(body: bytes) -> list[bytes]:
    """Return the articles as they came."""
    found = [each for each in members(body) if each.key == "articles"]
    # Of a key that comes twice, the last counts.
    return elements(body[found[-1].value : found[-1].end])


def _item(source: bytes, document: Any, *, index: str | None, position: int) -> BulkItem:
    """Return an article as an item of a bulk request, which leaves its bytes as they are."""
    meta = {"_id": document["_id"]} if isinstance(document, dict) and document.get("_id") is not None else {}
    return BulkItem(operation="index", index=index, meta=meta, header=b"", source=source, line=position)


def _written(item: BulkItem, outcome: Outcome) -> bytes | Rejected:
    if isinstance(outcome, Rejected):
        return outcome
    assert isinstance(outcome, Changed)
    return item.source_with(outcome.document, outcome.action, dedup=outcome.dedup)


def _problem(rejected: Rejected) -> Problem:
    return Problem(status=rejected.status, kind="article_rejected", detail=rejected.reason)

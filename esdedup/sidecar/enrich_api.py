"""Endpoints that return the roots of articles, for pipelines that write to Elasticsearch themselves."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field, ValidationError
from starlette.responses import Response

from esdedup.elastic.meta import WritableIndex
from esdedup.fields import Fields, fields_given
from esdedup.reading.results import Result, examples
from esdedup.serving.problems import Problem, ProblemDetails, described
from esdedup.sidecar.bodies import JSON, NDJSON, read_object, unpacked
from esdedup.sidecar.bulk_request import BulkItem, Rejection, RequestRefused, read_bulk
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.paths import answer
from esdedup.sites import RawPage

_ARTICLE, _DEDUP = examples()["ArticleToEnrich"], examples()["DedupObject"]
_ACTIONS = """{"index":{"_index":"news","_id":"wire-17"}}
{"text":"The harbour council voted on Monday to …","published_at":"2026-09-07T21:32:00Z"}
{"update":{"_index":"news","_id":"wire-9"}}
{"doc":{"text":"The harbour council votes on Tuesday on …"}}
"""
_LINES = {"schema": {"type": "string"}, "example": _ACTIONS}
_INDEX = (
    "The index that the article will be written to. It must be set up, and the caller must have the right "
    "to write to it. The field names of the index apply, or without an index the sidecar's field names."
)
_MORE = (
    "More pages follow, so an incomplete block of 32 pages waits. Otherwise, the forest learns from all "
    "pages before the response is sent."
)
_ONE = {
    "type": "object",
    "additionalProperties": True,
    "title": "Given",
    "description": "The article.",
    "examples": [_ARTICLE],
}
_Object = dict[str, Any] | None
# The kinds of problems, by status, for rejections that are not caused by the article itself.
_KINDS = {403: "not_allowed", 409: "index_not_ready"}


class EnrichQuery(Result, frozen=True):
    """Parameters that apply to all actions of a request."""

    index: str | None = None
    """The index of actions that do not name an index."""
    backfill: bool = False
    """Take the forest's time from the articles, not from the clock."""
    forest: str | None = None
    """The expected forest; the request is refused if the sidecar has another forest."""
    profile: str | None = None
    """The expected profile; the request is refused if the forest has another profile."""
    text_field: str | None = None
    """Field names for actions without an index; if none are given, the sidecar's field names apply."""
    title_field: str | None = None
    time_field: str | None = None
    link_field: str | None = None
    source_field: str | None = None
    site_field: str | None = None
    dedup_field: str | None = None


class Item(Result, frozen=True):
    """The additions to an action. A deletion, and an update without a text or a date, have none."""

    outcome: Literal["new_root", "joined", "known", "without_fingerprint"] | None = None
    """The outcome for the article; missing if there is no text."""
    dedup: _Object = None
    """The dedup object to add to a whole document."""
    doc: _Object = None
    """The dedup object to add to the `doc` of an update; null means to remove any object already there."""
    upsert: Annotated[
        _Object,
        Field(
            description="The dedup object to add to the `upsert` of an update. If the update has "
            "`doc_as_upsert`, omit `doc_as_upsert`, and send the `doc` with this object as `upsert`."
        ),
    ] = None
    routing: str | None = None
    """The routing of the action, if its index is routed by root."""
    is_cut: bool = False
    """Whether the text was truncated for its fingerprint."""
    boilerplate_letters: int = 0
    """How many letters and digits were left out of the fingerprint as boilerplate."""
    error: ProblemDetails | None = None
    """Why the action was rejected; if present, all other members are missing."""


class Enriched(Result, frozen=True):
    """The additions to all actions of a request."""

    rejected: int
    """How many actions were rejected."""
    items: list[Item]
    """One item for each action, in the same order."""


class TaughtPage(Result, frozen=True, extra="forbid"):
    """A web page's text, and its origin."""

    text: Annotated[str, Field(examples=["The harbour council voted on Monday to …"])]
    site: Annotated[str | None, Field(examples=["news.example"])] = None
    """The host of the page."""
    article: str | None = None
    """The path of the page's address, or the article's id."""
    title: str | None = None
    """Pages with the same title are versions of one article."""


class Pages(Result, frozen=True, extra="forbid"):
    """Pages that a forest is to learn from, in the order in which they arrived."""

    pages: list[TaughtPage]


# Inlined, since OpenAPI descriptions cannot contain a schema's own definitions (`$defs`).
_PAGES = Pages.model_json_schema()
_PAGES["properties"]["pages"]["items"] = _PAGES.pop("$defs")["TaughtPage"]


class Learned(Result, frozen=True):
    """The result of learning from pages."""

    learned: int
    """How many of the pages had not been seen before."""


_ERRORS = described(
    s400="The request cannot be parsed, or the name of the index is invalid.",
    s401="Elasticsearch does not know the caller, or the token of the sidecar is missing.",
    s403="The caller may not write to the index.",
    s409="The index is not set up, or the forest or profile is not the sidecar's.",
    s413="The body is too large.",
    s415="The content type or encoding of the body is not supported.",
    s429="Too many articles are waiting; retry after the seconds in `Retry-After`.",
    s502="Elasticsearch does not answer.",
    s503="Another process owns the forest. Send the request to the address in `detail`, or retry after the "
    "seconds in `Retry-After`.",
)


def enrich_routes(
    enrichment: Enrichment,
    *,
    learn: Callable[[Sequence[RawPage], bool], Awaitable[int]],
    fields: Fields | None,
    profile: str,
    max_body_bytes: int,
) -> APIRouter:
    """Return the routes; `fields` apply to actions without an index, `max_body_bytes` to unpacked bodies."""
    router = APIRouter(prefix="/v1", tags=["enrich"], responses=_ERRORS)
    unset = WritableIndex(fields=fields or Fields())

    def require(given: str | None, own: str, what: str) -> None:
        if given not in {None, own}:
            raise RequestRefused(409, f"{what}_mismatch", f"the {what} of this sidecar is {own}, not {given}")

    @router.post(
        "/enrich",
        summary="Give articles their roots",
        response_model=Enriched,
        response_model_exclude_unset=True,
        openapi_extra={"requestBody": {"required": True, "content": {NDJSON: _LINES}}},
    )
    async def enrich_actions(request: Request, asked: Annotated[EnrichQuery, Query()]) -> Response:
        """The body has the format of `_bulk`: actions, each with its document in the next line.

        Nothing is written to an index, but the forest remembers the articles: if sent again, they get the
        same roots. Documents need only the text, the time, the link and the source.
        """
        enrichment.ownership().require()
        require(asked.forest, enrichment.forest, "forest")
        require(asked.profile, profile, "profile")
        own = fields_given(asked) or unset.fields
        body = await unpacked(await request.body(), scope=request.scope, most_bytes=max_body_bytes)
        # Use threads, since large bodies would block the event loop.
        items = await asyncio.to_thread(read_bulk, body, index=asked.index)
        unnamed = WritableIndex(fields=own)
        await enrichment.enrich(items, request.scope, unset=unnamed, backfill=asked.backfill)
        return Response(await asyncio.to_thread(_answer, items), media_type=JSON)

    @router.post(
        "/enrich/one",
        summary="Give one article its root",
        response_model=dict[str, Any],
        responses={200: {"content": {JSON: {"example": _ARTICLE | {"dedup": _DEDUP}}}}},
        openapi_extra={"requestBody": {"required": True, "content": {JSON: {"schema": _ONE}}}},
    )
    async def enrich_one(
        request: Request, index: Annotated[str | None, Query(description=_INDEX)] = None
    ) -> Response:
        """For pipelines that send one event per request. The body is an article; the response adds its root.

        If the article is rejected, the response is the error. Articles that arrive at the same time are
        assigned together. `_id` is the id that the article will have.
        """
        enrichment.ownership().require()
        body, given = await read_object(request, most_bytes=max_body_bytes)
        meta = {} if given.get("_id") is None else {"_id": given["_id"]}
        item = BulkItem(operation="index", index=index, meta=meta, header=b"", source=body)
        await enrichment.enrich([item], request.scope, unset=unset)
        if item.rejection is not None:
            return answer(request.scope, _problem(item.rejection))
        return Response(item.body(), media_type=JSON)

    @router.post(
        "/learn",
        summary="Learn boilerplate from pages",
        openapi_extra={"requestBody": {"required": True, "content": {JSON: {"schema": _PAGES}}}},
    )
    async def learn_pages(
        request: Request,
        forest: str | None = None,
        of_profile: Annotated[str | None, Query(alias="profile")] = None,
        more: Annotated[bool, Query(description=_MORE)] = False,
    ) -> Learned:
        """Learn from pages without giving roots; pages learned from or enriched earlier are skipped."""
        require(forest, enrichment.forest, "forest")
        require(of_profile, profile, "profile")
        _, given = await read_object(request, most_bytes=max_body_bytes)
        try:
            pages = Pages.model_validate(given).pages
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise RequestRefused(400, "invalid_request", f"{where}: {first['msg']}") from None
        taught = [RawPage(each.text, each.site, each.article, title=each.title) for each in pages]
        return Learned(learned=await learn(taught, not more))

    return router


def _answer(items: list[BulkItem]) -> bytes:
    rejected = sum(each.rejection is not None for each in items)
    return orjson.dumps({"rejected": rejected, "items": [_item(each) for each in items]})


def _item(item: BulkItem) -> dict[str, Any]:
    if item.rejection is not None:
        return {"error": _problem(item.rejection).body()}
    if item.added is None:
        return {}
    parts, routing = item.added
    found: dict[str, Any] = {}
    article = item.article
    if article is not None:
        found["outcome"] = article.assignment.kind.value
    found |= {"dedup" if part == "source" else part: values for part, values in parts.items()}
    if routing is not None:
        found["routing"] = routing
    if article is not None and article.is_cut:
        found["is_cut"] = True
    if article is not None and article.boilerplate_letters:
        found["boilerplate_letters"] = article.boilerplate_letters
    return found


def _problem(rejected: Rejection) -> Problem:
    return Problem.of(rejected.status, _KINDS.get(rejected.status, "article_rejected"), rejected.reason)

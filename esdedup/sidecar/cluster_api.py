"""Clusters are read: the articles of one, and those that are similar to a text or to an article.

Elasticsearch is asked with the caller's credentials, for the articles and for the forest: nobody reads here
what he may not read there.
"""

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any, Self

from elasticsearch import AsyncElasticsearch
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from esdedup.errors import ArticleNotFound, ServerError, SettingError
from esdedup.reading.reader import AsyncReader
from esdedup.reading.results import SimilarPage
from esdedup.serving.problems import described
from esdedup.sidecar.own_endpoints import json_route
from esdedup.sidecar.rights import RAW_CREDENTIALS, Answer, CallerMayNot, CallerRefused
from esdedup.web.api import MAX_TEXT
from esdedup.web.bounds import MAX_VALUE, bounded
from esdedup.web.form import MAX_SIZE

_INDEX = "The index, alias or pattern to read; without it the one that the sidecar is told to show."
_PAGE = "The number of the page, from 1."
_AFTER = "The cursor `next` of the previous page, in place of `page`."
_SIZE = "Articles on a page."

_Index = Annotated[str | None, Query(description=_INDEX)]
_Page = Annotated[int, Query(ge=1, description=_PAGE)]
_Size = Annotated[int, Query(ge=1, le=MAX_SIZE, description=_SIZE)]
_After = Annotated[str | None, Query(description=_AFTER)]

_ERRORS = described(
    s400="The request cannot be read, or no index is named.",
    s401="Elasticsearch does not know the caller; or the token of the sidecar is missing.",
    s403="The caller may not read the index.",
    s404="There is no such article, or none with this root or fingerprint.",
    s409="The index is missing, or lacks the fields that are set up.",
    s413="The body is too large.",
    s415="The body is not JSON.",
    s502="Elasticsearch does not answer.",
    s503="The forest is missing, or cannot be used.",
)


class Alike(BaseModel):
    """A text, or an article, whose similar articles are wanted."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"index": "news", "text": "The harbour council voted on Monday to …"},
                {"index": "news", "id": "wire-17", "size": 5},
            ]
        },
    )

    index: Annotated[str | None, Field(description=_INDEX)] = None
    text: Annotated[
        str | None,
        Field(max_length=MAX_TEXT, description="A text, indexed or not. Either this or `id`."),
    ] = None
    site: Annotated[
        str | None,
        Field(max_length=MAX_VALUE, description="The site of the text, for the pins of that site."),
    ] = None
    id: Annotated[str | None, Field(description="The id of an article. Either this or `text`.")] = None
    other_sources: Annotated[bool, Field(description="Leave out articles from the article's own source.")] = (
        False
    )
    page: Annotated[int, Field(ge=1, description=_PAGE)] = 1
    size: Annotated[int, Field(ge=1, le=MAX_SIZE, description=_SIZE)] = 20
    after: Annotated[str | None, Field(description=_AFTER)] = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.text is None) == (self.id is None):
            raise ValueError("give either a text or the id of an article")
        if self.text is None and self.site is not None:
            raise ValueError("a site belongs to a text; an article has its own")
        if self.id is None and self.other_sources:
            raise ValueError("other_sources belongs to the id of an article; a text has no source")
        return self


def cluster_routes(
    reader: AsyncReader,
    client: AsyncElasticsearch,
    *,
    index: str | None,
    max_body_bytes: int,
) -> APIRouter:
    """Return the routes.

    Args:
        reader: Of the forest; its own client is not used.
        client: Without credentials.
        index: What is read if a request names no index.
        max_body_bytes: Of a body that is unpacked.
    """
    router = APIRouter(
        prefix="/v1",
        tags=["clusters"],
        route_class=json_route(max_body_bytes=max_body_bytes),
        responses=_ERRORS,
    )

    def reader_of(request: Request) -> AsyncReader:
        own = {
            name.decode(): value.decode("latin-1")
            for name, value in request.scope["headers"]
            if name in RAW_CREDENTIALS
        }
        return reader.with_client(client.options(headers=own))

    def named(given: str | None) -> str:
        name = index if given is None else given
        if name is None:
            raise SettingError("index is missing: name the index that is to be read")
        return name

    @router.get("/clusters/{root}", summary="The articles of a cluster")
    async def cluster(
        request: Request,
        root: Annotated[str, Path(description="The root of its articles, as the dedup object has it.")],
        index: _Index = None,
        page: _Page = 1,
        size: _Size = 20,
        after: _After = None,
    ) -> SimilarPage:
        """The newest first. How similar they are to each other is not computed."""
        name = named(index)
        with _of_the_caller(name):
            found = await reader_of(request).cluster(name, root, page=page, size=size, after=after)
        if not found.total:
            raise ArticleNotFound(f"no article in {name!r} has the root {root!r}", article=root, index=name)
        return bounded(found)

    @router.get("/fingerprints/{fingerprint}", summary="The articles with a fingerprint")
    async def with_fingerprint(
        request: Request,
        fingerprint: Annotated[str, Path(description="The fingerprint, as the dedup object has it.")],
        index: _Index = None,
        page: _Page = 1,
        size: _Size = 20,
        after: _After = None,
    ) -> SimilarPage:
        """The newest first: the same text, as far as it is compared. Each article names its root."""
        name = named(index)
        with _of_the_caller(name):
            found = await reader_of(request).with_fingerprint(
                name, fingerprint, page=page, size=size, after=after
            )
        if not found.total:
            raise ArticleNotFound(
                f"no article in {name!r} has the fingerprint {fingerprint!r}", article=fingerprint, index=name
            )
        return bounded(found)

    @router.post("/similar", summary="The articles that are similar to a text or to an article")
    async def similar(request: Request, given: Alike) -> SimilarPage:
        """The newest first, each with how similar it is. Nothing is written.

        A text gets the articles of the cluster that it would join if it arrived now; what arrived within the
        last second may be missed.
        """
        name, own = named(given.index), reader_of(request)
        paging: dict[str, Any] = {"page": given.page, "size": given.size, "after": given.after}
        with _of_the_caller(name):
            if given.text is not None:
                return bounded(await own.similar_to_text(name, given.text, site=given.site, **paging))
            found = await own.similar(name, given.id or "", other_sources=given.other_sources, **paging)
        return bounded(found)

    return router


@contextlib.contextmanager
def _of_the_caller(index: str) -> Iterator[None]:
    """Tell callers of what Elasticsearch refuses them; it is asked with their credentials.

    Raises:
        CallerRefused: It does not know the caller.
        CallerMayNot: It does not let the caller read.
        SettingError: It cannot read what the request names.
    """
    try:
        yield
    except ServerError as error:
        if error.status == 401:
            raise CallerRefused(Answer(401, (), b"")) from error
        if error.status == 403 and type(error) is ServerError:
            raise CallerMayNot(f"the caller may not read the index {index!r}, or not the forest") from error
        if error.status == 400:
            raise SettingError(str(error)) from error
        raise

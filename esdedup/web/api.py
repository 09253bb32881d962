"""The answers as JSON."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from esdedup.reading.results import FullArticle, Page, SimilarPage, SourcesPage, Timeline
from esdedup.web.form import Form
from esdedup.web.state import CurrentSite

PREFIX = "/api"
MAX_TEXT = 1_000_000
"""Characters of a text that is looked up."""


class Failure(BaseModel):
    """Why there is no answer."""

    error: str


class Text(BaseModel):
    """A text that need not be indexed."""

    text: Annotated[str, Field(max_length=MAX_TEXT, examples=["The harbour council voted on Monday to …"])]


router = APIRouter(
    prefix=PREFIX,
    responses={
        400: {"model": Failure, "description": "A parameter makes no sense."},
        502: {"model": Failure, "description": "Elasticsearch refused."},
        503: {"model": Failure, "description": "Elasticsearch or the index is not available."},
    },
)
_NOT_FOUND: dict[int | str, dict[str, object]] = {
    404: {"model": Failure, "description": "No article has that id."}
}

Id = Annotated[
    str, Query(min_length=1, description="The article's id in Elasticsearch.", examples=["en-17-3"])
]
InIndex = Annotated[
    str | None,
    Query(alias="index", description="Its index, where several behind the served name have that id."),
]
PageNumber = Annotated[int, Query(ge=1, description="From 1.")]
Size = Annotated[int, Query(ge=1, le=100, description="How many on a page.")]
After = Annotated[str | None, Query(description="The cursor `next` of the page before.")]
OtherSources = Annotated[bool, Query(description="Leave out the article's own source.")]


@router.get("/list", summary="The list: one row for each group of near-duplicates")
async def list_rows(site: CurrentSite, form: Annotated[Form, Query()]) -> Page:
    """Rows with the number of similar articles, of sources, and the first and last time."""
    source_field = await site.reader.source_field(site.index)
    return await site.reader.list(site.index, **form.options(site, source_field))


@router.get("/article", summary="One article with its text", responses=_NOT_FOUND)
async def article(site: CurrentSite, id: Id, index: InIndex = None) -> FullArticle:  # noqa: A002
    """The article, whatever index behind the name it is in; the last to arrive if there are several."""
    return await site.reader.article(site.index, id, in_index=index)


@router.get("/similar", summary="The similar articles of one", responses=_NOT_FOUND)
async def similar(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    other_sources: OtherSources = False,
    page: PageNumber = 1,
    size: Size = 20,
    after: After = None,
) -> SimilarPage:
    """The others of its cluster, newest first, and how alike each is."""
    return await site.reader.similar(
        site.index, id, in_index=index, other_sources=other_sources, page=page, size=size, after=after
    )


@router.get("/sources", summary="Which other media published an article", responses=_NOT_FOUND)
async def sources(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    other_sources: OtherSources = False,
    page: PageNumber = 1,
    size: Size = 20,
) -> SourcesPage:
    """Grouped by source, those with the most articles first, with the earliest article of each."""
    return await site.reader.sources(
        site.index, id, in_index=index, other_sources=other_sources, page=page, size=size
    )


@router.get("/timeline", summary="How a story spread over time", responses=_NOT_FOUND)
async def timeline(site: CurrentSite, id: Id, index: InIndex = None) -> Timeline:  # noqa: A002
    """How many articles of its cluster were published when."""
    found = await site.reader.article(site.index, id, in_index=index)
    return await site.reader.timeline(site.index, found.root or "")


@router.post(
    "/similar",
    summary="The similar articles of a text that is not indexed",
    responses={409: {"model": Failure, "description": "There is no such forest, or of another profile."}},
)
async def similar_to_text(
    site: CurrentSite, body: Text, page: PageNumber = 1, size: Size = 20, after: After = None
) -> SimilarPage:
    """Those of the cluster that the text would join if it arrived now; nothing is changed."""
    return await site.reader.similar_to_text(site.index, body.text, page=page, size=size, after=after)

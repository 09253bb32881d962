"""The JSON API."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from esdedup.errors import SettingError
from esdedup.fingerprint.profile import MAX_TEXT_LENGTH
from esdedup.reading.results import FullArticle, Page, SimilarPage, SourcesPage, Timeline
from esdedup.text.left_out import LeftOut
from esdedup.web.bounds import MAX_SHOWN_TEXT, MAX_VALUE, bounded
from esdedup.web.form import MAX_SIZE, Form
from esdedup.web.state import CurrentSite

PREFIX = "/api"
MAX_TEXT = MAX_TEXT_LENGTH
"""The longest text that can be looked up, in characters: no more is fingerprinted by default."""
DESCRIPTION = f"""Answers are of limited size. A title, source, time or address longer than {MAX_VALUE:,}
characters, and a text longer than {MAX_SHOWN_TEXT:,}, is cut there and then ends in “…”. Elasticsearch has
the whole article: `GET INDEX/_doc/ID`."""


class Failure(BaseModel):
    """An error."""

    error: Annotated[str, Field(description="What went wrong.")]


class Text(BaseModel):
    """A text, indexed or not."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=MAX_TEXT, examples=["The harbour council voted on Monday to …"])]
    site: Annotated[
        str | None,
        Field(
            max_length=MAX_VALUE,
            description="The site that it comes from, a name or an address, for the pins of that site.",
            examples=["news.example"],
        ),
    ] = None


class MarkedArticle(FullArticle, frozen=True):
    """An article with its text, and what is taken for boilerplate in it."""

    left_out: LeftOut | None
    """What the fingerprint of this text would leave out now; of very many places the first 1,000."""
    left_out_unknown: str | None
    """Why that is not known; null if it is."""


router = APIRouter(
    prefix=PREFIX,
    responses={
        400: {"model": Failure, "description": "A parameter is invalid, or two contradict each other."},
        502: {"model": Failure, "description": "Elasticsearch refused the request."},
        503: {
            "model": Failure,
            "description": "Elasticsearch does not answer, or the index is missing or lacks the fields.",
        },
    },
)
_NOT_FOUND: dict[int | str, dict[str, object]] = {
    404: {"model": Failure, "description": "No article has this id, or it was not indexed through esdedup."}
}

Id = Annotated[
    str, Query(min_length=1, description="The id of the article in Elasticsearch.", examples=["en-17-3"])
]
InIndex = Annotated[
    str | None,
    Query(
        alias="index",
        description="The index to take the article from, if several behind the served name have this id.",
    ),
]
PageNumber = Annotated[int, Query(ge=1, description="The number of the page, from 1.")]
Size = Annotated[int, Query(ge=1, le=MAX_SIZE, description="Results on a page.")]
After = Annotated[
    str | None, Query(description="The cursor `next` of the previous page, in place of `page`.")
]
OtherSources = Annotated[bool, Query(description="Leave out articles from the article's own source.")]


@router.get("", include_in_schema=False)
async def overview(request: Request) -> dict[str, Any]:
    """What there is."""
    described = request.app.openapi()["paths"]
    return {
        "routes": {
            f"{method.upper()} {path}": operation["summary"]
            for path, operations in described.items()
            for method, operation in operations.items()
        },
        "description": "/openapi.json",
    }


@router.get("/list", summary="The list: one row for each cluster of near-duplicate articles")
async def list_rows(site: CurrentSite, form: Annotated[Form, Query()]) -> Page:
    """Each row has the numbers of similar articles and sources, and the first and last publication time."""
    return bounded(await site.reader.list(site.index, **await form.options(site)))


@router.get("/article", summary="One article with its text", responses=_NOT_FOUND)
async def article(site: CurrentSite, id: Id, index: InIndex = None) -> MarkedArticle:  # noqa: A002
    """If several indices behind the served name have this id, the article that arrived last."""
    found = await site.reader.article(site.index, id, in_index=index)
    left_out = await site.marking.left_out(found.text, site=found.site)
    known, unknown = (left_out, None) if isinstance(left_out, LeftOut) else (None, left_out)
    return bounded(MarkedArticle(**dict(found), left_out=known, left_out_unknown=unknown))


@router.get("/similar", summary="Articles similar to an article", responses=_NOT_FOUND)
async def similar(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    other_sources: OtherSources = False,
    page: PageNumber = 1,
    size: Size = 20,
    after: After = None,
) -> SimilarPage:
    """The other articles of its cluster, newest first, each with how similar it is."""
    return bounded(
        await site.reader.similar(
            site.index, id, in_index=index, other_sources=other_sources, page=page, size=size, after=after
        )
    )


@router.get("/sources", summary="The sources in an article's cluster", responses=_NOT_FOUND)
async def sources(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    other_sources: OtherSources = False,
    page: PageNumber = 1,
    size: Size = 20,
) -> SourcesPage:
    """The sources with the most articles first, each with its earliest article."""
    return bounded(
        await site.reader.sources(
            site.index, id, in_index=index, other_sources=other_sources, page=page, size=size
        )
    )


@router.get("/articles", summary="The articles of a cluster, or with a fingerprint")
async def articles(
    site: CurrentSite,
    root: Annotated[str | None, Query(min_length=1, description="The root of a cluster.")] = None,
    fingerprint: Annotated[
        str | None, Query(min_length=1, description="A fingerprint: the articles with the same text.")
    ] = None,
    page: PageNumber = 1,
    size: Size = 20,
    after: After = None,
) -> SimilarPage:
    """The newest first; give either a root or a fingerprint, as an article has them."""
    if root is not None and fingerprint is None:
        return bounded(await site.reader.cluster(site.index, root, page=page, size=size, after=after))
    if fingerprint is not None and root is None:
        found = await site.reader.with_fingerprint(site.index, fingerprint, page=page, size=size, after=after)
        return bounded(found)
    raise SettingError("give either a root or a fingerprint")


@router.get("/timeline", summary="The timeline of an article's cluster", responses=_NOT_FOUND)
async def timeline(site: CurrentSite, id: Id, index: InIndex = None) -> Timeline:  # noqa: A002
    """How many articles of the cluster were published in each interval."""
    found = await site.reader.article(site.index, id, in_index=index)
    return await site.reader.timeline(site.index, found.root or "")


@router.post(
    "/similar",
    summary="Articles similar to a text",
    responses={409: {"model": Failure, "description": "The forest is missing, or has another profile."}},
)
async def similar_to_text(
    site: CurrentSite, body: Text, page: PageNumber = 1, size: Size = 20, after: After = None
) -> SimilarPage:
    """The articles of the cluster that the text would join if it arrived now. Nothing is written.

    What arrived within the last second may be missed.
    """
    return bounded(
        await site.reader.similar_to_text(
            site.index, body.text, site=body.site, page=page, size=size, after=after
        )
    )

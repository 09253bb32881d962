"""The JSON API."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BeforeValidator, Field

from esdedup.errors import SettingError
from esdedup.fingerprint import MAX_TEXT_LENGTH
from esdedup.reading.overview import Overview
from esdedup.reading.results import FullArticle, Page, Result, SimilarPage, SourcesPage, Timeline
from esdedup.reading.versions import TimeOrder, VersionsPage
from esdedup.serving.problems import described
from esdedup.text.left_out import LeftOut
from esdedup.web.context import ContextDep
from esdedup.web.form import AFTER, MAX_SIZE, Form, PageNumber, ParameterModel, SourceIncludes
from esdedup.web.formats import MAX_SHOWN_TEXT, MAX_VALUE, bounded

ROOT = "/api"
"""The prefix of the paths whose errors are problem details."""
PREFIX = f"{ROOT}/v1"
MAX_FACET_VALUES = 40
DESCRIPTION = f"""The size of responses is limited. A title, source, time or address longer than {MAX_VALUE:,}
characters, or a text longer than {MAX_SHOWN_TEXT:,}, is cut off and ends in “…”. Elasticsearch has
the whole article: `GET INDEX/_doc/ID`."""


class Text(Result, frozen=True, extra="forbid"):
    """A text, indexed or not."""

    text: Annotated[
        str, Field(max_length=MAX_TEXT_LENGTH, examples=["The harbour council voted on Monday to …"])
    ]
    site: Annotated[str | None, Field(max_length=MAX_VALUE, examples=["news.example"])] = None
    """The site that the text comes from, as a name or an address; its boilerplate is left out."""


class SourceNames(Result, frozen=True):
    """Names of sources, in alphabetical order."""

    names: tuple[str, ...]


class MarkedArticle(FullArticle, frozen=True):
    """An article with its text, and the boilerplate in it."""

    left_out: LeftOut | None
    """The boilerplate that a fingerprint of this text would leave out now; at most the first 1,000 spans."""
    left_out_unknown: str | None
    """The reason why `left_out` is unknown; null if it is known."""


ERRORS = described(
    s400="A parameter is invalid, or two contradict each other.",
    s409="The index is missing or lacks esdedup's fields.",
    s502="Elasticsearch did not answer, or rejected the request.",
    s503="There are too many requests, or the forest is missing or has another profile.",
)
"""The errors that every route may return."""
NOT_FOUND = described(s404="No article has this id, or it was not indexed through esdedup.")
router = APIRouter(prefix=PREFIX, responses=ERRORS)

# Browsers also send empty fields.
OptionalText = Annotated[str | None, BeforeValidator(lambda value: value or None)]
Id = Annotated[
    str, Query(min_length=1, description="The id of the article in Elasticsearch.", examples=["en-17-3"])
]
InIndex = Annotated[
    OptionalText,
    Query(
        alias="index",
        description="The index to read the article from, if several indices have this id.",
    ),
]
_Includes = Annotated[SourceIncludes, Field(examples=[["author"]])]
_Size = Annotated[int, Field(ge=1, le=MAX_SIZE, description="Results on a page.")]


class Paged(ParameterModel):
    """The parameters of a page of articles."""

    source_includes: _Includes = []  # noqa: RUF012 - pydantic copies it
    page: PageNumber = 1
    size: _Size = 20
    after: Annotated[OptionalText, Field(description=AFTER)] = None


class ArticlesParameters(Paged):
    """The parameters for the articles of a cluster, or the articles with a fingerprint."""

    root: OptionalText = None
    """The root of a cluster."""
    fingerprint: OptionalText = None
    """The fingerprint of articles with the same text."""


class OfArticle(ParameterModel):
    """The parameters that name an article."""

    # The fields are named like the arguments of the reader's methods.
    article_id: Annotated[Id, Field(alias="id")]
    in_index: InIndex = None


class OneArticle(OfArticle):
    """The parameters of a request for one article."""

    source_includes: _Includes = []  # noqa: RUF012 - pydantic copies it


class OfStory(OfArticle):
    """The parameters of requests about the cluster of an article."""

    other_sources: bool = False
    """Leave out articles from the article's own source."""


class SimilarParameters(Paged, OfStory):
    """The parameters of similar articles."""


class VersionsParameters(OfStory):
    """The parameters of the texts of a cluster."""

    sort: TimeOrder = "oldest"
    """Which text comes first."""
    page: PageNumber = 1
    size: _Size = 20


class SourcesParameters(OfStory):
    """The parameters of the sources in a cluster."""

    page: PageNumber = 1
    size: _Size = 20


class SourceNamesParameters(ParameterModel):
    """The parameters for searching the names of sources."""

    containing: Annotated[str, Field(max_length=100)] = ""
    """Return only names that contain this string, ignoring case."""
    size: _Size = 20


@router.get("", include_in_schema=False)
async def routes(request: Request) -> dict[str, Any]:
    """List the routes."""
    described = request.app.openapi()["paths"]
    prefix = request.scope.get("root_path", "")
    return {
        "routes": {
            f"{method.upper()} {prefix}{path}": operation["summary"]
            for path, operations in described.items()
            for method, operation in operations.items()
        },
        "description": f"{prefix}/openapi.json",
        "try_out": f"{prefix}{PREFIX}/docs",
    }


@router.get("/list", summary="The list: one row for each cluster of near-duplicate articles")
async def list_rows(context: ContextDep, form: Annotated[Form, Query()]) -> Page:
    """Each row has its number of similar articles and of sources, and its first and last publication time."""
    options = await form.dated(context.zone).options(context)
    return bounded(await context.reader.list(context.index, **options))


@router.get(
    "/overview", summary="A summary of all matches: over time, by source, by language and by other fields"
)
async def overview(context: ContextDep, form: Annotated[Form, Query()]) -> Overview:
    """Takes the parameters of the list. Parameters that select rows have no effect."""
    search = form.dated(context.zone).search(context)
    return bounded(await context.reader.overview(context.index, **search, size=MAX_FACET_VALUES))


@router.get("/source-names", summary="The names of sources that contain a given string")
async def source_names(context: ContextDep, query: Annotated[SourceNamesParameters, Query()]) -> SourceNames:
    """Returns the sources with the most articles in the whole index."""
    return bounded(SourceNames(names=await context.reader.source_names(context.index, **query.model_dump())))


@router.get("/article", summary="One article with its text", responses=NOT_FOUND)
async def article(context: ContextDep, query: Annotated[OneArticle, Query()]) -> MarkedArticle:
    """If several indices have this id, returns the article that arrived last."""
    found = await context.reader.article(context.index, **query.model_dump())
    left_out = await context.marking.left_out(found.text, site=found.site)
    known, unknown = (left_out, None) if isinstance(left_out, LeftOut) else (None, left_out)
    return bounded(MarkedArticle(**dict(found), left_out=known, left_out_unknown=unknown))


@router.get("/similar", summary="Articles similar to an article", responses=NOT_FOUND)
async def similar(context: ContextDep, query: Annotated[SimilarParameters, Query()]) -> SimilarPage:
    """Returns the other articles of the article's cluster, newest first, each with its similarity."""
    return bounded(await context.reader.similar(context.index, **query.model_dump()))


@router.get("/versions", summary="The distinct texts of an article's cluster", responses=NOT_FOUND)
async def versions(context: ContextDep, query: Annotated[VersionsParameters, Query()]) -> VersionsPage:
    """Returns each text with its first article and its copies."""
    return bounded(await context.reader.versions(context.index, **query.model_dump()))


@router.get("/sources", summary="The sources in an article's cluster", responses=NOT_FOUND)
async def sources(context: ContextDep, query: Annotated[SourcesParameters, Query()]) -> SourcesPage:
    """Returns the sources with the most articles first, each with its earliest article."""
    return bounded(await context.reader.sources(context.index, **query.model_dump()))


@router.get("/articles", summary="The articles of a cluster, or the articles with a fingerprint")
async def articles(context: ContextDep, query: Annotated[ArticlesParameters, Query()]) -> SimilarPage:
    """Returns the newest articles first. Give either a root or a fingerprint, as stored in an article."""
    root, fingerprint, reader = query.root, query.fingerprint, context.reader
    paging = query.model_dump(exclude={"root", "fingerprint"})
    if root is not None and fingerprint is None:
        return bounded(await reader.cluster(context.index, root, **paging))
    if fingerprint is not None and root is None:
        return bounded(await reader.with_fingerprint(context.index, fingerprint, **paging))
    raise SettingError("give either a root or a fingerprint")


@router.get("/timeline", summary="The timeline of an article's cluster", responses=NOT_FOUND)
async def timeline(context: ContextDep, query: Annotated[OfArticle, Query()]) -> Timeline:
    """Returns how many articles of the cluster were published in each interval."""
    found = await context.reader.article(context.index, **query.model_dump())
    return bounded(await context.reader.timeline(context.index, found.root or ""))


def check_is_json(request: Request) -> None:
    """Raise `SettingError` unless the Content-Type is JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type.endswith(("/json", "+json")):
        raise SettingError(
            f"the Content-Type is {media_type or 'missing'}; send the text as JSON, with "
            "`Content-Type: application/json`"
        )


@router.post("/similar", summary="Articles similar to a text", dependencies=[Depends(check_is_json)])
async def similar_to_text(context: ContextDep, body: Text, query: Annotated[Paged, Query()]) -> SimilarPage:
    """Returns the articles of the cluster that the text would join if it arrived now. Nothing is written.

    Articles that arrived within the last second may be missing.
    """
    options = query.model_dump()
    return bounded(await context.reader.similar_to_text(context.index, body.text, site=body.site, **options))

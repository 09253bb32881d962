"""The JSON API."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from esdedup.errors import SettingError
from esdedup.fingerprint.profile import MAX_TEXT_LENGTH
from esdedup.reading.overview import Overview
from esdedup.reading.results import (
    FullArticle,
    Page,
    SimilarPage,
    SourcesPage,
    Timeline,
)
from esdedup.reading.versions import TimeOrder, VersionsPage
from esdedup.serving.problems import described
from esdedup.text.left_out import LeftOut
from esdedup.web.bounds import MAX_SHOWN_TEXT, MAX_VALUE, bounded
from esdedup.web.form import INCLUDES, MAX_SIZE, Form, names_of
from esdedup.web.state import CurrentSite

ROOT = "/api"
"""Errors under it are problem details."""
PREFIX = f"{ROOT}/v1"
MAX_FACET_VALUES = 40
MAX_TEXT = MAX_TEXT_LENGTH
"""The longest text that can be looked up, in characters: no more is fingerprinted by default."""
DESCRIPTION = f"""Answers are of limited size. A title, source, time or address longer than {MAX_VALUE:,}
characters, and a text longer than {MAX_SHOWN_TEXT:,}, is cut there and then ends in “…”. Elasticsearch has
the whole article: `GET INDEX/_doc/ID`."""


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


_LEFT_OUT = {
    "passages": 1,
    "letters": 18,
    "of_passages": 9,
    "of_letters": 803,
    "spans": [{"start": 950, "end": 971, "text": "All rights reserved."}],
}


class MarkedArticle(FullArticle, frozen=True):
    """An article with its text, and what is taken for boilerplate in it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                FullArticle.model_json_schema()["examples"][0]
                | {"left_out": _LEFT_OUT, "left_out_unknown": None}
            ]
        }
    )

    left_out: LeftOut | None
    """What the fingerprint of this text would leave out now; of very many places the first 1,000."""
    left_out_unknown: str | None
    """Why that is not known; null if it is."""


ERRORS = described(
    s400="A parameter is invalid, or two contradict each other.",
    s409="The index is missing, or lacks the fields.",
    s502="Elasticsearch does not answer, or refused the request.",
    s503="There are too many requests, or the forest is missing or has another profile.",
)
"""Those that every route may answer with."""
NOT_FOUND = described(s404="No article has this id, or it was not indexed through esdedup.")
router = APIRouter(prefix=PREFIX, responses=ERRORS)

Id = Annotated[
    str, Query(min_length=1, description="The id of the article in Elasticsearch.", examples=["en-17-3"])
]
# Browsers also send the fields that are left empty.
_OrNothing = BeforeValidator(lambda value: value or None)
InIndex = Annotated[
    str | None,
    _OrNothing,
    Query(
        alias="index",
        description="The index to take the article from, if several behind the served name have this id.",
    ),
]
PageNumber = Annotated[int, Query(ge=1, description="The number of the page, from 1.")]
Size = Annotated[int, Query(ge=1, le=MAX_SIZE, description="Results on a page.")]
After = Annotated[
    str | None, _OrNothing, Query(description="The cursor `next` of the previous page, in place of `page`.")
]
OtherSources = Annotated[bool, Query(description="Leave out articles from the article's own source.")]
Includes = Annotated[list[str], Query(description=INCLUDES, examples=[["author"]]), AfterValidator(names_of)]


@router.get("", include_in_schema=False)
async def routes(request: Request) -> dict[str, Any]:
    """What there is."""
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
async def list_rows(site: CurrentSite, form: Annotated[Form, Query()]) -> Page:
    """Each row has the numbers of similar articles and sources, and the first and last publication time."""
    return bounded(await site.reader.list(site.index, **await form.options(site)))


@router.get(
    "/overview", summary="What a search finds as a whole: over time, by source, by language and the like"
)
async def overview(
    site: CurrentSite,
    form: Annotated[Form, Query()],
) -> Overview:
    """Takes the parameters of the list, so that both are asked alike; what chooses rows changes nothing."""
    return bounded(await site.reader.overview(site.index, **form.search, size=MAX_FACET_VALUES))


@router.get("/article", summary="One article with its text", responses=NOT_FOUND)
async def article(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    source_includes: Includes = [],  # noqa: B006 - read only
) -> MarkedArticle:
    """If several indices behind the served name have this id, the article that arrived last."""
    found = await site.reader.article(site.index, id, in_index=index, source_includes=source_includes)
    left_out = await site.marking.left_out(found.text, site=found.site)
    known, unknown = (left_out, None) if isinstance(left_out, LeftOut) else (None, left_out)
    return bounded(MarkedArticle(**dict(found), left_out=known, left_out_unknown=unknown))


@router.get("/similar", summary="Articles similar to an article", responses=NOT_FOUND)
async def similar(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    other_sources: OtherSources = False,
    source_includes: Includes = [],  # noqa: B006 - read only
    page: PageNumber = 1,
    size: Size = 20,
    after: After = None,
) -> SimilarPage:
    """The other articles of its cluster, newest first, each with how similar it is."""
    return bounded(
        await site.reader.similar(
            site.index,
            id,
            in_index=index,
            other_sources=other_sources,
            source_includes=source_includes,
            page=page,
            size=size,
            after=after,
        )
    )


@router.get("/versions", summary="The distinct texts of an article's cluster", responses=NOT_FOUND)
async def versions(
    site: CurrentSite,
    id: Id,  # noqa: A002
    index: InIndex = None,
    other_sources: OtherSources = False,
    sort: Annotated[TimeOrder, Query(description="Which text comes first.")] = "oldest",
    page: PageNumber = 1,
    size: Size = 20,
) -> VersionsPage:
    """Who was first with each text, and who copied it."""
    return bounded(
        await site.reader.versions(
            site.index, id, in_index=index, other_sources=other_sources, sort=sort, page=page, size=size
        )
    )


@router.get("/sources", summary="The sources in an article's cluster", responses=NOT_FOUND)
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
    root: Annotated[str | None, _OrNothing, Query(description="The root of a cluster.")] = None,
    fingerprint: Annotated[
        str | None, _OrNothing, Query(description="A fingerprint: the articles with the same text.")
    ] = None,
    source_includes: Includes = [],  # noqa: B006 - read only
    page: PageNumber = 1,
    size: Size = 20,
    after: After = None,
) -> SimilarPage:
    """The newest first; give either a root or a fingerprint, as an article has them."""
    reader, name = site.reader, site.index
    paging: dict[str, Any] = {"page": page, "size": size, "after": after}
    if root is not None and fingerprint is None:
        return bounded(await reader.cluster(name, root, source_includes=source_includes, **paging))
    if fingerprint is not None and root is None:
        return bounded(
            await reader.with_fingerprint(name, fingerprint, source_includes=source_includes, **paging)
        )
    raise SettingError("give either a root or a fingerprint")


@router.get("/timeline", summary="The timeline of an article's cluster", responses=NOT_FOUND)
async def timeline(site: CurrentSite, id: Id, index: InIndex = None) -> Timeline:  # noqa: A002
    """How many articles of the cluster were published in each interval."""
    found = await site.reader.article(site.index, id, in_index=index)
    return bounded(await site.reader.timeline(site.index, found.root or ""))


def _check_is_json(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type.endswith(("/json", "+json")):
        raise SettingError(
            f"the Content-Type is {media_type or 'missing'}; send the text as JSON, with "
            "`Content-Type: application/json`"
        )


@router.post("/similar", summary="Articles similar to a text", dependencies=[Depends(_check_is_json)])
async def similar_to_text(
    site: CurrentSite,
    body: Text,
    source_includes: Includes = [],  # noqa: B006 - read only
    page: PageNumber = 1,
    size: Size = 20,
    after: After = None,
) -> SimilarPage:
    """The articles of the cluster that the text would join if it arrived now. Nothing is written.

    What arrived within the last second may be missed.
    """
    return bounded(
        await site.reader.similar_to_text(
            site.index,
            body.text,
            site=body.site,
            source_includes=source_includes,
            page=page,
            size=size,
            after=after,
        )
    )

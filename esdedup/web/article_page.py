"""The page of an article: its text, and who had its story first and who followed."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.reading.results import Article, SourcesPage
from esdedup.reading.versions import VersionsPage
from esdedup.web.bar_charts import draw
from esdedup.web.bounds import MAX_SHOWN_TEXT, MAX_SPANS
from esdedup.web.form import PageForm
from esdedup.web.rendering import language_of, render
from esdedup.web.shown_text import shown_text
from esdedup.web.site import CurrentSite, Site

View = Literal["oldest", "newest", "source"]
"""How the articles of a story are shown: in one of two orders of time, or by source."""

LONGEST_LISTED = 16_000
"""Of the address of a list, whose words may take most of it."""
_VERSIONS_ON_A_PAGE = 20
_SOURCES_ON_A_PAGE = 24

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/article")
async def article_page(
    request: Request,
    site: CurrentSite,
    id: Annotated[str, Query(min_length=1)],  # noqa: A002
    index: str | None = None,
    view: View = "oldest",
    page: Annotated[int, Query(ge=1)] = 1,
    other_sources: bool = False,
    listed: Annotated[str, Query(max_length=LONGEST_LISTED)] = "",
) -> HTMLResponse:
    """Show an article. The query of the list that led here, `listed`, leads back to it."""
    article = await site.article(id, in_index=index)
    timeline = await site.reader.timeline(site.index, article.root or "")
    has_sources = await site.reader.source_field(site.index) is not None
    if view == "source" and has_sources:
        versions, sources = None, await _sources(site, article, other_sources=other_sources, page=page)
        similar = sources.total
    else:
        versions = await _versions(site, article, view, other_sources=other_sources, page=page)
        sources, similar = None, versions.total - (not other_sources)
    return render(
        "article.html",
        request,
        article=article,
        shown=await shown_text(site, article),
        max_shown=MAX_SHOWN_TEXT,
        max_spans=MAX_SPANS,
        similar=similar,
        timeline=timeline,
        drawing=draw(timeline, language_of(request)),
        versions=versions,
        sources=sources,
        has_sources=has_sources,
        view=view,
        other_sources=other_sources,
        form=PageForm.of_address(listed),
        listed=listed,
    )


async def _versions(
    site: Site, article: Article, view: View, *, other_sources: bool, page: int
) -> VersionsPage:
    return await site.reader.versions(
        site.index,
        article.id,
        in_index=article.index,
        other_sources=other_sources,
        sort="newest" if view == "newest" else "oldest",
        page=page,
        size=_VERSIONS_ON_A_PAGE,
    )


async def _sources(site: Site, article: Article, *, other_sources: bool, page: int) -> SourcesPage:
    return await site.reader.sources(
        site.index,
        article.id,
        in_index=article.index,
        other_sources=other_sources,
        page=page,
        size=_SOURCES_ON_A_PAGE,
    )

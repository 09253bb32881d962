"""The page of an article, with its similar articles."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.web.bounds import MAX_SHOWN_TEXT, MAX_SPANS
from esdedup.web.form import PageForm
from esdedup.web.rendering import language_of, render
from esdedup.web.shown_text import shown_text
from esdedup.web.state import CurrentSite
from esdedup.web.timeline_drawing import HEIGHT, WIDTH, draw

_SIMILAR_ON_A_PAGE = 20
_SOURCES_ON_A_PAGE = 12
# Of the address of a list, whose words may take most of it.
_LONGEST_LISTED = 16_000

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/article")
async def article_page(
    request: Request,
    site: CurrentSite,
    id: Annotated[str, Query(min_length=1)],  # noqa: A002
    index: str | None = None,
    compare: str = "",
    compare_index: str | None = None,
    after: str | None = None,
    other_sources: bool = False,
    sources_page: Annotated[int, Query(ge=1)] = 1,
    listed: Annotated[str, Query(max_length=_LONGEST_LISTED)] = "",
) -> HTMLResponse:
    """Show an article; with `compare`, the differences between its text and that of another article.

    The query of the list that led here, `listed`, leads back to it.
    """
    reader, name = site.reader, site.index
    article = await reader.article(name, id, in_index=index)
    similar = await reader.similar(
        name, id, in_index=index, other_sources=other_sources, size=_SIMILAR_ON_A_PAGE, after=after or None
    )
    timeline = await reader.timeline(name, article.root or "")
    sources = await _sources(site, id, index, other_sources=other_sources, page=sources_page)
    other = await reader.article(name, compare, in_index=compare_index) if compare else None
    return render(
        "article.html",
        request,
        article=article,
        similar=similar,
        sources=sources,
        timeline=draw(timeline, language_of(request)),
        width=WIDTH,
        height=HEIGHT,
        other=other,
        shown=await shown_text(site, article, other),
        max_shown=MAX_SHOWN_TEXT,
        max_spans=MAX_SPANS,
        after=after,
        other_sources=other_sources,
        form=PageForm.of_address(listed),
        listed=listed,
    )


async def _sources(
    site: CurrentSite, article_id: str, index: str | None, *, other_sources: bool, page: int
) -> object:
    if await site.reader.source_field(site.index) is None:
        return None
    return await site.reader.sources(
        site.index,
        article_id,
        in_index=index,
        other_sources=other_sources,
        page=page,
        size=_SOURCES_ON_A_PAGE,
    )

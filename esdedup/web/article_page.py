"""The page of an article: its text, and the other articles of its story by time or by source."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from esdedup.web.bar_charts import draw
from esdedup.web.context import ContextDep
from esdedup.web.form import SubmittedForm
from esdedup.web.formats import MAX_SHOWN_TEXT, MAX_SPANS
from esdedup.web.languages import language_of
from esdedup.web.rendering import render
from esdedup.web.shown_text import shown_text

View = Literal["oldest", "newest", "source"]
"""How the articles of a story are shown: by time in either order, or by source."""

LONGEST_LISTED = 16_000
"""Maximum length of the query string in the link back to the list; most of it may be search terms."""
_VERSIONS_ON_A_PAGE = 20
_SOURCES_ON_A_PAGE = 24

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/article")
async def article_page(
    context: ContextDep,
    id: Annotated[str, Query(min_length=1)],  # noqa: A002
    index: str | None = None,
    view: View = "oldest",
    page: Annotated[int, Query(ge=1)] = 1,
    other_sources: bool = False,
    listed: Annotated[str, Query(max_length=LONGEST_LISTED)] = "",
) -> HTMLResponse:
    """Show an article; `listed` is the query of the list to link back to."""
    article = await context.article(id, in_index=index)
    timeline = await context.reader.timeline(context.index, article.root or "")
    has_sources = await context.reader.source_field(context.index) is not None
    options: dict[str, Any] = {"in_index": article.index, "other_sources": other_sources, "page": page}
    if view == "source" and has_sources:
        sources = await context.reader.sources(context.index, article.id, size=_SOURCES_ON_A_PAGE, **options)
        versions, similar = None, sources.total
    else:
        options |= {"sort": "newest" if view == "newest" else "oldest", "size": _VERSIONS_ON_A_PAGE}
        versions = await context.reader.versions(context.index, article.id, **options)
        sources, similar = None, versions.total - (not other_sources)
    return render(
        "article.html",
        context,
        article=article,
        shown=await shown_text(context, article),
        max_shown=MAX_SHOWN_TEXT,
        max_spans=MAX_SPANS,
        similar=similar,
        timeline=timeline,
        drawing=draw(timeline, language_of(context)),
        versions=versions,
        sources=sources,
        story=sources or versions,
        has_sources=has_sources,
        view=view,
        other_sources=other_sources,
        form=SubmittedForm.of_address(listed),
        listed=listed,
        named=(await context.names()).get(article.root or ""),
        notice=await context.notice(),
    )

"""The web pages: the list, and an article with its similar articles."""

import asyncio
import dataclasses
import html
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

import jinja2
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.elastic.limits import MAX_HITS
from esdedup.reading.results import Article, FullArticle
from esdedup.text.left_out import LeftOut, Span
from esdedup.text.markup import visible_beginning
from esdedup.web import formats
from esdedup.web.bounds import MAX_SHOWN_TEXT, MAX_SPANS, bounded_spans
from esdedup.web.differences import Piece, differences, is_long
from esdedup.web.form import PageForm
from esdedup.web.marked_text import Part, parts
from esdedup.web.state import CurrentSite, Site
from esdedup.web.timeline_drawing import HEIGHT, WIDTH, draw, readable

SORT_NAMES = {
    "relevance": "best match",
    "newest": "newest",
    "oldest": "oldest",
    "similar-desc": "most similar",
    "similar-asc": "fewest similar",
}
_SIMILAR_ON_A_PAGE = 20
_SOURCES_ON_A_PAGE = 12
# Of the address of a list, whose words may take most of it.
_LONGEST_LISTED = 16_000

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def list_page(request: Request, site: CurrentSite, form: Annotated[PageForm, Query()]) -> HTMLResponse:
    """Show the list."""
    names = await site.reader.source_names(site.index)
    page = await site.reader.list(site.index, **await form.options(site) | {"snippets": True})
    choices = [name for name in names if name == formats.shortened(name)]
    return _render(
        "list.html",
        request,
        form=form,
        page=page,
        sources=choices,
        sorts=SORT_NAMES,
        listed=urlencode(form.parameters),
        last_page=MAX_HITS // form.size,
    )


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
    return _render(
        "article.html",
        request,
        article=article,
        similar=similar,
        sources=sources,
        timeline=draw(timeline),
        width=WIDTH,
        height=HEIGHT,
        other=other,
        shown=await _shown_text(site, article, other),
        max_shown=MAX_SHOWN_TEXT,
        max_spans=MAX_SPANS,
        after=after,
        other_sources=other_sources,
        form=PageForm.of_address(listed),
        listed=listed,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ShownText:
    """The text of an article as readers see it."""

    # Of a very long text, the beginning.
    text: str
    # The text, or what differs from another text.
    parts: list[Part]
    # Whether there is more of the text than is shown.
    is_cut: bool
    # Whether the end of a text is too far to be compared.
    is_compared_in_part: bool
    # What is taken for boilerplate in it, or why that is not known.
    left_out: LeftOut | str
    # Whether there is more boilerplate than is marked.
    is_marked_in_part: bool


async def _shown_text(site: Site, article: FullArticle, other: FullArticle | None) -> _ShownText:
    """Show an article's text, compared with that of another one if that is given."""
    mine, ours = await _marked_text(site, article)
    others, theirs = (None, None) if other is None else await _marked_text(site, other)

    def shown() -> _ShownText:
        text, compared = mine[:MAX_SHOWN_TEXT], others and others[:MAX_SHOWN_TEXT]
        pieces = [Piece(kind="same", text=text)] if compared is None else differences(text, compared)
        return _ShownText(
            text=text,
            parts=parts(pieces, ours=_spans(ours), theirs=_spans(theirs)),
            is_cut=len(mine) > MAX_SHOWN_TEXT,
            is_compared_in_part=compared is not None and (is_long(text) or is_long(compared)),
            left_out=ours,
            is_marked_in_part=isinstance(ours, LeftOut) and len(ours.spans) > MAX_SPANS,
        )

    # The texts may be long, and the event loop must go on meanwhile.
    return await asyncio.to_thread(shown)


async def _marked_text(site: Site, article: FullArticle) -> tuple[str, LeftOut | str]:
    """Return what readers see of an article's text, and what is left out of it, or why that is not known.

    Of a text that is longer than what is shown, it is a beginning that is longer, too.
    """
    visible = await asyncio.to_thread(visible_beginning, article.text, max_length=MAX_SHOWN_TEXT)
    # Markup may take seconds to read, so it is read once.
    raw = html.escape(visible, quote=False)
    return visible, await site.marking.left_out(raw, site=article.site)


def _spans(left_out: LeftOut | str | None) -> Sequence[Span]:
    return bounded_spans(left_out).spans if isinstance(left_out, LeftOut) else ()


def render_error(request: Request, status: int, message: str) -> HTMLResponse:
    """Show an error."""
    return _render("error.html", request, status_code=status, message=message)


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


def _page_of(site: Site, article: Article, **parameters: object) -> str:
    return site.prefix + formats.article_address(site.index, article, **parameters)


def _render(name: str, request: Request, *, status_code: int = 200, **values: object) -> HTMLResponse:
    site: Site = request.app.state.site
    site = dataclasses.replace(site, prefix=request.scope.get("root_path", ""))
    html = _environment.get_template(name).render(site=site, **values)
    # An article that was not indexed through esdedup may contain a lone surrogate, which UTF-8 lacks.
    return HTMLResponse(html.encode("utf-8", "replace"), status_code=status_code)


def _readable_or_nothing(time: str | None) -> str:
    return "" if time is None else readable(time)


_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("esdedup.web"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {
    "moment": formats.moment,
    "machine_time": formats.machine_time,
    "source": formats.source_names,
    "link": formats.link,
    "language": formats.language,
    "shortened": formats.shortened,
    "readable": _readable_or_nothing,
    "count": lambda value: f"{value:,}",
}
_environment.globals |= {"address": formats.address, "page_of": _page_of}
_environment.tests["day"] = formats.is_day

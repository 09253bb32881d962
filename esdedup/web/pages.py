"""The pages: the list, and an article with who else published it."""

import asyncio
import re
from typing import Annotated
from urllib.parse import urlencode, urlsplit

import jinja2
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.reading.list_request import SORTS
from esdedup.reading.results import Article
from esdedup.times import iso, time_ms
from esdedup.web.differences import differences, is_cut
from esdedup.web.form import PageForm
from esdedup.web.state import CurrentSite, Site
from esdedup.web.timeline_drawing import HEIGHT, WIDTH, draw, spoken

SORT_NAMES = {
    "relevance": "best match",
    "newest": "newest",
    "oldest": "oldest",
    "similar-desc": "most similar",
    "similar-asc": "fewest similar",
}
_SIMILAR_ON_A_PAGE = 20
_SOURCES_ON_A_PAGE = 12
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_CJK = ("\u3040", "\u9fff")

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def list_page(request: Request, site: CurrentSite, form: Annotated[PageForm, Query()]) -> HTMLResponse:
    """Show the list."""
    names, source_field = await asyncio.gather(
        site.reader.source_names(site.index), site.reader.source_field(site.index)
    )
    page = await site.reader.list(site.index, **form.options(site, source_field))
    return _render("list.html", request, form=form, page=page, sources=names, sorts=SORT_NAMES)


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
) -> HTMLResponse:
    """Show an article; with `compare`, the differences between its text and that of another article."""
    reader, name = site.reader, site.index
    article = await reader.article(name, id, in_index=index)
    similar, timeline, sources = await asyncio.gather(
        reader.similar(
            name,
            id,
            in_index=index,
            other_sources=other_sources,
            size=_SIMILAR_ON_A_PAGE,
            after=after or None,
        ),
        reader.timeline(name, article.root or ""),
        _sources(site, id, index, sources_page),
    )
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
        pieces=None if other is None else differences(article.text, other.text),
        is_cut=other is not None and is_cut(article.text, other.text),
        after=after,
        other_sources=other_sources,
    )


def render_error(request: Request, status: int, message: str) -> HTMLResponse:
    """Show an error."""
    return _render("error.html", request, status_code=status, message=message)


async def _sources(site: CurrentSite, article_id: str, index: str | None, page: int) -> object:
    if await site.reader.source_field(site.index) is None:
        return None
    return await site.reader.sources(
        site.index, article_id, in_index=index, page=page, size=_SOURCES_ON_A_PAGE
    )


def _render(name: str, request: Request, *, status_code: int = 200, **values: object) -> HTMLResponse:
    site: Site = request.app.state.site
    html = _environment.get_template(name).render(site=site, **values)
    # An article that was not indexed through esdedup may contain a lone surrogate, which UTF-8 lacks.
    return HTMLResponse(html.encode("utf-8", "replace"), status_code=status_code)


def _moment(value: object) -> str:
    """Write an article's time, whatever form it is stored in."""
    milliseconds = time_ms(value)
    if milliseconds is None:
        return "" if value is None else str(value)
    return spoken(iso(milliseconds))


def _machine_time(value: object) -> str:
    milliseconds = time_ms(value)
    return "" if milliseconds is None else iso(milliseconds)


def _source(value: object) -> str:
    """Write an article's sources: one, several or none."""
    values = value if isinstance(value, list) else [value]
    return ", ".join(str(each) for each in values if each is not None) or "no source"


def _link(value: str | None) -> str | None:
    """Return an address if it can be followed safely: on the web, not a script."""
    try:
        return value if value and urlsplit(value.strip()).scheme.lower() in {"http", "https"} else None
    except ValueError:
        return None


def _address(path: str, **parameters: object) -> str:
    """Return an address with the parameters that have a value."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given)}" if given else path


def _page_of(site: Site, article: Article, **parameters: object) -> str:
    """Return the address of an article's page; it names the index if that is not the served name."""
    index = None if article.index == site.index else article.index
    return _address("/article", id=article.id, index=index, **parameters)


def _is_day(text: str) -> bool:
    """Return whether a date input can show a text."""
    return not text or _DAY.fullmatch(text) is not None


def _language(text: str | None) -> str:
    """Return the language of a text, by which browsers break lines and read it aloud."""
    beginning = (text or "")[:200]
    many = sum(_CJK[0] <= each <= _CJK[1] for each in beginning)
    return "zh" if 4 * many > len(beginning) else "en"


_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("esdedup.web"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {
    "moment": _moment,
    "machine_time": _machine_time,
    "source": _source,
    "link": _link,
    "language": _language,
    "spoken": lambda value: "" if value is None else spoken(value),
    "count": lambda value: f"{value:,}",
}
_environment.globals |= {"address": _address, "page_of": _page_of}
_environment.tests["day"] = _is_day
assert SORT_NAMES.keys() == set(SORTS)

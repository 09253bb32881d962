"""The list page."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.elastic.limits import MAX_HITS
from esdedup.errors import EsdedupError
from esdedup.messages import translatable
from esdedup.reading.overview import Overview
from esdedup.reading.results import Page
from esdedup.web import last_visit
from esdedup.web.bar_charts import CURVE_HEIGHT, CURVE_WIDTH, curve, histogram
from esdedup.web.facets import changed, facets, narrowings
from esdedup.web.form import PageForm
from esdedup.web.last_visit import Visits
from esdedup.web.rendering import language_of, render
from esdedup.web.state import CurrentSite, Site

SORT_NAMES = {
    "relevance": translatable("best match"),
    "newest": translatable("newest"),
    "oldest": translatable("oldest"),
    "similar-desc": translatable("most similar"),
    "similar-asc": translatable("fewest similar"),
}
_VALUES_OF_A_FACET = 40

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def list_page(request: Request, site: CurrentSite, form: Annotated[PageForm, Query()]) -> HTMLResponse:
    """Show the list."""
    visits = Visits.of(request.cookies.get(last_visit.COOKIE), datetime.now(UTC))
    options = await form.options(site) | {"details": True}
    if visits.before is not None:
        options["arrived_since"] = visits.before.isoformat()
    page, overview = await _read(site, form, options)
    language = language_of(request)
    answer = render(
        "list.html",
        request,
        form=form,
        page=page,
        sorts=SORT_NAMES,
        listed=urlencode(form.parameters, doseq=True),
        last_page=MAX_HITS // form.size,
        facets=facets(overview, form, language),
        uneven_fields=overview.uneven_fields,
        histogram=histogram(overview.timeline, form, language),
        narrowings=narrowings(form, language),
        changed=changed,
        last_visit=visits.before,
        curve=curve,
        curve_size=(CURVE_WIDTH, CURVE_HEIGHT),
    )
    _remember(visits, request, answer)
    return answer


async def _read(site: Site, form: PageForm, options: dict[str, Any]) -> tuple[Page, Overview]:
    """Read the rows and the overview side by side; if one fails, the other ends."""
    try:
        async with asyncio.TaskGroup() as tasks:
            page = tasks.create_task(site.reader.list(site.index, **options))
            overview = tasks.create_task(
                site.reader.overview(site.index, **form.search, size=_VALUES_OF_A_FACET)
            )
    except* EsdedupError as failed:
        error = failed.exceptions[0]
    else:
        return page.result(), overview.result()
    raise error


def _remember(visits: Visits, request: Request, answer: HTMLResponse) -> None:
    """Let the visitor's browser keep when the list was seen."""
    answer.set_cookie(
        last_visit.COOKIE,
        visits.cookie,
        max_age=int(last_visit.MAX_AGE.total_seconds()),
        path=request.scope.get("root_path", "") or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )

"""The list page, with what is new since a visitor was here last.

That is kept in a cookie that no script reads. A visit lasts until half an hour has passed without a page.
Until then, what is new is what arrived after the visit before, however often pages are loaded.
"""

import asyncio
import dataclasses
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.elastic.limits import MAX_HITS
from esdedup.errors import EsdedupError
from esdedup.messages import translatable
from esdedup.reading.overview import Overview
from esdedup.reading.results import Page
from esdedup.web.bar_charts import CURVE_HEIGHT, CURVE_WIDTH, curve, histogram
from esdedup.web.facets import changed, facets, narrowings
from esdedup.web.form import PageForm
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
VISIT_COOKIE = "esdedup_visit"
_VISITS_KEPT = timedelta(days=90)
_PAUSE = timedelta(minutes=30)
# Seconds since 1970: the end of the visit before, if there was one, and the last page of this one.
_VALUE = re.compile(r"([0-9]{1,11})?-([0-9]{1,11})")

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@dataclasses.dataclass(frozen=True)
class Visits:
    """The visit before this one, and this one."""

    # None: there was none.
    before: datetime | None
    now: datetime

    @classmethod
    def of(cls, cookie: str | None, now: datetime) -> "Visits":
        """Read the cookie of a visitor who is here now; one that makes no sense is none."""
        found = _VALUE.fullmatch(cookie or "")
        if found is None:
            return cls(None, now)
        before, last = (_moment(each) for each in found.groups())
        if last is None or last > now:
            return cls(None, now)
        return cls(last if now - last > _PAUSE else before, now)

    @property
    def cookie(self) -> str:
        """The value of the cookie after this page."""
        before = "" if self.before is None else int(self.before.timestamp())
        return f"{before}-{int(self.now.timestamp())}"


def _moment(seconds: str | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return None


@router.get("/")
async def list_page(request: Request, site: CurrentSite, form: Annotated[PageForm, Query()]) -> HTMLResponse:
    """Show the list."""
    visits = Visits.of(request.cookies.get(VISIT_COOKIE), datetime.now(UTC))
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
        VISIT_COOKIE,
        visits.cookie,
        max_age=int(_VISITS_KEPT.total_seconds()),
        path=request.scope.get("root_path", "") or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )

"""The list page, with its filters, and the articles that are new since the last visit.

Facets are links that add or remove a value. A cookie stores the times of visits. A visit ends after half an
hour without a request; until then, articles that arrived after the previous visit are new.
"""

import asyncio
import dataclasses
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from esdedup.elastic.limits import MAX_HITS
from esdedup.errors import SettingError
from esdedup.messages import translatable
from esdedup.reading.overview import Facet, Overview
from esdedup.reading.results import Row
from esdedup.reading.scope import is_language
from esdedup.web.bar_charts import CURVE_HEIGHT, CURVE_WIDTH, curve, histogram
from esdedup.web.context import Context, ContextDep
from esdedup.web.form import MAX_SIZE, Form, PageForm, Parameters, Period, SubmittedForm
from esdedup.web.formats import MAX_VALUE, place
from esdedup.web.languages import Language, calendar_time, keep_cookie, language_of
from esdedup.web.rendering import render

SORT_NAMES = {
    "relevance": translatable("best match"),
    "newest": translatable("newest"),
    "oldest": translatable("oldest"),
    "similar-desc": translatable("most similar"),
    "similar-asc": translatable("fewest similar"),
    "sources-desc": translatable("most sources"),
    "rising": translatable("fastest rising"),
}
PERIOD_NAMES: dict[Period, str] = {
    "today": translatable("today"),
    "24h": translatable("24 hours"),
    "7d": translatable("7 days"),
}
_VALUES_OF_A_FACET = 40
_SHOWN_AT_ONCE = 8
VISIT_COOKIE = "esdedup_visit"
_VISITS_KEPT_S = 90 * 24 * 3600
_PAUSE = timedelta(minutes=30)
# Two times in seconds since 1970: the end of any previous visit, and the last request of this visit.
_VALUE = re.compile(r"([0-9]{1,11})?-([0-9]{1,11})")

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@dataclasses.dataclass(frozen=True)
class Visits:
    """The previous and the current visit."""

    # None if this is the first visit.
    before: datetime | None
    now: datetime

    @classmethod
    def of(cls, cookie: str | None, now: datetime) -> "Visits":
        """Read the cookie of a visitor; ignore an invalid cookie."""
        found = _VALUE.fullmatch(cookie or "")
        if found is None:
            return cls(None, now)
        before, last = (calendar_time(1000 * int(each)) if each else None for each in found.groups())
        if last is None or last > now:
            return cls(None, now)
        return cls(last if now - last > _PAUSE else before, now)

    @property
    def cookie(self) -> str:
        """The value of the cookie to set with this page."""
        before = "" if self.before is None else int(self.before.timestamp())
        return f"{before}-{int(self.now.timestamp())}"


@router.get("/")
async def list_page(context: ContextDep, raw: Annotated[SubmittedForm, Query()]) -> HTMLResponse:
    """Show the list."""
    if not all(all(each.partition("/")) for each in raw.chosen):
        raise SettingError("chosen: a chosen row must be given as INDEX/ID")
    form = raw.at_times(datetime.now(context.zone).date())
    visits = Visits.of(context.request.cookies.get(VISIT_COOKIE), datetime.now(UTC))
    dated = form.dated(context.zone)
    options = await dated.options(context) | {"details": True}
    if visits.before is not None:
        options["arrived_since"] = visits.before.isoformat()
    if context.thumbnail_field is not None:
        options["source_includes"] = [context.thumbnail_field]
    page, overview, chosen, names, notice = await asyncio.gather(
        context.reader.list(context.index, **options),
        context.reader.overview(context.index, **dated.search(context), size=_VALUES_OF_A_FACET),
        _rows_at(context, form.chosen),
        context.names(),
        context.notice(),
    )
    shown = set(map(place, page.rows))
    language = language_of(context)
    answer = render(
        "list.html",
        context,
        form=form,
        page=page,
        sorts=SORT_NAMES,
        periods=PERIOD_NAMES,
        # The parameters with which the script asks the API for the number of articles.
        watched={name: each for name, each in dated.changed(size=1).items() if name in Form.model_fields},
        listed=urlencode(form.parameters, doseq=True),
        last_page=MAX_HITS // form.size,
        facets=facets(overview, form, language),
        uneven_fields=overview.uneven_fields,
        histogram=histogram(overview.timeline, form, language),
        narrowings=narrowings(form, language),
        last_visit=visits.before,
        chosen_elsewhere=[row for row in chosen if place(row) not in shown],
        names=names,
        notice=notice,
        curve=curve,
        curve_size=(CURVE_WIDTH, CURVE_HEIGHT),
    )
    keep_cookie(context.request, answer, VISIT_COOKIE, visits.cookie, max_age_s=_VISITS_KEPT_S)
    return answer


async def _rows_at(context: Context, places: list[str]) -> tuple[Row, ...]:
    """Return the articles at these places that still exist."""
    if not places:
        return ()
    query = {"ids": {"values": [each.partition("/")[2] for each in places]}}
    found = await context.reader.list(context.index, query=query, dedup=False, size=MAX_SIZE)
    return tuple(row for row in found.rows if place(row) in places)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """A value to filter by, and the parameters of the list with this filter added, or removed if chosen."""

    label: str
    parameters: Parameters
    is_chosen: bool = True
    articles: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShownFacet:
    """A field with its values as links."""

    heading: str
    is_source: bool
    # The links that are always shown, and the links that unfold.
    links: list[Link]
    more: list[Link]
    # The number of articles with other values.
    other_articles: int
    is_exact: bool


def facets(overview: Overview, form: PageForm, language: Language) -> list[ShownFacet]:
    """Return the facets of a list, sources first."""
    found = [_shown_facet(each, form, language) for each in overview.facets]
    if overview.sources is not None:
        found.insert(0, _shown_facet(overview.sources, form, language, is_source=True))
    return [each for each in found if each.links]


def narrowings(form: PageForm, language: Language) -> list[Link]:
    """Return the filters of a list as links that remove them."""
    _ = language.gettext
    found: list[tuple[str, dict[str, object]]] = []
    if form.period:
        found.append((_(PERIOD_NAMES[form.period]), {"period": ""}))
    if form.since or form.until:
        found.append((_time_range(form, language), {"since": "", "until": ""}))
    found += [(each, {"source": _toggled(form.source, each)}) for each in form.source]
    for each in form.where:
        field, _sign, value = each.partition(":")
        names = {"name": _heading_of(field, language), "value": _label_of(field, value, language)}
        found.append((_("%(name)s: %(value)s", **names), {"where": _toggled(form.where, each)}))
    if count := form.min_similar:
        label = _("%(number)s or more similar", number=language.number(count))
        found.append((label, {"min_similar": ""}))
    if count := form.min_sources:
        found.append((_("%(number)s or more sources", number=language.number(count)), {"min_sources": ""}))
    return [Link(label=label, parameters=form.changed(**change)) for label, change in found]


def _time_range(form: PageForm, language: Language) -> str:
    _ = language.gettext
    # A day is shown without a time.
    since, until = (
        (language.day if len(text) == len("2026-11-22") else language.moment)(text)
        for text in (form.since, form.until)
    )
    if form.since and form.until:
        return since if since == until else _("%(first)s to %(last)s", first=since, last=until)
    return _("from %(time)s", time=since) if form.since else _("until %(time)s", time=until)


def _heading_of(field: str, language: Language) -> str:
    return language.gettext("Language") if is_language(field) else field


def _label_of(field: str, value: str, language: Language) -> str:
    return language.name_of(value) if is_language(field) else value


def _shown_facet(facet: Facet, form: PageForm, language: Language, *, is_source: bool = False) -> ShownFacet:
    links = []
    for each in facet.values:
        # Skip blank values, and values that would be cut when shown.
        if len(each.value) > MAX_VALUE or not each.value.strip():
            continue
        if is_source:
            label, change = each.value, {"source": _toggled(form.source, each.value)}
        else:
            label = _label_of(facet.field, each.value, language)
            change = {"where": _toggled(form.where, f"{facet.field}:{each.value}")}
        parameters = form.changed(**change)
        links.append(
            Link(label=label, articles=each.articles, is_chosen=each.is_chosen, parameters=parameters)
        )
    # Chosen values come first, so that they are always shown.
    links.sort(key=lambda link: not link.is_chosen)
    return ShownFacet(
        heading=language.gettext("Sources") if is_source else _heading_of(facet.field, language),
        is_source=is_source,
        links=links[:_SHOWN_AT_ONCE],
        more=links[_SHOWN_AT_ONCE:],
        other_articles=facet.other_articles,
        is_exact=facet.is_exact,
    )


def _toggled(chosen: list[str], value: str) -> list[str]:
    return [each for each in chosen if each != value] if value in chosen else [*chosen, value]

"""The query parameters of a list, for the pages and for the JSON API."""

import functools
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, Self, get_origin
from urllib.parse import parse_qs, parse_qsl
from zoneinfo import ZoneInfo

from fastapi import Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from esdedup.errors import SettingError
from esdedup.reading.list_request import MOST_SOURCES, SORTS_BY_COUNT, Head, Sort
from esdedup.reading.paging import MAX_INCLUDED
from esdedup.reading.search_form import values_by_field
from esdedup.times import zone_named
from esdedup.web.context import Context

MAX_SIZE = 100
"""The maximum number of rows, articles or sources on one page."""
Parameters = dict[str, Any]
"""The parameters of a list, as in its address; parameters without a value are left out."""
MAX_VALUES = 100
"""The maximum number of values of one parameter."""

MAX_CHOSEN = 30
"""The maximum number of rows that an editor may choose on other pages of the list."""

# The maximum number of fields of a submitted form: one for each row shown or chosen, and a few others.
_MOST_FIELDS = MAX_SIZE + MAX_CHOSEN + 16
_SEARCH_FIELDS = {"since", "until", "source", "where"}
_PAGE_FIELDS = {"chosen", "compact", "lang", "name", "period", "since_time", "until_time"}
# Parameters that change how a list is shown; a list that differs in others needs a new name.
_VIEW_FIELDS = {"after", "chosen", "compact", "page", "size"}
_LONGEST_NAME = 100
Period = Literal["today", "24h", "7d"]
_LENGTHS: dict[Period, timedelta] = {"24h": timedelta(hours=24), "7d": timedelta(days=7)}
# Parameters that change what rows show, not which rows are selected.
_ROW_FIELDS = {"size", "details", "arrived_since", "source_includes"}


async def submitted_form(request: Request) -> list[tuple[str, str]]:
    """Read the fields of a submitted form; raise `SettingError` if it cannot be read."""
    try:
        return parse_qsl((await request.body()).decode(), max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise SettingError(f"the form cannot be read: {error}") from error


def names_of(given: Sequence[str]) -> list[str]:
    """Return the names in the values of a parameter; each value may contain several, separated by commas."""
    return [name.strip() for value in given for name in value.split(",") if name.strip()]


class ParameterModel(BaseModel):
    """Base class of request parameters. The docstrings of fields appear in the description of the API."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        for field in cls.model_fields.values():
            field.description = field.description and " ".join(field.description.split())


SourceIncludes = Annotated[
    list[str],
    Field(
        description="Further fields of the articles to return in `included`: names separated by commas, or "
        f"the parameter repeated; at most {MAX_INCLUDED}."
    ),
    AfterValidator(names_of),
]
PageNumber = Annotated[int, Field(ge=1, description="The number of the page, from 1.")]
AFTER = "The cursor `next` of the previous page, in place of `page`."


def _each_once(given: list[str]) -> list[str]:
    return list(dict.fromkeys(given))


class Form(ParameterModel):
    """The parameters of a list."""

    q: Annotated[str, Field(max_length=1_000, examples=["ferry"])] = ""
    """Words that must all be in the title or the text; `"a phrase"`, `a | b`, `-without`, `begin*` and
    `(group)` work as in most search boxes. Every input is valid."""
    since: Annotated[str, Field(examples=["2026-11-01"])] = ""
    """Only articles from this day or moment on, ISO 8601."""
    until: str = ""
    """Only articles up to this day or moment, inclusive, ISO 8601."""
    period: Period | None = None
    """Only articles of today, or of the last 24 hours or 7 days; ignored with `since` or `until`. Continue
    with `page`, not with `after`, since the period moves."""
    time_zone: Annotated[
        str, Field(examples=["Asia/Shanghai"]), AfterValidator(lambda name: name and zone_named(name).key)
    ] = ""
    """The time zone of calendar days and of times without a zone: an IANA name. Default: the zone in the
    cookie of the pages, or the server's zone."""
    source: Annotated[list[str], Field(max_length=MAX_VALUES), AfterValidator(_each_once)] = []
    """Only articles from this source; repeat the parameter to allow several sources."""
    where: Annotated[
        list[str],
        AfterValidator(_each_once),
        Field(examples=[["language:en"]], max_length=MAX_VALUES),
    ] = []
    """Only articles with this value in a further keyword field, as `field:value`, such as `language:en`;
    repeat the parameter to allow several values, or to filter by several fields."""
    sort: Sort | None = None
    """Default: relevance if there are search words, otherwise newest."""
    head: Head | None = None
    """Which matching article a row shows. Default: the match that decides its position."""
    min_similar: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Only rows with at least this many similar articles."""
    min_sources: Annotated[int, Field(ge=0, le=MOST_SOURCES)] = 0
    """Only rows of clusters with at least this many sources."""
    dedup: bool = True
    """False gives each article a row of its own."""
    details: bool = False
    """Also return a snippet of each row's text with the search terms marked, and the earliest, latest and
    most different article of its cluster, its largest sources, and its spread over time."""
    source_includes: Annotated[SourceIncludes, Field(examples=[["author", "section"]])] = []
    arrived_since: str = ""
    """Also count the articles that have arrived after this moment, ISO 8601."""
    page: PageNumber = 1
    size: Annotated[int, Field(ge=1, le=MAX_SIZE)] = 20
    """Rows on a page."""
    after: Annotated[str | None, Field(description=AFTER)] = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        # Browsers also send empty fields.
        return {
            name: [each for each in value if each != ""] if isinstance(value, list) else value
            for name, value in values.items()
            if value != ""
        }

    @functools.cached_property
    def parameters(self) -> Parameters:
        """The parameters that differ from their defaults, as in an address."""
        given = self.model_dump(exclude_defaults=True, exclude=_ROW_FIELDS)
        return {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()
        }

    @property
    def is_narrowed(self) -> bool:
        """Whether there are parameters other than the search words and the page."""
        return bool(self.parameters.keys() - {"q", "name", "page", "after"})

    def search(self, context: Context) -> dict[str, Any]:
        """Return the arguments of `AsyncReader.search_query` and `AsyncReader.overview`."""
        given = {"words": self.q, "where": values_by_field(self.where), "time_zone": context.zone.key}
        return self.model_dump(include=_SEARCH_FIELDS) | given

    def dated(self, zone: ZoneInfo) -> Self:
        """Return the form with the beginning of its period as `since`."""
        if self.period is None or self.since or self.until:
            return self
        now = datetime.now(UTC)
        since = str(now.astimezone(zone).date())
        if length := _LENGTHS.get(self.period):
            since = (now - length).isoformat(timespec="minutes")
        return self.model_copy(update={"since": since, "period": None})

    async def options(self, context: Context) -> dict[str, Any]:
        """Return the arguments of `AsyncReader.list`."""
        query = None
        if self.q or self.since or self.until or self.source or self.where:
            query = await context.reader.search_query(context.index, **self.search(context))
        given = self.model_dump(exclude={"q", "time_zone", *_PAGE_FIELDS, *_SEARCH_FIELDS})
        return given | {"query": query, "arrived_since": self.arrived_since or None}


class PageForm(Form):
    """The parameters of the list page, with contradictions resolved."""

    compact: bool = False
    """Show each row in two lines on pages, without its text."""
    name: Annotated[str, Field(max_length=_LONGEST_NAME)] = ""
    """A name for this search, which is the title of its page and of its feed."""

    @model_validator(mode="after")
    def _resolve(self) -> "PageForm":
        if self.since or self.until:
            self.period = None
        if not self.dedup:
            self.head, self.min_similar, self.min_sources = None, 0, 0
            if self.sort in SORTS_BY_COUNT:
                self.sort = None
        return self

    def changed(self, **changes: object) -> Parameters:
        """Return the parameters of the first page of this list with some parameters changed."""
        size = self.model_dump(exclude_defaults=True, include={"size"})
        same = self.parameters | size | {"page": "", "after": ""}
        return same | ({"name": ""} if changes.keys() - _VIEW_FIELDS else {}) | changes

    @classmethod
    def of_address(cls, query: str) -> "PageForm":
        """Read the query of a list's address; an invalid query means the list of all articles."""
        try:
            given = parse_qs(query)
            return cls.model_validate(
                {name: values if name in REPEATABLE else values[-1] for name, values in given.items()}
            )
        except ValueError:
            return cls()


# A browser's time input sends hours and minutes.
_TimeOfDay = Annotated[str, Field(pattern=r"^([0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$")]


class SubmittedForm(PageForm):
    """The parameters of the list page as its form sends them, with days separate from times of day."""

    since_time: _TimeOfDay = ""
    until_time: _TimeOfDay = ""
    chosen: Annotated[list[str], AfterValidator(_each_once), Field(max_length=MAX_CHOSEN)] = []
    """The articles of rows that an editor has chosen to merge, on this page or on others."""

    def at_times(self, today: date) -> "SubmittedForm":
        """Merge times of day into the days; a time without a day means today."""
        moments = {
            name: f"{getattr(self, name) or today}T{time}"
            for name in ("since", "until")
            if (time := getattr(self, f"{name}_time"))
        }
        without = {"since_time": "", "until_time": ""} | ({"period": None} if moments else {})
        return self.model_copy(update=moments | without)


REPEATABLE = frozenset(
    name for name, field in SubmittedForm.model_fields.items() if get_origin(field.annotation) is list
)
"""The parameters that may be given several times."""

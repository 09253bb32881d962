"""The languages of the interface: negotiation, messages, and formats of times and numbers.

English messages are the keys of their translations; `locale/zh.po` has the Chinese translations. The file is
read directly, so there is no compiled catalogue that could be out of date.
"""

import dataclasses
import functools
import gettext
import io
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from importlib import resources
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import babel
from babel import dates, numbers, units
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from esdedup.times import DAY_MS, time_ms
from esdedup.web.context import Context

NAMES = {"en": "English", "zh": "中文"}
"""The languages by code, each in its own name. The first is the default."""
COOKIE = "esdedup_language"
"""The cookie with the chosen language, which overrides the browser's preference."""

_UTC = ZoneInfo("UTC")
_YEAR_S = 365 * 24 * 3600
# The longest address to return to; the address of an article's page contains the search, which may be long.
_LONGEST_BACK = 32_000
# Times that are further from the current time are not written as a distance from it.
_RECENT = timedelta(days=7)

# A language in `Accept-Language`, and its quality if it is not 1.
_PREFERENCE = re.compile(r"([\w*-]+)\s*(?:;\s*q=([0-9](?:\.[0-9]*)?)\s*)?(?:,|$)")

router = APIRouter(include_in_schema=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Language:
    """One language of the interface."""

    # A key of `NAMES`.
    code: str
    locale: babel.Locale
    translations: gettext.NullTranslations
    # The zone in which times are written.
    zone: ZoneInfo = _UTC

    def gettext(self, message: str, /, **values: object) -> str:
        """Translate a message, and put values into it: ``gettext("first: %(source)s", source=…)``."""
        translated = self.translations.gettext(message)
        return translated % values if values else translated

    def ngettext(self, singular: str, plural: str, count: int, /, **values: object) -> str:
        """Translate a message about a number of things."""
        translated = self.translations.ngettext(singular, plural, count)
        return translated % values if values else translated

    def number(self, value: float) -> str:
        """Write a number: 12,345."""
        return _number(value, self.code)

    def percent(self, share: float) -> str:
        """Write a fraction as a percentage: 12%."""
        return numbers.format_percent(share, locale=self.locale)

    def moment(self, value: object) -> str:
        """Write a time, in any stored form, as day and minute; return other text unchanged."""
        day, found = self.day(value), calendar_time(value, self.zone)
        return self.locale.datetime_formats["medium"].format(f"{found:%H:%M}", day) if found else day

    def day(self, value: object) -> str:
        """Write the day of a time."""
        found = calendar_time(value, self.zone)
        if found is None:
            return "" if value is None else str(value)
        return _day(found.date(), self.code)

    def ago(self, value: object, now: datetime) -> str:
        """Write how long ago a time was; empty after a week, or if it is not a time."""
        found = calendar_time(value)
        if found is None or abs(now - found) > _RECENT:
            return ""
        return dates.format_timedelta(found - now, add_direction=True, locale=self.locale)

    def name_of(self, code: str) -> str:
        """Return the name of a language by its code, or the code itself if unknown."""
        try:
            found = babel.Locale.parse(code, sep="-" if "-" in code else "_")
        except (ValueError, babel.UnknownLocaleError):
            return code
        return found.get_display_name(self.locale) or code

    def length(self, milliseconds: int) -> str:
        """Write a length of time in days, hours, minutes or seconds: 2 hours."""
        if milliseconds >= DAY_MS:
            # Weeks and months would be too coarse. For Chinese, Babel knows only the short form.
            return units.format_unit(
                milliseconds // DAY_MS, "duration-day", length="short", locale=self.locale
            )
        return dates.format_timedelta(timedelta(milliseconds=milliseconds), threshold=1, locale=self.locale)


# Cached because a page repeats days and numbers, and Babel parses its patterns for each of them.
@functools.lru_cache(maxsize=4_096)
def _day(day: date, code: str) -> str:
    return dates.format_skeleton("yMMMd", datetime.combine(day, time.min), locale=code)


@functools.lru_cache(maxsize=4_096)
def _number(value: float, code: str) -> str:
    return numbers.format_decimal(value, locale=code)


@functools.cache
def language(code: str) -> Language:
    """Return the language with this code in `NAMES`; it writes times in UTC."""
    translations = gettext.NullTranslations()
    if code != next(iter(NAMES)):
        with (resources.files("esdedup.web") / "locale" / f"{code}.po").open("rb") as file:
            catalogue = read_po(file, locale=code)
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        translations = gettext.GNUTranslations(compiled)
    return Language(code=code, locale=babel.Locale.parse(code), translations=translations)


def language_of(context: Context, code: str | None = None) -> Language:
    """Return the language with this code, by default the visitor's choice, with the visitor's time zone."""
    found = language(code or chosen(context.request.headers, context.request.cookies))
    return dataclasses.replace(found, zone=context.zone)


def chosen(headers: Mapping[str, str], cookies: Mapping[str, str]) -> str:
    """Return the chosen language, or the language that the browser prefers."""
    code = cookies.get(COOKIE)
    if code not in NAMES:
        named = _PREFERENCE.findall(headers.get("accept-language", ""))
        qualities = {tag: float(quality or 1) for tag, quality in named}
        tags = sorted(filter(qualities.get, qualities), key=lambda tag: -qualities[tag])
        code = babel.negotiate_locale(tags, list(NAMES), sep="-") or next(iter(NAMES))
    return code


def calendar_time(value: object, zone: tzinfo = UTC) -> datetime | None:
    """Parse a time in any stored form; None if it is invalid, or in a year that `datetime` lacks."""
    milliseconds = time_ms(value, zone)
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds // 1000, zone)
    except (ValueError, OverflowError, OSError):
        return None


@router.get("/language")
async def choose_language(
    request: Request, to: Literal["en", "zh"], back: Annotated[str, Query(max_length=_LONGEST_BACK)] = "/"
) -> RedirectResponse:
    """Store the language in a cookie, and redirect back."""
    prefix = request.scope.get("root_path", "")
    # An address that begins with two slashes would name another host.
    path = back.lstrip("/\\")
    answer = RedirectResponse(f"{prefix}/{path}", status_code=303)
    keep_cookie(request, answer, COOKIE, to, max_age_s=_YEAR_S)
    return answer


def keep_cookie(request: Request, answer: Response, name: str, value: str, *, max_age_s: int) -> None:
    """Set a cookie for these pages only."""
    answer.set_cookie(
        name,
        value,
        max_age=max_age_s,
        path=request.scope.get("root_path", "") or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )

"""Exports of a list: a feed, CSV for spreadsheets, and JSON Lines for scripts.

Feeds are written with the standard library: packages for feeds bring their own models and XML parsers, but
write the same twenty elements.
"""

import asyncio
import csv
import html
import io
import re
import unicodedata
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from esdedup.elastic.limits import MAX_HITS
from esdedup.errors import Refused
from esdedup.reading.results import Page, Row
from esdedup.serving.problems import described
from esdedup.times import iso, time_ms
from esdedup.web.context import Context, ContextDep
from esdedup.web.form import PageForm
from esdedup.web.formats import article_address, bounded, joined, link, shortened, source_names
from esdedup.web.guards import UNKEPT
from esdedup.web.languages import Language, calendar_time, language_of

MAX_EXPORTED = MAX_HITS
"""The maximum number of rows in an export, as on numbered pages. Reading them takes a few seconds."""
_MAX_EXPORTED_BYTES = 8_000_000
"""The size at which an export is cut off: a row has about 300 bytes, but may have many further fields."""
_READ_AT_ONCE = 1_000
# Limits concurrent exports, which take a long time, so that pages are still served.
_EXPORTS = asyncio.Semaphore(2)
_COLUMNS = (
    *("root", "similar", "matching", "sources", "first", "last"),
    *("title", "source", "published_at", "url", "index", "id"),
)
"""The columns; the fields of `source_includes` follow."""
# Spreadsheets treat a cell that begins with one of these characters, even in full width or after invisible
# characters, as a formula, which could send other cells to a server.
_FORMULA, _BREAKS = "=+-@", ("\t", "\r", "\n")
_FEED_TYPE = "application/rss+xml"
_ATOM, _DC = "http://www.w3.org/2005/Atom", "http://purl.org/dc/elements/1.1/"
# Characters that XML 1.0 cannot contain, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

ET.register_namespace("atom", _ATOM)
ET.register_namespace("dc", _DC)


class ExportForm(PageForm):
    """The parameters of an export: all parameters of the list."""

    size: Annotated[int, Field(ge=1, le=MAX_EXPORTED)] = MAX_EXPORTED
    """The maximum number of rows to export."""


class FeedForm(PageForm):
    """The parameters of a feed: all parameters of the list, and its language."""

    lang: Literal["en", "zh"] | None = None
    """The language of the feed's own words. Default: as the header `Accept-Language` requests."""


_Exported = Annotated[ExportForm, Query()]
router = APIRouter(
    responses=described(
        s400="A parameter is invalid.", s409="The index is missing or lacks esdedup's fields."
    )
)


def _file_of(media_type: str, example: str) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"type": "string"}, "example": example}
    return {200: {"description": "The file.", "content": {media_type: schema}}}


@router.get(
    "/feed.rss",
    summary="The list as a feed (RSS 2.0)",
    response_class=Response,
    responses=_file_of(_FEED_TYPE, '<rss version="2.0"><channel><title>news</title>…'),
)
async def feed(context: ContextDep, form: Annotated[FeedForm, Query()]) -> Response:
    """Returns an item for each row, newest first unless another sort is requested.

    A growing cluster remains one item in feed readers.
    """
    options = await form.dated(context.zone).options(context)
    options |= {"details": True, "sort": form.sort or "newest"}
    page = bounded(await context.reader.list(context.index, **options))
    language = language_of(context, form.lang)
    headers = {"Content-Language": language.code, "Vary": "Accept-Language, Cookie"}
    written = rss(page, form, context, language)
    return Response(written, media_type=f"{_FEED_TYPE}; charset=utf-8", headers=headers)


@router.get(
    "/export.csv",
    summary="The rows of the list as CSV",
    response_class=Response,
    responses=_file_of("text/csv", ",".join(_COLUMNS)),
)
async def export_csv(context: ContextDep, form: _Exported) -> Response:
    """Returns the first rows of the list, after a header; times are ISO 8601.

    A file has at most 10,000 rows and about eight million bytes. Its name says how many of all rows it
    contains, and the header `Link` contains the address of the remaining rows. Texts that a spreadsheet
    would treat as a formula begin with an apostrophe.
    """
    # CSV has no details, and Excel needs a byte order mark to recognise UTF-8.
    form, included = form.model_copy(update={"details": False}), form.source_includes
    header = "\ufeff" + _csv_line([*_COLUMNS, *included])

    def write(row: Row) -> str:
        values = row.model_dump(mode="json", include=set(_COLUMNS))
        for name in ("published_at", "first", "last"):
            values[name] = joined(values[name], lambda value: _time(value, context.zone))
        values["source"] = row.source and source_names(row.source)
        further = row.included or {}
        return _csv_line([*(values[name] for name in _COLUMNS), *(further.get(name) for name in included)])

    return await _export(context, form, write=write, header=header, media_type="text/csv")


@router.get(
    "/export.jsonl",
    summary="The rows of the list as JSON Lines",
    response_class=Response,
    responses=_file_of("application/jsonl", '{"id": "en-17-3", "index": "news", "root": "122c0d63…", …}'),
)
async def export_jsonl(context: ContextDep, form: _Exported) -> Response:
    """Returns the first rows of the list, one on each line as in `/api/v1/list`; times are ISO 8601.

    A file has at most 10,000 rows and about eight million bytes. Its name says how many of all rows it
    contains, and the header `Link` contains the address of the remaining rows.
    """

    def write(row: Row) -> str:
        times = {name: _time(getattr(row, name), context.zone) for name in ("published_at", "first", "last")}
        return row.model_copy(update=times).model_dump_json() + "\n"

    return await _export(context, form, write=write, media_type="application/jsonl")


async def _export(
    context: Context,
    form: ExportForm,
    *,
    write: Callable[[Row], str],
    media_type: str,
    header: str = "",
) -> Response:
    """Read the rows in chunks, and return a file of them."""
    if _EXPORTS.locked():
        busy = "too many exports are in progress; try again"
        raise Refused(busy, status=503, kind="requests")
    form = form.dated(context.zone)
    async with _EXPORTS:
        options = await form.options(context) | {"page": 1}
        # Articles not indexed through esdedup may contain lone surrogates, which UTF-8 cannot encode.
        body, count = bytearray(header.encode("utf-8", "replace")), 0
        # A row's details are about as large as ten further fields.
        at_once = max(1, _READ_AT_ONCE // (1 + len(form.source_includes) + 10 * form.details))
        while True:
            size = min(form.size - count, at_once)
            found = await context.reader.list(context.index, **options | {"size": size})
            body += "".join(map(write, bounded(found).rows)).encode("utf-8", "replace")
            count += len(found.rows)
            if found.next is None or count >= form.size or len(body) >= _MAX_EXPORTED_BYTES:
                break
            options["after"] = found.next
    # The index may be a pattern or a list of names, with stars and commas.
    what = re.sub("[^A-Za-z0-9]+", "-", context.index).strip("-") or "articles"
    about = "" if found.total_rows_exact else "about-"
    name = f"{what}-{count}-of-{about}{found.total_rows}.{media_type.rpartition('/')[2]}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": UNKEPT}
    if found.next is not None:
        following = context.request.url.include_query_params(after=found.next)
        if form.since:
            # The cursor is valid only for the same moment, which a period has at each request anew.
            following = following.include_query_params(since=form.since)
        headers["Link"] = f'<{following.remove_query_params("page")}>; rel="next"'
    return Response(bytes(body), media_type=media_type, headers=headers)


def _csv_line(values: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: Any) -> Any:
    """Return the content of a cell; an apostrophe before a formula makes spreadsheets treat it as text."""
    if value is None or isinstance(value, int | float):
        return value
    text = joined(value)
    first = next((each for each in text if each.isprintable() and not each.isspace()), " ")
    is_formula = unicodedata.normalize("NFKC", first)[0] in _FORMULA or text.startswith(_BREAKS)
    return f"'{text}" if is_formula else text


def _time(value: object, zone: ZoneInfo) -> object:
    milliseconds = time_ms(value)
    return value if milliseconds is None else iso(milliseconds, zone)


def rss(page: Page, form: PageForm, context: Context, language: Language) -> bytes:
    """Return a page of a list, with the details of its rows, as a feed."""
    request, index, _ = context.request, context.index, language.gettext
    base = str(request.base_url).rstrip("/")
    listed = urlencode(form.parameters, doseq=True)
    feed = ET.Element("rss", version="2.0")
    channel = ET.SubElement(feed, "channel")
    title = form.name or (_("%(name)s: %(value)s", name=index, value=form.q) if form.q else index)
    _add(channel, "title", shortened(title))
    _add(channel, "link", f"{base}/?{listed}" if listed else f"{base}/")
    about = _("Articles of %(index)s, one item for each story and its reprints.", index=index)
    _add(channel, "description", about)
    _add(channel, "language", language.code)
    address = _readable(str(request.url))
    ET.SubElement(channel, f"{{{_ATOM}}}link", href=address, rel="self", type=_FEED_TYPE)
    moments = [moment for row in page.rows if (moment := calendar_time(row.arrived_at or row.published_at))]
    if moments:
        # The newest row's time, so that the feed does not change until there is a newer row.
        _add(channel, "lastBuildDate", format_datetime(max(moments)))
    for row in page.rows:
        # The root of a cluster never changes, so feed readers show a growing cluster once.
        identity = f"cluster:{row.root}" if form.dedup else f"article:{row.index}/{row.id}"
        _add_item(channel, row, identity=identity, page=base + article_address(index, row), language=language)
    written: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _add_item(channel: ET.Element, row: Row, *, identity: str, page: str, language: Language) -> None:
    _, counted, item = language.gettext, language.ngettext, ET.SubElement(channel, "item")
    _add(item, "title", shortened(row.title or _("(no title)")))
    _add(item, "link", link(row.url) or page)
    _add(item, "guid", f"urn:esdedup:{identity}")
    item[-1].set("isPermaLink", "false")
    moment = calendar_time(row.arrived_at or row.published_at)
    if moment is not None:
        _add(item, "pubDate", format_datetime(moment))
    if row.source is not None:
        _add(item, f"{{{_DC}}}creator", source_names(row.source))
    text = "" if row.details is None else "".join(part.text for part in row.details.snippet.text)
    number = language.number(row.similar)
    counts = [
        counted("%(number)s similar article", "%(number)s similar articles", row.similar, number=number)
    ]
    if row.sources is not None:
        number = language.number(row.sources)
        counts.append(counted("%(number)s source", "%(number)s sources", row.sources, number=number))
    similar = f'<a href="{html.escape(page)}">{_(", ").join(counts)}</a>'
    _add(item, "description", f"<p>{html.escape(text)}</p><p>{similar}</p>")


def _add(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = _readable(text)


def _readable(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)

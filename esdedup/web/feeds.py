"""A list as a feed (RSS 2.0). Pure.

Written with the standard library: packages for feeds bring their own models and parsers of XML, for the same
twenty elements.
"""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from xml.etree import ElementTree as ET

from esdedup.reading.results import Page, Row
from esdedup.times import time_ms
from esdedup.web.formats import link, shortened, source_names

MEDIA_TYPE = "application/rss+xml"
_ATOM, _DC = "http://www.w3.org/2005/Atom", "http://purl.org/dc/elements/1.1/"
# What XML 1.0 cannot have, however it is written.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

ET.register_namespace("atom", _ATOM)
ET.register_namespace("dc", _DC)


def rss(
    page: Page,
    *,
    title: str,
    about: str,
    address: str,
    listed: str,
    is_by_cluster: bool,
    page_of: Callable[[Row], str],
) -> bytes:
    """Return a page of a list as a feed.

    Args:
        page: With the details of its rows.
        title: Of the feed.
        about: What is in it.
        address: Of the feed itself.
        listed: The address of the list.
        is_by_cluster: Whether each row is a cluster, else an article.
        page_of: Returns the address of the page of a row's article.
    """
    feed = ET.Element("rss", version="2.0")
    channel = ET.SubElement(feed, "channel")
    _add(channel, "title", title)
    _add(channel, "link", listed)
    _add(channel, "description", about)
    ET.SubElement(channel, f"{{{_ATOM}}}link", href=_readable(address), rel="self", type=MEDIA_TYPE)
    moments = [moment for row in page.rows if (moment := _moment(row)) is not None]
    if moments:
        # The feed is the same until there is something new.
        _add(channel, "lastBuildDate", format_datetime(max(moments)))
    for row in page.rows:
        # The root of a cluster never changes: however it grows, feed readers show it once.
        identity = f"cluster:{row.root}" if is_by_cluster else f"article:{row.index}/{row.id}"
        _add_item(channel, row, identity=identity, page=page_of(row))
    written: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _add_item(channel: ET.Element, row: Row, *, identity: str, page: str) -> None:
    item = ET.SubElement(channel, "item")
    _add(item, "title", shortened(row.title or "(no title)"))
    _add(item, "link", link(row.url) or page)
    _add(item, "guid", f"urn:esdedup:{identity}")
    item[-1].set("isPermaLink", "false")
    moment = _moment(row)
    if moment is not None:
        _add(item, "pubDate", format_datetime(moment))
    if row.source is not None:
        _add(item, f"{{{_DC}}}creator", source_names(row.source))
    text = "" if row.details is None else "".join(part.text for part in row.details.snippet.text)
    similar = f'<a href="{html.escape(page)}">{_counts(row)}</a>'
    _add(item, "description", f"<p>{html.escape(text)}</p><p>{similar}</p>")


def _counts(row: Row) -> str:
    articles = "1 similar article" if row.similar == 1 else f"{row.similar:,} similar articles"
    sources = "" if row.sources is None else f", {row.sources:,} source{'s' * (row.sources != 1)}"
    return articles + sources


def _moment(row: Row) -> datetime | None:
    milliseconds = time_ms(row.arrived_at or row.published_at)
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        # Outside the calendar.
        return None


def _add(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = _readable(text)


def _readable(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)

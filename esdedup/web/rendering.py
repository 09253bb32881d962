"""Renders pages: prepares the templates and their filters for each language, and returns responses."""

import functools
from datetime import UTC, datetime
from urllib.parse import quote

import jinja2
from fastapi.responses import HTMLResponse

from esdedup.web import formats, languages
from esdedup.web.context import Context
from esdedup.web.languages import Language, language_of


def render(name: str, context: Context, *, status_code: int = 200, **values: object) -> HTMLResponse:
    """Render a template in the visitor's language, as an HTTP response."""
    language, scope = language_of(context), context.request.scope
    # The address of the page itself, to which the language switch returns.
    own, query = quote(scope["path"].removeprefix(context.prefix)), scope["query_string"].decode("latin-1")
    own += f"?{query}" if query else ""
    html = _environment(language).get_template(name).render(context=context, own=own, **values)
    return HTMLResponse(
        # Articles not indexed through esdedup may contain lone surrogates, which UTF-8 cannot encode.
        html.replace("\0", "\ufffd").encode("utf-8", "replace"),
        status_code=status_code,
        headers={"Content-Language": language.code, "Vary": "Accept-Language, Cookie"},
    )


# Visitors usually share a few time zones; compiling the templates for another zone takes milliseconds.
@functools.lru_cache(maxsize=16)
def _environment(language: Language) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("esdedup.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    # The extension adds this method.
    environment.install_gettext_callables(  # type: ignore[attr-defined]
        language.gettext, language.ngettext, newstyle=True
    )
    comma = language.gettext(", ")
    environment.filters |= {
        "ago": lambda value: language.ago(value, datetime.now(UTC)),
        "duration": language.length,
        "language": formats.language,
        "later_ms": formats.later_ms,
        "link": formats.link,
        "listed": comma.join,
        "machine_time": formats.machine_time,
        "moment": lambda value: formats.shortened(formats.joined(value, language.moment)),
        "number": language.number,
        "percent": language.percent,
        "shortened": formats.shortened,
        "own_language": formats.own_language,
        "place": formats.place,
        "thumbnail": formats.thumbnail,
        "source": lambda value: formats.source_names(value, comma=comma) or language.gettext("no source"),
        # For messages marked in Python, whose percent signs `_` would treat as placeholders.
        "translated": language.gettext,
    }
    environment.globals |= {
        "address": formats.address,
        "comparison_of": lambda context, *two, **others: (
            context.prefix + formats.comparison_address(*two, **others)
        ),
        "language": language,
        "languages": languages.NAMES,
        "max_shown": formats.MAX_SHOWN_TEXT,
        "max_spans": formats.MAX_SPANS,
        "page_of": lambda context, article, **others: (
            context.prefix + formats.article_address(context.index, article, **others)
        ),
        "zone": language.zone.key,
    }
    environment.tests["day"] = formats.is_day
    return environment

"""The page that compares two articles: what differs between them, and why they are one story or not."""

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from esdedup.errors import ArticleNotFound, EsdedupError, ServerUnavailable, SettingError
from esdedup.reading.results import FullArticle
from esdedup.web.article_page import LONGEST_LISTED
from esdedup.web.differences import MAX_TOKENS
from esdedup.web.explanation import ExplanationForReaders, explained
from esdedup.web.form import PageForm
from esdedup.web.formats import MAX_SHOWN_TEXT, MAX_SPANS
from esdedup.web.languages import Language
from esdedup.web.rendering import language_of, render
from esdedup.web.shown_text import shown_text
from esdedup.web.site import CurrentSite, Site

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Place = Annotated[str, Query(min_length=1)]


@router.get("/compare")
async def comparison_page(
    request: Request,
    site: CurrentSite,
    one: Place,
    other: Place,
    listed: Annotated[str, Query(max_length=LONGEST_LISTED)] = "",
) -> HTMLResponse:
    """Compare two articles, called A and B. Each is one value of a form: see `read_place`."""
    first, second = await _article(site, one), await _article(site, other)
    is_one_article = (first.index, first.id) == (second.index, second.id)
    return render(
        "comparison.html",
        request,
        articles={"A": first, "B": second},
        is_one_article=is_one_article,
        shown=None if is_one_article else await shown_text(site, first, second),
        max_shown=MAX_SHOWN_TEXT,
        max_spans=MAX_SPANS,
        max_words=MAX_TOKENS,
        explained=None if is_one_article else await _explained(site, first, second, language_of(request)),
        form=PageForm.of_address(listed),
        listed=listed,
    )


async def _article(site: Site, place: str) -> FullArticle:
    index, article_id = read_place(place)
    if index is not None or article_id != place:
        try:
            return await site.article(article_id, in_index=index)
        except (ArticleNotFound, SettingError):
            # An id may have slashes too, or be an address.
            pass
    return await site.article(place)


def read_place(text: str) -> tuple[str | None, str]:
    """Read where an article is: the index, None if it is not named, and the id.

    Args:
        text: An index, a slash and an id; an id; or the address of an article's page.
    """
    path, _, query = text.strip().partition("?")
    if path.startswith(("http:", "https:", "/")) and path.endswith("/article"):
        parameters = dict(parse_qsl(query.partition("#")[0]))
        return parameters.get("index"), parameters.get("id", "")
    # No index has a slash in its name; an id may.
    index, slash, article_id = text.partition("/")
    return (index, article_id) if slash else (None, text)


async def _explained(
    site: Site, one: FullArticle, other: FullArticle, language: Language
) -> ExplanationForReaders | str:
    """Explain two articles in words, or return why that is not possible, such as a text that is missing."""
    try:
        found = await site.reader.explain(
            site.index, one.id, other.id, in_index=one.index, other_in_index=other.index
        )
    except ServerUnavailable:
        # It may name addresses.
        raise
    except EsdedupError as error:
        return str(error)
    return explained(found, language)

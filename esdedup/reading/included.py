"""Further fields of articles, which the user names: read after the articles are known, if asked for."""

from collections.abc import Sequence
from typing import TypeVar

from esdedup.elastic.requests import Requests, search
from esdedup.errors import SettingError
from esdedup.fields import value_of
from esdedup.reading.hits import Hit, place_of
from esdedup.reading.queries import by_ids
from esdedup.reading.results import Article, Page, SimilarPage

MAX_INCLUDED = 20
"""The most fields that are read beside those that every article has."""

_Page = TypeVar("_Page", Page, SimilarPage)
_Article = TypeVar("_Article", bound=Article)


def check_names(names: Sequence[str]) -> None:
    """Refuse names of further fields before anything is read.

    Raises:
        SettingError: There are too many names, or one cannot be that of a field.
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise SettingError("source_includes is a list of the names of fields")
    if len(names) > MAX_INCLUDED:
        raise SettingError(f"source_includes names {len(names):,} fields; at most {MAX_INCLUDED} are read")
    for name in names:
        if not all(name.split(".")) or "*" in name:
            raise SettingError(f"{name!r:.100} cannot name a field of source_includes: give its full name")


def including(page: _Page, index: str, names: Sequence[str]) -> Requests[_Page]:
    """Return a page of an index with further fields in the article of each row; no names add nothing."""
    if not names:
        return page
    rows = yield from _with_fields(page.rows, index, names)
    return page.model_copy(update={"rows": rows})


def including_in_article(article: _Article, index: str, names: Sequence[str]) -> Requests[_Article]:
    """Return an article of an index with further fields."""
    if not names:
        return article
    (found,) = yield from _with_fields((article,), index, names)
    return found


def _with_fields(
    articles: Sequence[_Article], index: str, names: Sequence[str]
) -> Requests[tuple[_Article, ...]]:
    if not articles:
        return ()
    body = by_ids([article.id for article in articles]) | {"_source": list(names)}
    (answer,) = yield from search(index, body)
    found = {place_of(hit): hit for hit in answer["hits"]["hits"]}
    return tuple(
        article.model_copy(update={"included": _values(found.get((article.index, article.id)), names)})
        for article in articles
    )


def _values(hit: Hit | None, names: Sequence[str]) -> dict[str, object]:
    source = {} if hit is None else hit.get("_source", {})
    return {name: value_of(source, name) for name in names}

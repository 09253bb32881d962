"""The versions of a story: the distinct texts in a cluster, each with the articles that have it."""

from typing import Any, Literal, get_args

from esdedup.elastic.requests import UNREAD, Query, Requests
from esdedup.errors import SettingError
from esdedup.fields import Fields, term_of
from esdedup.reading.articles import ArticleId, InIndex, find_article
from esdedup.reading.clusters import Similarity, other_articles
from esdedup.reading.excerpts import linked_roots, search_with_excerpts
from esdedup.reading.paging import PageNumber, PageSize, Paging
from esdedup.reading.queries import Hit, articles_in, fields_read, number_of_unread, order, with_signature
from esdedup.reading.results import Article, Result, SimilarArticle, StoryPage
from esdedup.reading.scope import IndexName, Scope

# The maximum number of texts that are counted.
_MAX_COUNTED = 10_000
# The maximum number of further articles that are returned for each text.
_COPIES_SHOWN = 20

TimeOrder = Literal["oldest", "newest"]
"""Which texts come first."""


class Version(Result, frozen=True):
    """One text of a cluster: the first article that has it, in the order of the page, and its copies."""

    fingerprint: str | None
    """The fingerprint of these articles; None if the text has none."""
    article: SimilarArticle
    copies: int
    """How many further articles have this fingerprint, that is, the same text as far as it is compared."""
    copies_shown: tuple[Article, ...]
    """The first of these articles, at most 20."""


class VersionsPage(StoryPage, frozen=True):
    """The distinct texts of an article's cluster, in order of time."""

    total: int
    """Articles on all pages, including the article itself unless its source is left out."""
    total_versions: int
    """Distinct texts on all pages, at most 10,000."""
    versions: tuple[Version, ...]
    page: int
    """The number of the page, from 1."""
    size: int
    sort: TimeOrder
    """Which text comes first, and which article of each text is shown."""


def versions(
    scope: Scope,
    index: IndexName,
    article_id: ArticleId,
    *,
    in_index: InIndex = None,
    other_sources: bool = False,
    sort: TimeOrder = "oldest",
    page: PageNumber = 1,
    size: PageSize = 20,
) -> Requests[VersionsPage]:
    """Return the distinct texts of an article's cluster, each with its first article and its copies.

    The article itself is included. Articles with the same fingerprint are one version.

    Args:
        other_sources: Leave out articles from the article's own source, and so the article itself.
        sort: ``oldest`` returns texts in the order in which they appeared, each shown by its first article;
            ``newest`` returns the text with the latest article first, each shown by its latest article.
    """
    if sort not in get_args(TimeOrder):
        raise SettingError(f"there is no sort {sort!r} of versions; choose oldest or newest")
    start = Paging(page=page, size=size).start([], is_endless=False)
    ready = yield from scope.check(index)
    hit = yield from find_article(ready, article_id, in_index=in_index)
    query = other_articles(ready, hit, other_sources=other_sources, with_itself=True)
    body = versions_body(query, sort=sort, first=start.offset, size=size, fields=ready.fields)
    roots = linked_roots(hit, ready.fields)
    (answer,), story = yield from search_with_excerpts(ready, body, **roots)
    hits: list[Hit] = answer["hits"]["hits"]
    shown = Similarity.to(hit, ready.fields).articles(hits, ready.fields)
    return VersionsPage(
        **story,
        total=answer["hits"]["total"]["value"],
        total_versions=int(answer["aggregations"]["versions"]["count"]),
        versions=tuple(_version(*each, ready.fields) for each in zip(shown, hits, strict=True)),
        page=page,
        size=size,
        sort=sort,
    )


def _version(article: SimilarArticle, hit: dict[str, Any], fields: Fields) -> Version:
    same = hit["inner_hits"]["same"]
    copies = articles_in(same, fields)
    return Version(
        fingerprint=term_of(hit["_source"], fields.fingerprint),
        article=article,
        copies=same["hits"]["total"]["value"] - 1,
        copies_shown=tuple(each for each in copies if (each.index, each.id) != (article.index, article.id)),
    )


def versions_body(query: Query, *, sort: TimeOrder, first: int, size: int, fields: Fields) -> Query:
    """Return the search for a page of distinct texts: the first article of each, and some copies."""
    by_time = order(sort, fields)
    same = {"name": "same", "size": 1 + _COPIES_SHOWN, "sort": by_time, "_source": fields_read(fields)}
    return {
        "query": query,
        "sort": by_time,
        "collapse": {"field": fields.fingerprint, "inner_hits": same},
        "from": first,
        "size": size,
        "track_total_hits": True,
        "_source": with_signature(fields),
        "aggs": {
            # An article without a fingerprint has a cluster of its own.
            UNREAD: {"terms": {"field": fields.fingerprint, "size": _MAX_COUNTED, "missing": ""}},
            "versions": number_of_unread(),
        },
    }

"""Pages of similar articles: those of a cluster, or with one fingerprint."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.fields import Fields, value_of
from esdedup.reading.articles import check_names, find_article, including
from esdedup.reading.paging import Paging
from esdedup.reading.queries import Hit, check_term, order, root_of, with_signature
from esdedup.reading.results import SimilarPage
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.similarity import Similarity

_NOTHING = Similarity(None, b"")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarArticles:
    """Articles of one cluster, or with one fingerprint, to be read page by page."""

    index: str
    # The names of the articles' fields.
    fields: Fields
    # None: they may be of several clusters.
    root: str | None
    # Matches the articles.
    query: Query
    # Computes how similar each article is.
    similarity: Similarity = _NOTHING
    # Ties cursors to these articles.
    identity: Sequence[Any]

    def page(self, paging: Paging, source_includes: Sequence[str]) -> Requests[SimilarPage]:
        """Read a page, newest first, with further fields of each article."""
        start = paging.start(self.identity, is_endless=True)
        first = start.offset if start.place is None else 0
        body = cluster_members(
            self.query, first=first, after=start.place, size=paging.size, fields=self.fields
        )
        (answer,) = yield from search(self.index, body)
        hits, total = answer["hits"]["hits"], answer["hits"]["total"]["value"]
        following = None
        if hits and start.offset + len(hits) < total:
            following = start.next(rows=len(hits), place=hits[-1]["sort"]).write(self.identity)
        found = SimilarPage(
            root=self.root,
            total=total,
            rows=self.similarity.articles(hits, self.fields),
            page=start.page,
            size=paging.size,
            next=following,
        )
        return (yield from including(found, self.index, source_includes))


def cluster(
    scope: Scope,
    index: str,
    root: str,
    *,
    source_includes: Sequence[str] = (),
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[SimilarPage]:
    """Return the articles of a cluster, newest first.

    Args:
        index: An index, alias or pattern.
        root: The cluster's root.
        source_includes: Names of further fields of the articles, which each row then has in `included`;
            at most 20.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

    Returns:
        A page without articles if none has this root; how similar they are is not computed.

    Raises:
        SettingError: A value is invalid, or the page lies too deep.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    paging = Paging(page=page, size=size, after=after)
    check_names(source_includes)
    check_term("root", root)
    fields = (yield from scope.ready(index)).fields
    members = SimilarArticles(
        index=index, fields=fields, root=root, query=others(root, fields=fields), identity=[index, root]
    )
    return (yield from members.page(paging, source_includes))


def similar(
    scope: Scope,
    index: str,
    article_id: str,
    *,
    in_index: str | None = None,
    other_sources: bool = False,
    source_includes: Sequence[str] = (),
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[SimilarPage]:
    """Return the other articles of an article's cluster, newest first.

    Args:
        index: An index, alias or pattern.
        article_id: The article's id. If several indices have it, the article that arrived last.
        in_index: The index to take it from, if several have that id.
        other_sources: Leave out articles from the article's own source.
        source_includes: Names of further fields of the articles, which each row then has in `included`;
            at most 20.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: A value is invalid, or the page lies too deep.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    paging = Paging(page=page, size=size, after=after)
    check_names(source_includes)
    ready = yield from scope.ready(index)
    hit = yield from find_article(ready.fields, index, article_id, in_index=in_index)
    members = SimilarArticles(
        index=index,
        fields=ready.fields,
        root=root_of(hit, ready.fields),
        query=other_articles(index, ready, hit, other_sources=other_sources),
        similarity=Similarity.to(hit, ready.fields),
        identity=[index, article_id, in_index, other_sources],
    )
    return (yield from members.page(paging, source_includes))


def with_fingerprint(
    scope: Scope,
    index: str,
    fingerprint: str,
    *,
    source_includes: Sequence[str] = (),
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[SimilarPage]:
    """Return the articles with a fingerprint, newest first: the same text, as far as it is compared.

    They are in one cluster, unless the forest had forgotten the text before it came again, or they
    belong to several forests.

    Args:
        index: An index, alias or pattern.
        fingerprint: As the articles have it; it is also the id of their node.
        source_includes: Names of further fields of the articles, which each row then has in `included`;
            at most 20.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

    Returns:
        A page without articles if none has this fingerprint; how similar they are is not computed.

    Raises:
        SettingError: A value is invalid, or the page lies too deep.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    paging = Paging(page=page, size=size, after=after)
    check_names(source_includes)
    check_term("fingerprint", fingerprint)
    fields = (yield from scope.ready(index)).fields
    members = SimilarArticles(
        index=index,
        fields=fields,
        root=None,
        query=same_fingerprint(fingerprint, fields=fields),
        identity=[index, "fingerprint", fingerprint],
    )
    return (yield from members.page(paging, source_includes))


def other_articles(
    index: str, ready: ReadyIndex, hit: Hit, *, other_sources: bool, with_itself: bool = False
) -> Query:
    """Return the query for the other articles of an article's cluster, or for all of them.

    Raises:
        SettingError: A source is to be excluded, but the source field cannot be matched exactly.
    """
    source = value_of(hit["_source"], ready.fields.source) if other_sources else None
    return others(
        root_of(hit, ready.fields),
        fields=ready.fields,
        without=None if with_itself else (hit["_index"], hit["_id"]),
        source_field=None if source is None else ready.required_source_field(index),
        not_from=source if isinstance(source, list) else [] if source is None else [source],
    )


def others(
    root: str,
    *,
    fields: Fields,
    without: tuple[str, str] | None = None,
    source_field: str | None = None,
    not_from: Sequence[Any] = (),
) -> Query:
    """Return the query for the articles of a root, without one (index and id), and those of some sources."""
    excluded: list[Query] = []
    if without is not None:
        index, article_id = without
        excluded.append(
            {"bool": {"filter": [{"term": {"_index": index}}, {"ids": {"values": [article_id]}}]}}
        )
    if not_from and source_field is not None:
        excluded.append({"terms": {source_field: list(not_from)}})
    return {"bool": {"filter": [{"term": {fields.root: root}}], "must_not": excluded}}


def same_fingerprint(fingerprint: str, *, fields: Fields) -> Query:
    """Return the query for the articles with a fingerprint."""
    return {"bool": {"filter": [{"term": {fields.fingerprint: fingerprint}}]}}


def cluster_members(
    query: Query, *, first: int, after: Sequence[Any] | None, size: int, fields: Fields
) -> Query:
    """Return the search for a page of the articles that match, newest first."""
    place = {"from": first} if after is None else {"search_after": list(after)}
    return {
        "query": query,
        "sort": order("newest", fields),
        "size": size,
        "track_total_hits": True,
        "_source": with_signature(fields),
        **place,
    }

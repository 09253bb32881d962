"""The similar articles of one: who else published it, when, and how alike they are."""

from collections.abc import Sequence
from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import ArticleNotFound, SettingError
from esdedup.fields import value_of
from esdedup.reading import cluster_bodies as bodies
from esdedup.reading.cursor import Cursor
from esdedup.reading.hits import Hit, moment_of, root_of
from esdedup.reading.list_request import check_depth, check_paging
from esdedup.reading.results import SimilarPage, Source, SourcesPage
from esdedup.reading.scope import Ready, Scope
from esdedup.reading.similarity import Similarity


def similar(
    scope: Scope,
    index: str,
    article_id: str,
    *,
    in_index: str | None = None,
    other_sources: bool = False,
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Requests[SimilarPage]:
    """Return the other articles of an article's cluster, newest first.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        article_id: Of several articles with that id the one that came last.
        in_index: Its index, where several behind the name have one.
        other_sources: Leave out what the article's own source published.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the page before, in place of `page`; it goes on to the end of any
            cluster.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: A value makes no sense, or the page lies too deep.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    check_paging(page, size, after=after)
    ready = yield from scope.ready(index)
    itself = yield from find_article(scope, index, article_id, in_index=in_index)
    query = _others(scope, index, ready, itself, other_sources=other_sources)
    of = [index, article_id, in_index, other_sources]
    alike = Similarity.to(itself, scope.fields)
    return (
        yield from page_of(scope, index, root_of(itself, scope.fields), query, alike, of, page, size, after)
    )


def sources(
    scope: Scope,
    index: str,
    article_id: str,
    *,
    in_index: str | None = None,
    other_sources: bool = False,
    page: int = 1,
    size: int = 20,
) -> Requests[SourcesPage]:
    """Return which other media published an article, those with the most articles first.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        article_id: Of several articles with that id the one that came last; it is not counted itself.
        in_index: Its index, where several behind the name have one.
        other_sources: Leave out the article's own source.
        page: From 1; `page` times `size` is at most 10,000.
        size: Sources on a page, at most 1,000.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: A value makes no sense, or the source field is a text, by which nothing is grouped.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    check_paging(page, size, after=None)
    check_depth(page * size, can_go_on=False)
    ready = yield from scope.ready(index)
    itself = yield from find_article(scope, index, article_id, in_index=in_index)
    query = _others(scope, index, ready, itself, other_sources=other_sources)
    source_field = _source_field(scope, index, ready)
    body = bodies.count_sources(query, source_field=source_field, size=page * size)
    (answer,) = yield from search(index, body)
    found, total = answer["aggregations"], answer["hits"]["total"]["value"]
    names = [bucket["key"] for bucket in found["sources"]["buckets"]]
    named, has_nameless = int(found["total"]["count"]), bool(found["nameless"]["doc_count"])
    # What has no source stands last, on the page after which nothing comes.
    if has_nameless and len(names) == named < page * size:
        names.append(None)
    names = names[(page - 1) * size :]
    groups: list[dict[str, Any]] = []
    if names:
        body = bodies.of_sources(query, names=names, source_field=source_field, fields=scope.fields)
        (answer,) = yield from search(index, body)
        groups = answer["aggregations"]["sources"]["buckets"]
    alike = Similarity.to(itself, scope.fields)
    return SourcesPage(
        root=root_of(itself, scope.fields),
        total=total,
        total_sources=named + has_nameless,
        sources=[
            _source(scope, alike, *each) for each in zip(names, groups, strict=True) if each[1]["doc_count"]
        ],
        page=page,
        size=size,
    )


def find_article(scope: Scope, index: str, article_id: str, *, in_index: str | None = None) -> Requests[Hit]:
    """Find an article that has a root, in an index that is ready, with its text and what esdedup wrote.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
    """
    if not article_id:
        raise SettingError("the id of the article is empty")
    (answer,) = yield from search(
        index, bodies.one_article(article_id, fields=scope.fields, in_index=in_index)
    )
    hits = answer["hits"]["hits"]
    if not hits:
        raise ArticleNotFound(
            f"there is no article {article_id!r} in {index!r}", article=article_id, index=index
        )
    if value_of(hits[0]["_source"], scope.fields.root) is None:
        raise ArticleNotFound(
            f"the article {article_id!r} in {index!r} has no root: it was indexed without esdedup; "
            "index it anew",
            article=article_id,
            index=index,
        )
    itself: Hit = hits[0]
    return itself


def page_of(
    scope: Scope,
    index: str,
    root: str,
    query: Query,
    alike: Similarity,
    of: Sequence[Any],
    page: int,
    size: int,
    after: str | None,
) -> Requests[SimilarPage]:
    """Return a page of articles.

    Args:
        scope: Whose articles.
        index: An index, alias or pattern.
        root: Of all of them.
        query: Matches them.
        alike: Tells how alike each is.
        of: What the pages are of, for the cursor.
        page: From 1.
        size: Articles on a page.
        after: The cursor, or None.
    """
    begin = Cursor(page=page, offset=(page - 1) * size) if after is None else Cursor.read(after, of)
    if begin.place is None:
        check_depth(begin.offset + size, can_go_on=True)
    first = begin.offset if begin.place is None else 0
    body = bodies.members(query, first=first, after=begin.place, size=size, fields=scope.fields)
    (answer,) = yield from search(index, body)
    hits, total = answer["hits"]["hits"], answer["hits"]["total"]["value"]
    following = None
    if hits and begin.offset + len(hits) < total:
        place = hits[-1]["sort"]
        following = Cursor(page=begin.page + 1, offset=begin.offset + len(hits), place=place).write(of)
    return SimilarPage(
        root=root,
        total=total,
        articles=alike.articles(hits, scope.fields),
        page=begin.page,
        size=size,
        next=following,
    )


def _others(scope: Scope, index: str, ready: Ready, itself: Hit, *, other_sources: bool) -> Query:
    """Return the query for the other articles of the cluster."""
    source = value_of(itself["_source"], scope.fields.source) if other_sources else None
    own = source if isinstance(source, list) else [] if source is None else [source]
    return bodies.others(
        root_of(itself, scope.fields),
        fields=scope.fields,
        without=(itself["_index"], itself["_id"]),
        source_field=None if source is None else _source_field(scope, index, ready),
        not_from=own,
    )


def _source_field(scope: Scope, index: str, ready: Ready) -> str:
    if ready.source_field is None:
        raise SettingError(
            f"the sources in {index!r} cannot be told apart: {scope.fields.source!r} is a text; "
            "map it as keyword, or name a field that is one"
        )
    return ready.source_field


def _source(scope: Scope, alike: Similarity, name: Any, bucket: dict[str, Any]) -> Source:
    (earliest,) = alike.articles(bucket["earliest"]["hits"]["hits"], scope.fields)
    return Source(
        source=name,
        articles=bucket["doc_count"],
        first=moment_of(bucket["first"]),
        last=moment_of(bucket["last"]),
        earliest=earliest,
    )

"""Pages of similar articles: the cluster of an article, or the one that a text would join."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lookup import look_up
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.fields import Fields, value_of
from esdedup.forest import Kind
from esdedup.reading import cluster_bodies as bodies
from esdedup.reading.articles import find_article
from esdedup.reading.hits import Hit, root_of
from esdedup.reading.paging import Paging
from esdedup.reading.queries import check_term
from esdedup.reading.results import SimilarPage
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.similarity import Similarity
from esdedup.sites import site_name
from esdedup.text.left_out import left_out

_NOTHING = Similarity(None, b"")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Articles:
    """Articles of one cluster, or with one fingerprint, to be read page by page."""

    index: str
    # None: they may be of several clusters.
    root: str | None
    # Matches the articles.
    query: Query
    # Computes how similar each article is.
    similarity: Similarity
    # Ties cursors to these articles.
    identity: Sequence[Any]


def similar_to_article(
    scope: Scope, index: str, article_id: str, *, in_index: str | None, other_sources: bool, paging: Paging
) -> Requests[SimilarPage]:
    """Return the other articles of an article's cluster; see `Operations.similar`."""
    ready = yield from scope.ready(index)
    hit = yield from find_article(ready.fields, index, article_id, in_index=in_index)
    members = _Articles(
        index=index,
        root=root_of(hit, ready.fields),
        query=other_articles(index, ready, hit, other_sources=other_sources),
        similarity=Similarity.to(hit, ready.fields),
        identity=[index, article_id, in_index, other_sources],
    )
    return (yield from _page_of(members, paging, ready.fields))


def articles_of_cluster(scope: Scope, index: str, root: str, *, paging: Paging) -> Requests[SimilarPage]:
    """Return the articles of a cluster; see `Operations.cluster`."""
    check_term("root", root)
    fields = (yield from scope.ready(index)).fields
    members = _Articles(
        index=index,
        root=root,
        query=bodies.others(root, fields=fields),
        similarity=_NOTHING,
        identity=[index, root],
    )
    return (yield from _page_of(members, paging, fields))


def articles_with_fingerprint(
    scope: Scope, index: str, fingerprint: str, *, paging: Paging
) -> Requests[SimilarPage]:
    """Return the articles with a fingerprint; see `Operations.with_fingerprint`."""
    check_term("fingerprint", fingerprint)
    fields = (yield from scope.ready(index)).fields
    members = _Articles(
        index=index,
        root=None,
        query=bodies.with_fingerprint(fingerprint, fields=fields),
        similarity=_NOTHING,
        identity=[index, "fingerprint", fingerprint],
    )
    return (yield from _page_of(members, paging, fields))


def similar_to_text(
    scope: Scope, index: str, text: str, *, site: str | None, learned: LearnedCopy, paging: Paging
) -> Requests[SimilarPage]:
    """Return the articles of the cluster that a text would join; see `Operations.similar_to_text`."""
    fields = (yield from scope.ready(index)).fields
    name = None if site is None else site_name(site)
    assignment = yield from look_up(
        text,
        index=index,
        fields=fields,
        forest=scope.forest,
        profile=scope.profile,
        learned=learned,
        pins=scope.pins,
        site=name,
    )
    omitted = None
    if not scope.profile.keep_boilerplate:
        omitted = left_out(text, learned.omit_on(scope.pins)(name), max_length=scope.profile.max_text_length)
    if assignment.root is None or assignment.kind is Kind.NEW_ROOT:
        return SimilarPage(root=None, total=0, rows=(), page=paging.page, size=paging.size, left_out=omitted)
    members = _Articles(
        index=index,
        root=assignment.root,
        query=bodies.others(assignment.root, fields=fields),
        similarity=Similarity(scope.profile, assignment.signature),
        identity=[index, assignment.root],
    )
    found = yield from _page_of(members, paging, fields)
    return found.model_copy(update={"left_out": omitted})


def other_articles(index: str, ready: ReadyIndex, hit: Hit, *, other_sources: bool) -> Query:
    """Return the query for the other articles of an article's cluster.

    Raises:
        SettingError: A source is to be excluded, but the source field cannot be matched exactly.
    """
    source = value_of(hit["_source"], ready.fields.source) if other_sources else None
    own = source if isinstance(source, list) else [] if source is None else [source]
    return bodies.others(
        root_of(hit, ready.fields),
        fields=ready.fields,
        without=(hit["_index"], hit["_id"]),
        source_field=None if source is None else require_source_field(index, ready),
        not_from=own,
    )


def require_source_field(index: str, ready: ReadyIndex) -> str:
    """Return the field that sources are counted by.

    Raises:
        SettingError: The source field cannot be aggregated.
    """
    if ready.source_field is None:
        raise SettingError(
            f"the sources in {index!r} cannot be matched or grouped: the field {ready.fields.source!r} is "
            "mapped as text; map it as keyword, or name another field"
        )
    return ready.source_field


def _page_of(members: _Articles, paging: Paging, fields: Fields) -> Requests[SimilarPage]:
    start = paging.start(members.identity, is_endless=True)
    first = start.offset if start.place is None else 0
    body = bodies.cluster_members(
        members.query, first=first, after=start.place, size=paging.size, fields=fields
    )
    (answer,) = yield from search(members.index, body)
    hits, total = answer["hits"]["hits"], answer["hits"]["total"]["value"]
    following = None
    if hits and start.offset + len(hits) < total:
        following = start.next(rows=len(hits), place=hits[-1]["sort"]).write(members.identity)
    return SimilarPage(
        root=members.root,
        total=total,
        rows=members.similarity.articles(hits, fields),
        page=start.page,
        size=paging.size,
        next=following,
    )

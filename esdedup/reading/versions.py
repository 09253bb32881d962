"""The versions of a story: the distinct texts in a cluster, each with the articles that have it."""

from typing import Any

from esdedup.elastic.requests import Query, Requests, search
from esdedup.fields import Fields, term_of, value_of
from esdedup.reading import cluster_bodies as bodies
from esdedup.reading.articles import find_article
from esdedup.reading.cluster_members import require_source_field
from esdedup.reading.hits import Hit, root_of, values_of
from esdedup.reading.paging import Paging
from esdedup.reading.results import Article, SimilarArticle
from esdedup.reading.scope import ReadyIndex, Scope
from esdedup.reading.similarity import Similarity
from esdedup.reading.version_results import TimeOrder, Version, VersionsPage


def versions(
    scope: Scope,
    index: str,
    article_id: str,
    *,
    in_index: str | None,
    other_sources: bool,
    sort: TimeOrder,
    paging: Paging,
) -> Requests[VersionsPage]:
    """Return the versions in an article's cluster; see `Operations.versions`."""
    start = paging.start([], is_endless=False)
    ready = yield from scope.ready(index)
    hit = yield from find_article(ready.fields, index, article_id, in_index=in_index)
    body = bodies.versions(
        _members(index, ready, hit, other_sources=other_sources),
        sort=sort,
        first=start.offset,
        size=paging.size,
        fields=ready.fields,
    )
    (answer,) = yield from search(index, body)
    hits: list[Hit] = answer["hits"]["hits"]
    shown = Similarity.to(hit, ready.fields).articles(hits, ready.fields)
    return VersionsPage(
        root=root_of(hit, ready.fields),
        total=answer["hits"]["total"]["value"],
        total_versions=int(answer["aggregations"]["versions"]["count"]),
        versions=tuple(map(_version, shown, hits, [ready.fields] * len(hits))),
        page=paging.page,
        size=paging.size,
        sort=sort,
    )


def _members(index: str, ready: ReadyIndex, hit: Hit, *, other_sources: bool) -> Query:
    """Return the query for the articles of a cluster, without those of an article's source if asked to."""
    source = value_of(hit["_source"], ready.fields.source) if other_sources else None
    return bodies.others(
        root_of(hit, ready.fields),
        fields=ready.fields,
        source_field=None if source is None else require_source_field(index, ready),
        not_from=source if isinstance(source, list) else [] if source is None else [source],
    )


def _version(article: SimilarArticle, hit: dict[str, Any], fields: Fields) -> Version:
    same = hit["inner_hits"]["same"]["hits"]
    copies = (Article(**values_of(each, fields)) for each in same["hits"])
    return Version(
        fingerprint=term_of(hit["_source"], fields.fingerprint),
        article=article,
        copies=same["total"]["value"] - 1,
        copies_shown=tuple(each for each in copies if (each.index, each.id) != (article.index, article.id)),
    )

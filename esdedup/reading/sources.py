"""The sources in a cluster, and the sources in an index."""

from typing import Any

from esdedup.elastic import limits
from esdedup.elastic.requests import Query, Requests, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading import cluster_bodies as bodies
from esdedup.reading.articles import find_article
from esdedup.reading.cluster_members import other_articles, require_source_field
from esdedup.reading.hits import moment_of, root_of
from esdedup.reading.paging import Paging
from esdedup.reading.results import Source, SourcesPage
from esdedup.reading.scope import Scope
from esdedup.reading.similarity import Similarity


def sources(
    scope: Scope, index: str, article_id: str, *, in_index: str | None, other_sources: bool, paging: Paging
) -> Requests[SourcesPage]:
    """Return the sources in an article's cluster; see `Operations.sources`."""
    # Checks the depth; sources have numbered pages only.
    paging.start([], is_endless=False)
    ready = yield from scope.ready(index)
    hit = yield from find_article(scope, index, article_id, in_index=in_index)
    query = other_articles(scope, index, ready, hit, other_sources=other_sources)
    field = require_source_field(scope, index, ready)
    size = paging.page * paging.size
    (answer,) = yield from search(index, bodies.count_sources(query, source_field=field, size=size))
    counts = answer["aggregations"]
    names = _names(counts, size=size)[(paging.page - 1) * paging.size :]
    groups = yield from _groups(index, query, names, source_field=field, fields=scope.fields)
    similarity = Similarity.to(hit, scope.fields)
    return SourcesPage(
        root=root_of(hit, scope.fields),
        total=answer["hits"]["total"]["value"],
        total_sources=int(counts["total"]["count"]) + bool(counts["without_source"]["doc_count"]),
        sources=[
            _source(name, group, similarity, scope.fields)
            for name, group in zip(names, groups, strict=True)
            if group["doc_count"]
        ],
        page=paging.page,
        size=paging.size,
    )


def source_names(scope: Scope, index: str, *, size: int) -> Requests[tuple[str, ...]]:
    """Return the names of the largest sources; see `Operations.source_names`."""
    if not 1 <= size <= limits.MAX_BUCKETS:
        raise SettingError(f"{size:,} names of sources: from 1 to {limits.MAX_BUCKETS:,} are possible")
    ready = yield from scope.ready(index)
    if ready.source_field is None:
        return ()
    body = {"size": 0, "aggs": {"sources": {"terms": {"field": ready.source_field, "size": size}}}}
    (answer,) = yield from search(index, body)
    return tuple(sorted(str(bucket["key"]) for bucket in answer["aggregations"]["sources"]["buckets"]))


def source_field(scope: Scope, index: str) -> Requests[str | None]:
    """Return the field to match and count sources by; see `Operations.source_field`."""
    return (yield from scope.ready(index)).source_field


def _names(counts: dict[str, Any], *, size: int) -> list[Any]:
    """Return the first `size` sources; articles without one come last, as None."""
    names = [bucket["key"] for bucket in counts["sources"]["buckets"]]
    has_all = len(names) == int(counts["total"]["count"]) < size
    return [*names, None] if has_all and counts["without_source"]["doc_count"] else names


def _groups(
    index: str, query: Query, names: list[Any], *, source_field: str, fields: Fields
) -> Requests[list[dict[str, Any]]]:
    """Find the first, last and earliest article of each source, in the order of `names`."""
    if not names:
        return []
    body = bodies.of_sources(query, names=names, source_field=source_field, fields=fields)
    (answer,) = yield from search(index, body)
    groups: list[dict[str, Any]] = answer["aggregations"]["sources"]["buckets"]
    return groups


def _source(name: Any, group: dict[str, Any], similarity: Similarity, fields: Fields) -> Source:
    (earliest,) = similarity.articles(group["earliest"]["hits"]["hits"], fields)
    return Source(
        source=name,
        articles=group["doc_count"],
        first=moment_of(group["first"]),
        last=moment_of(group["last"]),
        earliest=earliest,
    )

"""The sources in a cluster, and the sources in an index."""

import dataclasses
from typing import Any, NamedTuple

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
    hit = yield from find_article(ready.fields, index, article_id, in_index=in_index)
    grouping = _Grouping(
        index=index,
        query=other_articles(index, ready, hit, other_sources=other_sources),
        source_field=require_source_field(index, ready),
        fields=ready.fields,
    )
    last = paging.page * paging.size
    counts = yield from grouping.count(last)
    groups = yield from grouping.groups(counts.names[last - paging.size :])
    similarity = Similarity.to(hit, ready.fields)
    return SourcesPage(
        root=root_of(hit, ready.fields),
        total=counts.articles,
        total_sources=counts.sources,
        sources=tuple(_source(name, group, similarity, ready.fields) for name, group in groups),
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


class _Counts(NamedTuple):
    """The sources with the most articles, and how many there are in all."""

    articles: int
    sources: int
    # None stands for articles without a source; it comes last.
    names: list[Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Grouping:
    """Articles, to be grouped by source."""

    index: str
    # Matches the articles.
    query: Query
    source_field: str
    fields: Fields

    def count(self, size: int) -> Requests[_Counts]:
        """Count the articles and sources, and return the first `size` sources."""
        body = bodies.count_sources(self.query, source_field=self.source_field, size=size)
        (answer,) = yield from search(self.index, body)
        counts = answer["aggregations"]
        with_name = int(counts["total"]["count"])
        has_nameless = bool(counts["without_source"]["doc_count"])
        names = [bucket["key"] for bucket in counts["sources"]["buckets"]]
        if has_nameless and len(names) == with_name < size:
            names.append(None)
        return _Counts(answer["hits"]["total"]["value"], with_name + has_nameless, names)

    def groups(self, names: list[Any]) -> Requests[list[tuple[Any, dict[str, Any]]]]:
        """Find the first, last and earliest article of each source; leave out those without articles."""
        if not names:
            return []
        body = bodies.of_sources(self.query, names=names, source_field=self.source_field, fields=self.fields)
        (answer,) = yield from search(self.index, body)
        groups = answer["aggregations"]["sources"]["buckets"]
        return [(name, group) for name, group in zip(names, groups, strict=True) if group["doc_count"]]


def _source(name: Any, group: dict[str, Any], similarity: Similarity, fields: Fields) -> Source:
    (earliest,) = similarity.articles(group["earliest"]["hits"]["hits"], fields)
    return Source(
        source=name,
        articles=group["doc_count"],
        first=moment_of(group["first"]),
        last=moment_of(group["last"]),
        earliest=earliest,
    )

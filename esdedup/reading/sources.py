"""The sources in a cluster, and the sources in an index."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from esdedup.elastic import limits
from esdedup.elastic.requests import UNREAD, Query, Requests, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.articles import find_article
from esdedup.reading.clusters import other_articles
from esdedup.reading.paging import Paging
from esdedup.reading.queries import aggregation, moment_of, order, root_of, with_signature
from esdedup.reading.results import Source, SourcesPage
from esdedup.reading.scope import Scope
from esdedup.reading.similarity import Similarity

# Sources of one cluster that are grouped.
_MAX_GROUPED = 10_000


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
    """Return the sources in an article's cluster, those with the most articles first.

    The article itself is not counted.

    Args:
        index: An index, alias or pattern.
        article_id: The article's id. If several indices have it, the article that arrived last.
        in_index: The index to take it from, if several have that id.
        other_sources: Leave out the article's own source.
        page: From 1; `page` times `size` is at most 10,000.
        size: Sources on a page, at most 1,000.

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: A value is invalid, or the source field is text, which cannot be grouped by.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    # Checks the depth; sources have numbered pages only.
    Paging(page=page, size=size).start([], is_endless=False)
    ready = yield from scope.ready(index)
    hit = yield from find_article(ready.fields, index, article_id, in_index=in_index)
    grouping = _Grouping(
        index=index,
        query=other_articles(index, ready, hit, other_sources=other_sources),
        source_field=ready.required_source_field(index),
        fields=ready.fields,
    )
    last = page * size
    counts = yield from grouping.count(last)
    groups = yield from grouping.groups(counts.names[last - size :])
    similarity = Similarity.to(hit, ready.fields)
    return SourcesPage(
        root=root_of(hit, ready.fields),
        total=counts.articles,
        total_sources=counts.sources,
        sources=tuple(_source(name, group, similarity, ready.fields) for name, group in groups),
        page=page,
        size=size,
    )


def source_names(scope: Scope, index: str, *, size: int = 200) -> Requests[tuple[str, ...]]:
    """Return the names of the sources with the most articles, in alphabetical order.

    Args:
        index: An index, alias or pattern.
        size: How many names at most, 1 to 65,536.

    Raises:
        SettingError: The size is out of range, or the name of the index is empty.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
    if not 1 <= size <= limits.MAX_BUCKETS:
        raise SettingError(f"{size:,} names of sources: from 1 to {limits.MAX_BUCKETS:,} are possible")
    ready = yield from scope.ready(index)
    if ready.source_field is None:
        return ()
    body = {"size": 0, "aggs": {"sources": {"terms": {"field": ready.source_field, "size": size}}}}
    (answer,) = yield from search(index, body)
    return tuple(sorted(str(bucket["key"]) for bucket in answer["aggregations"]["sources"]["buckets"]))


def source_field(scope: Scope, index: str) -> Requests[str | None]:
    """Return the field to match and count sources by, None if no such field can be aggregated.

    It is the source field, or its keyword subfield if the source field is mapped as text.

    Args:
        index: An index, alias or pattern.

    Raises:
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses the request.
    """
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
        body = count_sources(self.query, source_field=self.source_field, size=size)
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
        body = of_sources(self.query, names=names, source_field=self.source_field, fields=self.fields)
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


def count_sources(query: Query, *, source_field: str, size: int) -> Query:
    """Return the search for the sources with the most matching articles, and for the number of sources."""
    by_count = [{"_count": "desc"}, {"_key": "asc"}]
    terms = {"field": source_field, "size": size, "shard_size": _MAX_GROUPED, "order": by_count}
    return {
        "query": query,
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            UNREAD: {"terms": {"field": source_field, "size": _MAX_GROUPED}},
            "total": {"stats_bucket": {"buckets_path": f"{UNREAD}._count"}},
            "sources": {"terms": terms},
            "without_source": {"missing": {"field": source_field}},
        },
    }


def of_sources(query: Query, *, names: Sequence[Any], source_field: str, fields: Fields) -> Query:
    """Return the search for each source's earliest article, and the times of its first and last.

    None among the names stands for articles without a source.
    """
    earliest = {"top_hits": {"size": 1, "sort": order("oldest", fields), "_source": with_signature(fields)}}
    each = {
        "first": {"min": {"field": fields.published}},
        "last": {"max": {"field": fields.published}},
        "earliest": earliest,
    }
    filters: list[Query] = [
        {"bool": {"must_not": {"exists": {"field": source_field}}}}
        if name is None
        else {"term": {source_field: name}}
        for name in names
    ]
    return aggregation(query, {"sources": {"filters": {"filters": filters}, "aggs": each}})

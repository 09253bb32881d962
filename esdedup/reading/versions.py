"""The articles of a story by text and by source, and the sources in an index."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from esdedup.elastic import limits
from esdedup.elastic.requests import UNREAD, Query, Requests, aggregate, search
from esdedup.errors import SettingError
from esdedup.fields import Fields, term_of
from esdedup.reading import queries
from esdedup.reading.articles import ArticleId, InIndex, find_article
from esdedup.reading.clusters import OtherSources, Similarity, other_articles
from esdedup.reading.excerpts import linked_roots, search_with_excerpts
from esdedup.reading.paging import PageNumber, PageSize, Paging
from esdedup.reading.results import Article, Result, SimilarArticle, Source, SourcesPage, StoryPage
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
    hits: list[queries.Hit] = answer["hits"]["hits"]
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
    copies = queries.articles_in(same, fields)
    return Version(
        fingerprint=term_of(hit["_source"], fields.fingerprint),
        article=article,
        copies=same["hits"]["total"]["value"] - 1,
        copies_shown=tuple(each for each in copies if (each.index, each.id) != (article.index, article.id)),
    )


def versions_body(query: Query, *, sort: TimeOrder, first: int, size: int, fields: Fields) -> Query:
    """Return the search for a page of distinct texts: the first article of each, and some copies."""
    by_time = queries.order(sort, fields)
    same = {
        "name": "same",
        "size": 1 + _COPIES_SHOWN,
        "sort": by_time,
        "_source": queries.fields_read(fields),
    }
    return {
        "query": query,
        "sort": by_time,
        "collapse": {"field": fields.fingerprint, "inner_hits": same},
        "from": first,
        "size": size,
        "track_total_hits": True,
        "_source": queries.with_signature(fields),
        "aggs": {
            # An article without a fingerprint has a cluster of its own.
            UNREAD: {"terms": {"field": fields.fingerprint, "size": _MAX_COUNTED, "missing": ""}},
            "versions": queries.number_of_unread(),
        },
    }


# The maximum number of sources of one cluster that are grouped.
_MAX_GROUPED = 10_000
# Maximum length of `containing`: a character takes up to 5 of a regular expression's 1,000 characters.
_LONGEST_PART = 100


def sources(
    scope: Scope,
    index: IndexName,
    article_id: ArticleId,
    *,
    in_index: InIndex = None,
    other_sources: OtherSources = False,
    page: PageNumber = 1,
    size: PageSize = 20,
) -> Requests[SourcesPage]:
    """Return the sources in an article's cluster, the largest first.

    The article itself is not counted.

    Raises:
        SettingError: A value is invalid, or the source field is text, which cannot be grouped.
    """
    # Check the depth; sources have numbered pages only.
    Paging(page=page, size=size).start([], is_endless=False)
    ready = yield from scope.check(index)
    hit = yield from find_article(ready, article_id, in_index=in_index)
    query = other_articles(ready, hit, other_sources=other_sources)
    field, last = ready.required_source_field(), page * size
    body, roots = count_sources(query, source_field=field, size=last), linked_roots(hit, ready.fields)
    (answer,), story = yield from search_with_excerpts(ready, body, **roots)
    counts = answer["aggregations"]
    with_name, without = int(counts["total"]["count"]), bool(counts["without_source"]["doc_count"])
    # None stands for articles without a source; it comes last.
    names = [bucket["key"] for bucket in counts["sources"]["buckets"]]
    if without and len(names) == with_name < last:
        names.append(None)
    names = names[last - size :]
    groups: list[dict[str, Any]] = []
    if names:
        body = of_sources(query, names=names, source_field=field, fields=ready.fields)
        (of_names,) = yield from search(ready.index, body)
        groups = of_names["aggregations"]["sources"]["buckets"]
    similarity = Similarity.to(hit, ready.fields)
    return SourcesPage(
        **story,
        total=answer["hits"]["total"]["value"],
        total_sources=with_name + without,
        sources=tuple(
            _source(name, group, similarity, ready.fields)
            for name, group in zip(names, groups, strict=True)
            # Leave out sources whose articles have just been deleted.
            if group["doc_count"]
        ),
        page=page,
        size=size,
    )


def source_names(
    scope: Scope, index: IndexName, *, containing: str = "", size: int = 200
) -> Requests[tuple[str, ...]]:
    """Return the names of the sources with the most articles, in alphabetical order.

    Args:
        containing: Return only names that contain this string, ignoring case; at most 100 characters.
        size: The maximum number of names to return, 1 to 65,536.

    Raises:
        SettingError: The size is out of range, or the name of the index is empty.
    """
    if len(containing) > _LONGEST_PART:
        raise SettingError(f"containing has {len(containing):,} characters, more than {_LONGEST_PART}")
    if not 1 <= size <= limits.MAX_BUCKETS:
        raise SettingError(f"{size:,} names of sources requested; 1 to {limits.MAX_BUCKETS:,} are possible")
    ready = yield from scope.check(index)
    if ready.source_field is None:
        return ()
    terms: Query = {"field": ready.source_field, "size": size}
    if containing:
        terms["include"] = f".*{''.join(map(_either_case, containing))}.*"
    found = yield from aggregate(ready.index, {"match_all": {}}, {"sources": {"terms": terms}})
    return tuple(sorted(str(bucket["key"]) for bucket in found["sources"]["buckets"]))


def _either_case(character: str) -> str:
    """Return a regular expression of Lucene that matches a character in either case."""
    cases = {case for case in (character, character.lower(), character.upper()) if len(case) == 1}
    # Escape other characters, which may be operators.
    return "[" + "".join(case if case.isalnum() else f"\\{case}" for case in sorted(cases)) + "]"


def source_field(scope: Scope, index: IndexName) -> Requests[str | None]:
    """Return the field to match and count sources by; return None if no such field can be aggregated.

    It is the source field, or its keyword subfield if the source field is mapped as text.
    """
    return (yield from scope.check(index)).source_field


def _source(name: Any, group: dict[str, Any], similarity: Similarity, fields: Fields) -> Source:
    (earliest,) = similarity.articles(group["earliest"]["hits"]["hits"], fields)
    return Source(
        source=name,
        articles=group["doc_count"],
        first=queries.moment_of(group["first"]),
        last=queries.moment_of(group["last"]),
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
            "total": queries.number_of_unread(),
            "sources": {"terms": terms},
            "without_source": {"missing": {"field": source_field}},
        },
    }


def of_sources(query: Query, *, names: Sequence[Any], source_field: str, fields: Fields) -> Query:
    """Return the search for each source's earliest article and times; the name None means no source."""
    earliest = queries.first_hit("oldest", fields, queries.with_signature(fields))
    each = {**queries.first_and_last(fields), "earliest": earliest}
    filters: list[Query] = [
        {"bool": {"must_not": {"exists": {"field": source_field}}}}
        if name is None
        else {"term": {source_field: name}}
        for name in names
    ]
    return queries.aggregation(query, {"sources": {"filters": {"filters": filters}, "aggs": each}})

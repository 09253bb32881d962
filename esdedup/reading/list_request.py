"""The parameters of a list, their validation, and the searches for its articles and roots."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

from esdedup.elastic import limits
from esdedup.elastic.requests import UNREAD, Query, Requests, chunks, search
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading import queries
from esdedup.reading.paging import Cursor, Paging
from esdedup.reading.scope import Tuning

Sort = Literal["relevance", "newest", "oldest", "similar-desc", "similar-asc", "sources-desc", "rising"]
"""What rows are sorted by: their best match, their newest or oldest match, or a count."""
Head = Literal["best", "newest", "earliest", "longest"]
"""Which matching article a row shows."""

_ORDER_OF_HEAD: dict[Head, queries.Order] = {
    "best": "relevance",
    "newest": "newest",
    "earliest": "oldest",
    "longest": "longest",
}
# The order of articles that decides the order of rows, and the match shown. Other sorts use `_NEWEST`.
_RULES: dict[Sort, tuple[queries.Order, Head]] = {
    "relevance": ("relevance", "best"),
    "oldest": ("oldest", "earliest"),
}
_NEWEST: tuple[queries.Order, Head] = ("newest", "newest")
SORTS: tuple[Sort, ...] = get_args(Sort)
SORTS_BY_TIME = frozenset({"newest", "oldest"})
SORTS_BY_COUNT = frozenset({"similar-desc", "similar-asc", "sources-desc", "rising"})
MOST_SOURCES = 1_000
"""The maximum number of sources that are counted for a cluster."""
ROOTS_IN_A_SEARCH = 60
"""How many roots one search counts; times `MOST_SOURCES`, this is below Elasticsearch's limit on buckets."""

# Queries that give every match the same score, or a meaningless score.
_UNRANKED = frozenset(
    (
        *("constant_score", "exists", "ids", "match_all", "match_none", "prefix", "range", "regexp"),
        *("term", "terms", "wildcard"),
    )
)
# Date math, which Elasticsearch evaluates by its own clock.
_RECENTLY = "now-24h"


def ranks_articles(query: Query | None) -> bool:
    """Return whether a query scores articles, that is, has words outside of filters."""
    if not isinstance(query, dict):
        return False
    for kind, body in query.items():
        if kind != "bool" or not isinstance(body, dict):
            return kind not in _UNRANKED
        scored = (body.get(part) or [] for part in ("must", "should"))
        clauses = [each for part in scored for each in (part if isinstance(part, list) else [part])]
        return any(ranks_articles(each) for each in clauses)
    return False


def default_sort(query: Query | None) -> Sort:
    """Return the default sort: relevance if the query ranks articles, otherwise newest."""
    _check_query(query)
    return "relevance" if ranks_articles(query) else "newest"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListRequest:
    """The validated parameters of one page of a list."""

    index: str
    # The indices to search and the names of their fields, known once the mappings have been read.
    searched: str = ""
    fields: Fields = Fields()  # noqa: RUF009 - frozen
    query: Query | None = None
    sort: Sort = "newest"
    # None shows the match that decides the row's position, or the newest match in sorts by count.
    head: Head | None = None
    min_similar: int = 0
    min_sources: int = 0
    # The field that sources are counted by; None if it cannot be aggregated.
    source_field: str | None = None
    # Whether each cluster is on one shard.
    is_routed_by_root: bool = False
    tuning: Tuning = Tuning()  # noqa: RUF009 - frozen
    dedup: bool = True
    details: bool = False
    # Milliseconds since 1970; None means that new articles are not counted.
    arrived_since_ms: int | None = None
    paging: Paging = Paging()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        _check("sort", self.sort, SORTS)
        _check("head", self.head, (None, *get_args(Head)))
        _check_query(self.query)
        if self.min_similar < 0 or not 0 <= self.min_sources <= MOST_SOURCES:
            raise SettingError(
                f"min_similar is {self.min_similar} and min_sources {self.min_sources}; they must be at "
                f"least 0, and min_sources at most {MOST_SOURCES:,}"
            )
        if not self.dedup and (self.is_by_count or self.is_filtered or self.head):
            raise SettingError(
                "without dedup each article is a row of its own: sorts by count, min_similar, min_sources "
                "and head do not apply"
            )

    @property
    def articles(self) -> Query:
        """The query for matching articles with a root; in the sort ``rising``, only for recent articles."""
        matching = queries.within(self.query, self.fields)
        if self.sort == "rising":
            matching["bool"]["filter"].append({"range": {self.fields.published: {"gte": _RECENTLY}}})
        return matching

    @property
    def arrived_since(self) -> Query | None:
        """The query for new articles, or None if they are not counted."""
        if self.arrived_since_ms is None:
            return None
        after = {"gt": self.arrived_since_ms, "format": "epoch_millis"}
        return {"range": {f"{self.fields.dedup}.seen": after}}

    @property
    def min_articles(self) -> int:
        """The minimum number of articles that a cluster needs to get a row."""
        return 1 + self.min_similar

    @property
    def is_filtered(self) -> bool:
        """Whether clusters with too few articles or sources are left out."""
        return self.min_similar > 0 or self.min_sources > 0

    @property
    def is_by_count(self) -> bool:
        """Whether rows are sorted by a count."""
        return self.sort in SORTS_BY_COUNT

    @property
    def order(self) -> queries.Order:
        """The order of articles that decides the order of rows; not used in sorts by count."""
        return _RULES.get(self.sort, _NEWEST)[0]

    @property
    def order_of_heads(self) -> queries.Order:
        """The order whose first match in a cluster is the article that a row shows."""
        return _ORDER_OF_HEAD[self.head or _RULES.get(self.sort, _NEWEST)[1]]

    def start(self) -> Cursor:
        """Return where the page begins."""
        return self.paging.start(self._identity, is_endless=self.sort in SORTS_BY_TIME)

    def write(self, cursor: Cursor) -> str:
        """Return a cursor of this list as a string."""
        return cursor.write(self._identity)

    @property
    def _identity(self) -> list[Any]:
        # "similar" and None, defaults of two removed parameters, keep cursors of earlier versions valid.
        given = [self.index, self.query, self.sort, self.head, "similar", None, self.dedup]
        least = [self.min_similar, self.min_sources]
        return given + least if any(least) else given


@dataclasses.dataclass(frozen=True, kw_only=True)
class SortResult:
    """The rows of a page, as its sort found them."""

    # The root of each row, and the article that the row shows; None if that article has yet to be found.
    rows: list[tuple[str, queries.Hit | None]]
    # The sort values after which the next page starts; None if the page is found by its offset.
    place: list[Any] | None = None
    has_more: bool
    order_exact: bool = True
    # Whether reading stopped before the page was full, though there may be more rows.
    is_cut_short: bool = False


def articles(
    request: ListRequest,
    by: queries.Order,
    *,
    size: int,
    first: int = 0,
    after: Sequence[Any] | None = None,
    without: Sequence[str] = (),
    since_ms: int | None = None,
) -> Query:
    """Return the search for articles in order, not grouped by root.

    The search starts after the sort values `after`, or at row `first`. It leaves out the roots `without`,
    and articles older than `since_ms`.
    """
    matching = request.articles
    if since_ms is not None:
        matching["bool"]["filter"].append({"range": {request.fields.published: {"gte": since_ms}}})
    if without:
        matching["bool"]["must_not"] = [with_roots(without, request.fields)]
    place = {"from": first} if after is None else {"search_after": list(after)}
    return {
        "query": matching,
        "sort": queries.order(by, request.fields),
        "size": size,
        # Without a total, Elasticsearch can skip matches; if few match, skipping takes longer than counting.
        "track_total_hits": limits.MAX_HITS if ranks_articles(request.query) else False,
        "_source": queries.fields_read(request.fields),
        **place,
    }


def first_of_each_root(request: ListRequest, by: queries.Order, *, size: int, first: int = 0) -> Query:
    """Return the search for the first article of each root, in order, starting at row `first`."""
    return articles(request, by, size=size, first=first) | {"collapse": {"field": request.fields.cluster}}


def heads(request: ListRequest, by: queries.Order, roots: Sequence[str]) -> Query:
    """Return the search for the first matching article of each of `roots`."""
    body = first_of_each_root(request, by, size=len(roots))
    body["query"]["bool"]["filter"].append(with_roots(roots, request.fields))
    return body


def count_articles(request: ListRequest) -> Query:
    """Return the search that counts the matching articles."""
    return {"query": request.articles, "size": 0, "track_total_hits": True}


def matching_roots(request: ListRequest, *, size: int, partitions: int | None = None) -> Query:
    """Return the search for the roots of matching articles; `in_partitions` explains `partitions`."""
    terms = {"field": request.fields.cluster, "size": size}
    return queries.aggregation(in_partitions(request, partitions), {"roots": {"terms": terms}})


def in_partitions(request: ListRequest, partitions: int | None) -> Query:
    """Return the query for the matches in the first `partitions` of 256 partitions (None means all)."""
    matching = request.articles
    if partitions is not None:
        matching["bool"]["filter"].append({"terms": {request.fields.partition: list(range(partitions))}})
    return matching


def shown_roots(request: ListRequest, roots: Sequence[str]) -> Requests[set[str]]:
    """Return the `roots` whose clusters have enough articles and sources."""
    if not (roots and request.is_filtered):
        return set(roots)
    least, most = request.min_articles, request.min_sources
    counted = {"aggs": count_sources_of_each(request, most=most)} if most else {}
    at_once = limits.MAX_BUCKETS // (1 + most)
    clusters = yield from _clusters_of(request, roots, counted, least=least, at_once=at_once)
    return {each["key"] for each in clusters if not most or each["sources"]["count"] >= most}


def numbers_of(request: ListRequest, roots: Sequence[str]) -> Requests[dict[str, tuple[int, int]]]:
    """Return how many articles and sources each of `roots` has."""
    if not roots:
        return {}
    counted = {"aggs": count_sources_of_each(request)}
    clusters = yield from _clusters_of(request, roots, counted, at_once=ROOTS_IN_A_SEARCH)
    return {each["key"]: (each["doc_count"], int(each["sources"]["count"])) for each in clusters}


def _clusters_of(
    request: ListRequest, roots: Sequence[str], counted: Query, *, at_once: int, least: int = 1
) -> Requests[list[Any]]:
    """Return the buckets of the `roots` with at least `least` articles, matching or not."""
    searches = []
    for part in chunks(roots, at_once):
        terms = {"field": request.fields.cluster, "size": len(part), "min_doc_count": least}
        of_each = {"terms": terms} | counted
        searches.append(queries.aggregation(with_roots(part, request.fields), {"roots": of_each}))
    answers = yield from search(request.searched, *searches)
    return [bucket for answer in answers for bucket in answer["aggregations"]["roots"]["buckets"]]


def count_sources_of_each(request: ListRequest, *, most: int = MOST_SOURCES) -> Query:
    """Return the aggregations that count sources as buckets; a cardinality would only be an estimate."""
    return {
        UNREAD: {"terms": {"field": request.source_field, "size": most}},
        "sources": queries.number_of_unread(),
    }


def with_roots(roots: Sequence[str], fields: Fields) -> Query:
    """Return the query for the articles of `roots`."""
    return {"terms": {fields.cluster: list(roots)}}


def _check_query(query: object) -> None:
    if query is not None and not isinstance(query, dict):
        raise SettingError(
            f"the query is a {type(query).__name__}; it must be a dict in Elasticsearch's query language"
        )


def _check(what: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        names = ", ".join(str(each) for each in known if each is not None)
        raise SettingError(f"there is no {what} {value!r}; choose from {names}")

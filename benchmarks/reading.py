"""Compares the latency of the list and of similar articles with the same searches without dedup.

The index has one shard of at most five segments, and is not written to. Where possible, requests differ
between rounds. Caches would answer requests that cannot differ (all articles, first page), so caches are off
for all requests.
"""

import dataclasses
import gc
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from elasticsearch import Elasticsearch

from benchmarks import collection, server
from benchmarks.collection import Collection, Numbers
from benchmarks.rows import Row, duration_s, less_is_better
from benchmarks.server import Run
from esdedup import Fields, Reader
from esdedup.elastic.requests import Query
from esdedup.reading.list_request import ListRequest, Sort
from esdedup.reading.lists import estimate_rows
from esdedup.reading.paging import Cursor, Paging
from esdedup.reading.queries import Order, fields_read, order, with_signature

OURS = "ours"
_WARM_UP, _MEASURED = 10, 100
_PERCENTILES = (50, 95)

Round = Callable[[], Mapping[str, Callable[[], Any]]]
"""Chooses the next request; returns a call for each competitor, `OURS` among them. A call returns the number
of matching articles if this number must be the same for all competitors, otherwise None."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A kind of request that is measured repeatedly."""

    table: str
    name: str
    choose: Round


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latencies:
    """The p50 and p95 of each competitor in a case, in ms."""

    case: Case
    values: Mapping[str, tuple[float, ...]]

    def rows(self, collection: str) -> list[Row]:
        return [
            _row(self.case.table, f"{self.case.name}, {collection}, p{percentile}", one, "ms")
            for at, percentile in enumerate(_PERCENTILES)
            for one in _compared({name: each[at] for name, each in self.values.items()})
        ]

    def growth_from(self, small: "Latencies", table: str, collections: str) -> list[Row]:
        """Compare how much slower (p50) the competitors are than in a smaller collection."""
        times = {name: each[0] / small.values[name][0] for name, each in self.values.items()}
        return [
            _row(table, f"{self.case.name}, {collections}, p50", one, "times") for one in _compared(times)
        ]


def measured(case: Case) -> Latencies:
    durations_s: dict[str, list[float]] = {}
    answers: dict[str, Any] = {}
    gc.collect()
    gc.disable()
    try:
        for number in range(_WARM_UP + _MEASURED):
            calls = list(case.choose().items())
            # The first call warms caches for the others, so the competitors take turns at being first.
            first = number % len(calls)
            for name, call in calls[first:] + calls[:first]:
                taken_s = duration_s(lambda name=name, call=call: answers.update({name: call()}))
                if number >= _WARM_UP:
                    durations_s.setdefault(name, []).append(taken_s)
            counts = {count for count in answers.values() if count is not None}
            if len(counts) > 1:
                raise RuntimeError(f"{case.name}: the numbers of articles differ: {answers}")
    finally:
        gc.enable()
    values = {
        name: tuple(float(each) for each in np.percentile(each_s, _PERCENTILES) * 1_000)
        for name, each_s in durations_s.items()
    }
    return Latencies(case=case, values=values)


def _compared(values: Mapping[str, float]) -> Sequence[tuple[float, str | None, float | None]]:
    """Pair our value with each peer's; if there are no peers, return our value alone."""
    peers = [name for name in values if name != OURS]
    return [(values[OURS], peer, values[peer]) for peer in peers] or [(values[OURS], None, None)]


def _row(table: str, case: str, one: tuple[float, str | None, float | None], unit: str) -> Row:
    ours, against, theirs = one
    if against is None or theirs is None:
        return Row(table=table, case=case, ours=ours, unit=unit)
    return less_is_better(table, case, ours, against, theirs, unit)


_INDEX = "benchmark-reading"
_COUNTS = (100_000, 1_000_000)
# Smaller collections have no cluster of 50 articles.
_FEWEST = 20_000
_SIZE, _WIDGET_SIZE = 20, 10
_PAGES_ON = 20
_HOUR_S = 3_600
_FIELDS = Fields()
_LIST, _COUNT, _WIDGET, _GROWTH = "reading-list", "reading-count", "reading-widget", "reading-growth"
_PLAIN, _COLLAPSE = "the same search, plain", "collapse, and a cardinality"
# Our list counts the total in separate requests.
_UNCOUNTED = "the same search, plain, no total counted"
_TERM, _TWO = "term query on a root known before", "get by id, then a term query"

# The request that `Reader.list` makes without options.
_NEWEST = ListRequest(index=_INDEX, fields=_FIELDS, paging=Paging(size=_SIZE))

Calls = dict[str, Callable[[], Any]]


def reading(run: Run) -> list[Row]:
    """Measure at 100,000 articles, then at a million."""
    counts = [max(_FEWEST, run.size(count)) for count in _COUNTS]
    found: list[list[Latencies]] = []
    rows: list[Row] = []
    with server.client(run, lifetime_s=4 * 3_600, heap="2g") as client:
        for count in counts:
            articles = Collection.of(count, np.random.default_rng(count))
            articles.write(client, _INDEX)
            try:
                if not found:
                    # Let the server compile its hot code before the measurement.
                    for case in cases(client, articles):
                        measured(case)
                found.append([measured(case) for case in cases(client, articles)])
            finally:
                client.indices.delete(index=_INDEX)
            rows += [row for each in found[-1] for row in each.rows(f"{count:,} articles")]
    small, large = counts
    for before, after in zip(*found, strict=True):
        rows += after.growth_from(before, _GROWTH, f"{large:,} against {small:,}")
    return sorted(rows, key=lambda row: (_LIST, _COUNT, _WIDGET, _GROWTH).index(row.table))


def cases(client: Elasticsearch, articles: Collection) -> list[Case]:
    lists = _Lists(client=client, articles=articles)
    widgets = _Widgets(client=client, articles=articles)
    listed: dict[str, Callable[[], Calls]] = {
        "newest, everything": lambda: lists.page("newest"),
        "oldest, everything": lambda: lists.page("oldest"),
        "newest, 30 days of one source": lambda: lists.page("newest", lists.half()),
        "newest, three words": lambda: lists.page("newest", lists.words()),
        "relevance, three words": lambda: lists.page("relevance", lists.words()),
        f"newest, everything, from page {_PAGES_ON + 1} on by cursor": lists.pages_on(),
        "newest, page with the row of a cluster of a tenth": lambda: lists.page("newest", lists.above()),
        "newest, by cursor amid a cluster of a tenth": lists.amid,
    }
    counted: dict[str, Callable[[], Calls]] = {}
    sorts: tuple[Sort, ...] = ("similar-desc", "similar-asc")
    for sort in sorts:
        counted[f"{sort}, everything"] = lambda sort=sort: lists.by_count(sort)
        counted[f"{sort}, three words"] = lambda sort=sort: lists.by_count(sort, lists.words())
    widget: dict[str, Callable[[], Calls]] = {}
    most = int(articles.sizes.max())
    for named, least, largest in (("about 5", 4, 6), ("about 50", 40, 60), ("a tenth", most, most)):
        members = articles.members_of_size(least, largest)
        widget |= {
            f"similar, {_WIDGET_SIZE} of a cluster of {named}": lambda members=members: widgets.similar(
                members
            ),
            f"sources of a cluster of {named}": lambda members=members: widgets.sources(members),
        }
    return [
        Case(table=table, name=name, choose=choose)
        for table, named in ((_LIST, listed), (_COUNT, counted), (_WIDGET, widget))
        for name, choose in named.items()
    ]


@dataclasses.dataclass(kw_only=True)
class _Competition:
    client: Elasticsearch
    articles: Collection

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(len(self.articles))
        self.reader = Reader(self.client)

    def search(self, body: Query) -> int | None:
        """Search; return the number of matching articles, if it is counted."""
        total = self.client.search(index=_INDEX, body=body)["hits"].get("total")
        return None if total is None else int(total["value"])


class _Lists(_Competition):
    """Pages of the list, each with a new query if the case has a query."""

    def words(self) -> Query:
        words = self.random.choice(self.articles.searched, 3, replace=False)
        return {"match": {"title": collection.phrase(words.tolist())}}

    def half(self) -> Query:
        """Return a query for half of the collection's days and one of the 50 most frequent sources."""
        begin_s = collection.BEGIN_S + _HOUR_S * int(self.random.integers(collection.DAYS * 12))
        source = collection.source(int(self.random.integers(50)))
        return {
            "bool": {
                "filter": [
                    _published(gte=begin_s, lt=begin_s + collection.DAYS * 12 * _HOUR_S),
                    {"term": {_FIELDS.source: source}},
                ]
            }
        }

    def above(self) -> Query:
        """Return a query whose first page has a few newer rows, and then the row of the largest cluster."""
        newest = int(self._largest_cluster()[-1])
        above = int(self.articles.times_s[newest + self.random.integers(1, 10)])
        return {"bool": {"filter": [_published(lte=above)]}}

    def page(self, sort: Sort, query: Query | None = None) -> Calls:
        by: Order = "relevance" if sort == "relevance" else "oldest" if sort == "oldest" else "newest"
        return {
            OURS: lambda: self.reader.list(_INDEX, query=query, sort=sort).total_articles,
            _PLAIN: lambda: self.search(_plain(query, by=by)),
            _UNCOUNTED: lambda: self.search(_uncounted(query, by=by)),
            _COLLAPSE: lambda: self.search(_collapse(query, by=by)),
        }

    def pages_on(self) -> Callable[[], Calls]:
        """Read page after page of all articles; peers begin at the same article, or at the same row."""
        pages = self._pages()

        def choose() -> Calls:
            cursor, place, first = next(pages)
            return {
                OURS: lambda: self.reader.list(_INDEX, after=cursor).total_articles,
                _PLAIN: lambda: self.search(_plain(None, by="newest", after=place)),
                _UNCOUNTED: lambda: self.search(_uncounted(None, by="newest", after=place)),
                _COLLAPSE: lambda: self.search(_collapse(None, by="newest", first=first)),
            }

        return choose

    def amid(self) -> Calls:
        """Begin within the largest cluster. `collapse` cannot do so, and gets a query for older articles."""
        largest = self._largest_cluster()
        article = int(self.random.choice(largest[len(largest) // 4 : -len(largest) // 4]))
        place = self.articles.place(article, _INDEX)
        cursor = _NEWEST.write(Cursor().next(rows=_SIZE, place=place))
        older = {"bool": {"filter": [_published(lte=int(self.articles.times_s[article]))]}}

        def collapse() -> None:
            self.search(_collapse(older, by="newest"))

        return {
            OURS: lambda: self.reader.list(_INDEX, after=cursor).total_articles,
            _PLAIN: lambda: self.search(_plain(None, by="newest", after=place)),
            _UNCOUNTED: lambda: self.search(_uncounted(None, by="newest", after=place)),
            _COLLAPSE: collapse,
        }

    def by_count(self, sort: Sort, query: Query | None = None) -> Calls:
        return {OURS: lambda: self.reader.list(_INDEX, query=query, sort=sort).total_articles}

    def _largest_cluster(self) -> Numbers:
        return np.flatnonzero(self.articles.roots == np.argmax(self.articles.sizes))

    def _pages(self) -> Iterator[tuple[str, list[Any], int]]:
        """Yield a cursor, the article after which its page begins, and the number of rows before the page."""
        page = None
        for number in itertools.count(1):
            page = self.reader.list(_INDEX, after=None if page is None else page.next)
            assert page.next is not None
            if number >= _PAGES_ON:
                place = self.articles.place(int(page.rows[-1].id), _INDEX)
                yield page.next, place, number * _SIZE


class _Widgets(_Competition):
    """The similar articles of a randomly chosen article."""

    def similar(self, members: Numbers) -> Calls:
        article = self.random.choice(members)
        return {
            OURS: lambda: self.reader.similar(_INDEX, str(article), size=_WIDGET_SIZE).total + 1,
            **self._peers(int(article)),
        }

    def sources(self, members: Numbers) -> Calls:
        article = self.random.choice(members)
        return {
            OURS: lambda: self.reader.sources(_INDEX, str(article)).total + 1,
            **self._peers(int(article)),
        }

    def _peers(self, article: int) -> Calls:
        def both() -> int | None:
            found = self.client.get(index=_INDEX, id=str(article), source_includes=[_FIELDS.root])
            return self.search(_of_root(found["_source"]["dedup"]["root"]))

        root = self.articles.root(article)
        return {_TERM: lambda: self.search(_of_root(root)), _TWO: both}


def _published(**bounds_s: int) -> Query:
    return {"range": {_FIELDS.time: {name: each * 1_000 for name, each in bounds_s.items()}}}


def _plain(query: Query | None, *, by: Order, after: list[Any] | None = None) -> Query:
    return {
        "query": query or {"match_all": {}},
        "sort": order(by, _FIELDS),
        "size": _SIZE,
        "track_total_hits": True,
        "_source": fields_read(_FIELDS),
        **({} if after is None else {"search_after": after}),
    }


def _uncounted(query: Query | None, *, by: Order, after: list[Any] | None = None) -> Query:
    return _plain(query, by=by, after=after) | {"track_total_hits": False}


def _collapse(query: Query | None, *, by: Order, first: int = 0) -> Query:
    """Collapse in Elasticsearch, and count as our list does: articles exactly, rows by a cardinality."""
    return _plain(query, by=by) | {
        "from": first,
        "collapse": {"field": _FIELDS.root},
        "aggs": estimate_rows(dataclasses.replace(_NEWEST, query=query))["aggs"],
    }


def _of_root(root: str) -> Query:
    return {
        "query": {"term": {_FIELDS.root: root}},
        "sort": order("newest", _FIELDS),
        "size": _WIDGET_SIZE,
        "track_total_hits": True,
        "_source": with_signature(_FIELDS),
    }

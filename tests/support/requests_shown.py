"""The searches shown in `docs/queries.md` and `mappings/`, as the package builds them."""

from esdedup.elastic.requests import Query
from esdedup.fields import Fields
from esdedup.reading import (
    articles,
    excerpts,
    list_request,
    lists,
    overview,
    queries,
    ranking,
    row_details,
    versions,
)
from esdedup.reading.list_request import ListRequest
from esdedup.reading.paging import Cursor
from esdedup.reading.results import Row
from esdedup.reading.scope import Tuning
from esdedup.times import zone_named

FIELDS = Fields()
QUERY: Query = {"match": {"title": "ferry"}}
LIST = ListRequest(index="news", query=QUERY, source_field="source")
ALL = ListRequest(index="news")
ROOTS = ["ROOT-1", "ROOT-2"]
# The timeline of this row has 24 spans of an hour.
ROW = Row(
    id="ID",
    index="news",
    root="ROOT-1",
    title=None,
    similar=1,
    matching=1,
    first="2026-09-10T00:26:40Z",
    last="2026-09-11T00:26:39.999Z",
)
PLACE = [1789935360000, 331, "news"]
_OTHERS = queries.articles_of_root("ROOT-1", without=("news", "ID"), fields=FIELDS)

IN_DOCS: dict[str, Query] = {
    "articles": list_request.articles(LIST, "newest", size=42),
    "articles-after": list_request.articles(LIST, "newest", size=42, after=PLACE, without=["ROOT-2"]),
    "firsts": list_request.heads(LIST, "newest", ROOTS),
    "counts": lists.count_clusters(LIST, ROOTS),
    "count": list_request.count_articles(LIST),
    "not-enriched": lists.count_not_enriched(LIST),
    "few-rows": lists.count_few_rows(LIST, most=Tuning().few_articles),
    "rows": lists.count_rows(LIST, up_to=Tuning().exact_rows, few=Tuning().few_articles),
    "about-rows": lists.estimate_rows(LIST),
    "rows-of-partitions": lists.estimate_rows(LIST, partitions=8),
    "relevance": list_request.first_of_each_root(LIST, "relevance", size=21),
    "overview": overview.overview_body(
        QUERY,
        choices={"source": ("Morning Wire", "Daily Ledger")},
        facets=["source", "language"],
        size=10,
        fields=FIELDS,
    ),
    "over-time": overview.articles_over_time(
        LIST.articles, overview.by_calendar(86_400_000, zone_named("Europe/Berlin"), FIELDS)
    ),
    "row-details": row_details.clusters_body(
        [ROW],
        source_field="source",
        fields=FIELDS,
    ),
    "by-count": ranking.roots_by_count(ALL.articles, descending=True, size=21, fields=FIELDS),
    "by-count-of-matches": ranking.roots_by_count(LIST.articles, descending=True, size=21, fields=FIELDS),
    "one": articles.one_article("ID", fields=FIELDS, has_text=True),
    "similar": queries.newest_first(_OTHERS, Cursor(), size=20, fields=FIELDS),
    "excerpts": excerpts.excerpts_body("ROOT-1", "ROOT-0", fields=FIELDS),
    "sources": versions.count_sources(_OTHERS, source_field="source", size=20),
    "of-sources": versions.of_sources(
        _OTHERS, names=["Morning Wire", None], source_field="source", fields=FIELDS
    ),
    "versions": versions.versions_body(
        queries.articles_of_root("ROOT-1", fields=FIELDS), sort="oldest", first=0, size=20, fields=FIELDS
    ),
    "with-fingerprint": queries.newest_first(
        queries.articles_with_fingerprint("FINGERPRINT", fields=FIELDS),
        Cursor(),
        size=20,
        fields=FIELDS,
    ),
    "timeline": overview.articles_over_time(
        {"term": {FIELDS.root: "ROOT-1"}}, queries.over_time(3_600_000, 0, FIELDS), source_field="source"
    ),
}

IN_MAPPINGS: dict[str, Query] = {
    "list-newest": list_request.first_of_each_root(ALL, "newest", size=20),
    "list-most-similar": ranking.roots_by_count(ALL.articles, descending=True, size=20, fields=FIELDS),
    "similar": queries.newest_first(
        queries.articles_of_root("ROOT", without=("INDEX", "ID"), fields=FIELDS),
        Cursor(),
        size=20,
        fields=FIELDS,
    ),
}

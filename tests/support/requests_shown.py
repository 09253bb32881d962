"""The searches that `docs/queries.md` and `mappings/` show, as the package builds them."""

from esdedup.elastic.requests import Query
from esdedup.fields import Fields
from esdedup.reading import (
    articles,
    clusters,
    list_bodies,
    overview,
    row_details,
    sources,
    timeline,
    versions,
)
from esdedup.reading.choices import Choices
from esdedup.reading.queries import within
from esdedup.reading.scope import Tuning

FIELDS = Fields()
QUERY: Query = {"match": {"title": "ferry"}}
ROOTS = ["ROOT-1", "ROOT-2"]
PLACE = [1789935360000, 331, "news"]
_OTHERS = clusters.others("ROOT-1", without=("news", "ID"), fields=FIELDS)

IN_DOCS: dict[str, Query] = {
    "articles": list_bodies.articles(QUERY, by="newest", size=42, fields=FIELDS),
    "articles-after": list_bodies.articles(
        QUERY, by="newest", size=42, fields=FIELDS, after=PLACE, without=["ROOT-2"]
    ),
    "firsts": list_bodies.heads(ROOTS, query=QUERY, by="newest", fields=FIELDS),
    "counts": list_bodies.count_clusters(ROOTS, query=QUERY, source_field="source", fields=FIELDS),
    "count": list_bodies.count_articles(QUERY, fields=FIELDS),
    "not-enriched": list_bodies.count_not_enriched(QUERY, fields=FIELDS),
    "rows": list_bodies.count_rows(QUERY, up_to=Tuning().exact_rows, is_few=True, fields=FIELDS),
    "about-rows": list_bodies.estimate_rows(QUERY, fields=FIELDS),
    "rows-of-partitions": list_bodies.estimate_rows(QUERY, fields=FIELDS, partitions=8),
    "relevance": list_bodies.first_of_each_root(QUERY, by="relevance", first=0, size=21, fields=FIELDS),
    "overview": overview.overview_body(
        QUERY,
        choices=Choices({"source": ("Morning Wire", "Daily Ledger")}),
        facets=["source", "language"],
        size=10,
        fields=FIELDS,
    ),
    "over-time": timeline.articles_over_time(
        within(QUERY, FIELDS), interval_ms=86_400_000, offset_ms=0, fields=FIELDS
    ),
    "row-details": row_details.clusters_body(
        [row_details.ClusterSearch(root="ROOT-1", first_ms=1_789_000_000_000, interval_ms=3_600_000)],
        source_field="source",
        fields=FIELDS,
    ),
    "by-count": list_bodies.roots_by_count(within(None, FIELDS), descending=True, size=21, fields=FIELDS),
    "by-count-of-matches": list_bodies.roots_by_count(
        within(QUERY, FIELDS), descending=True, size=21, fields=FIELDS
    ),
    "one": articles.one_article("ID", fields=FIELDS, has_text=True),
    "similar": clusters.cluster_members(_OTHERS, first=0, after=None, size=20, fields=FIELDS),
    "sources": sources.count_sources(_OTHERS, source_field="source", size=20),
    "of-sources": sources.of_sources(
        _OTHERS, names=["Morning Wire", None], source_field="source", fields=FIELDS
    ),
    "versions": versions.versions_body(
        clusters.others("ROOT-1", fields=FIELDS), sort="oldest", first=0, size=20, fields=FIELDS
    ),
    "with-fingerprint": clusters.cluster_members(
        clusters.same_fingerprint("FINGERPRINT", fields=FIELDS),
        first=0,
        after=None,
        size=20,
        fields=FIELDS,
    ),
    "timeline": timeline.articles_over_time(
        {"term": {FIELDS.root: "ROOT-1"}},
        interval_ms=3_600_000,
        offset_ms=0,
        source_field="source",
        fields=FIELDS,
    ),
}

IN_MAPPINGS: dict[str, Query] = {
    "list-newest": list_bodies.first_of_each_root(None, by="newest", first=0, size=20, fields=FIELDS),
    "list-most-similar": list_bodies.roots_by_count(
        within(None, FIELDS), descending=True, size=20, fields=FIELDS
    ),
    "similar": clusters.cluster_members(
        clusters.others("ROOT", without=("INDEX", "ID"), fields=FIELDS),
        first=0,
        after=None,
        size=20,
        fields=FIELDS,
    ),
}

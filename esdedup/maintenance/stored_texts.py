"""Reads the texts of articles: single ones with their records, or the latest in their order."""

from collections.abc import Iterator, Sequence

from elasticsearch import Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.names import check_index_names
from esdedup.elastic.requests import Query
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.reading.articles import StoredText, text_by_fingerprint
from esdedup.reading.scope import Scope
from esdedup.sites import RawPage, site_fields

LATEST_ARTICLES = 100_000
"""How many articles a forest learns from by default. Of twice as many, it would forget the first again."""

# Texts of 200,000 characters, the longest that are compared whole, take 40 MB or so together.
_TEXTS_AT_ONCE = 200


class StoredTexts:
    """Reads articles from some indices."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields | None) -> None:
        """Use some indices, after checking that each has the fields of esdedup.

        Args:
            client: Closed by the caller; should be `patient`.
            indices: Names, aliases or patterns.
            fields: The names of the articles' fields; None: those that the indices keep.

        Raises:
            IndexNotReady: An index is missing, or lacks the fields; or they keep different names.
            SettingError: `indices` is a string, or contains an empty name.
        """
        check_index_names(indices)
        self._client = client
        self._indices = list(indices)
        self._names = ",".join(indices)
        self._fields = execute(self._client, Scope(fields=fields).ready(self._names)).fields

    def by_fingerprint(self, fingerprints: Sequence[str]) -> StoredText | None:
        """Return the first article to arrive with one of some fingerprints; see `text_by_fingerprint`."""
        return execute(self._client, text_by_fingerprint(self._names, fingerprints, fields=self._fields))

    def count_latest(self, latest: int) -> int:
        """Count what `texts` yields."""
        with translated(f"count the articles in {', '.join(self._indices)!r}"):
            answer = self._client.count(index=self._indices, query=self._latest(latest))
        return int(answer["count"])

    def texts(self, latest: int) -> Iterator[RawPage | ArticleRejected]:
        """Yield the texts of the latest articles in the order of their arrival, or why one has none.

        Articles without a root, whose order is not known, all come first.

        Args:
            latest: Of how many arrivals; those that went to other indices count too.
        """
        by_arrival = {self._fields.seq: {"order": "asc", "unmapped_type": "long", "missing": "_first"}}
        body = {
            "query": self._latest(latest),
            "sort": [by_arrival],
            "_source": [self._fields.text, *site_fields(self._fields)],
            "size": _TEXTS_AT_ONCE,
            "track_total_hits": False,
        }
        for hits in hit_pages(self._client, ",".join(self._indices), body):
            for hit in hits:
                try:
                    yield RawPage.of(hit["_source"], self._fields, name=hit["_id"], article_id=hit["_id"])
                except ArticleRejected as rejected:
                    yield rejected.bare()

    def _latest(self, latest: int) -> Query:
        with translated(f"read the articles in {', '.join(self._indices)!r}"):
            answer = self._client.search(
                index=self._indices,
                size=0,
                aggs={"last": {"max": {"field": self._fields.seq}}},
                allow_partial_search_results=False,
            )
        last = int(answer["aggregations"]["last"]["value"] or 0)
        return {"bool": {"must_not": {"range": {self._fields.seq: {"lte": last - latest}}}}}

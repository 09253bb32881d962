"""Reads the texts of articles: single ones with their records, or the latest in their order."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic.client import patient
from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.names import check_index_names
from esdedup.elastic.requests import Query
from esdedup.errors import ArticleNotFound, ArticleRejected, SettingError
from esdedup.fields import Fields, refuse_surrogates, signature_of, text_of
from esdedup.reading import queries
from esdedup.reading.scope import Scope
from esdedup.sites import RawPage, site_of

LATEST_ARTICLES = 100_000
"""How many articles a forest learns from by default. Of twice as many, it would forget the first again."""

# Texts of 200,000 characters, the longest that are compared whole, take 40 MB or so together.
_TEXTS_AT_ONCE = 200
_RECORD = ("root", "fingerprint", "page", "profile", "seq", "seen")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredText:
    """An article with its text and its record; None for fields that esdedup did not write."""

    id: str
    index: str
    text: str
    # None if it is not known.
    site: str | None
    root: str | None
    fingerprint: str | None
    page: str | None
    # What is compared with others, as bytes; empty if it is missing.
    signature: bytes
    profile: str | None
    seq: int | None
    # The forest's time at its arrival, milliseconds since 1970.
    seen_ms: int | None
    # Other indices behind the same name with an older article of that id.
    also_in: tuple[str, ...] = ()


class StoredTexts:
    """Reads articles from some indices."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields | None) -> None:
        """Use some indices, after checking that each has the fields of esdedup.

        Args:
            client: Closed by the caller.
            indices: Names, aliases or patterns.
            fields: The names of the articles' fields; None: those that the indices keep.

        Raises:
            IndexNotReady: An index is missing, or lacks the fields; or they keep different names.
            SettingError: `indices` is a string, or contains an empty name.
        """
        check_index_names(indices)
        self._client = client
        self._indices = list(indices)
        self._fields = execute(client, Scope(fields=fields).ready(",".join(indices))).fields

    def by_id(self, article_id: str) -> StoredText:
        """Return the article of an id; if several indices have it, the last to arrive.

        Raises:
            ArticleNotFound: No index has that id.
            ArticleRejected: It has no text.
            SettingError: The id is empty.
        """
        if not article_id:
            raise SettingError("the id of the article is empty")
        refuse_surrogates(article_id, name=article_id)
        hits = self._search(queries.texts_by_id(article_id, fields=self._fields))
        if not hits:
            names = ",".join(self._indices)
            raise ArticleNotFound(
                f"there is no article {article_id!r} in {names!r}", article=article_id, index=names
            )
        found = self._stored_text(hits[0])
        return dataclasses.replace(found, also_in=tuple(hit["_index"] for hit in hits[1:]))

    def by_fingerprint(self, fingerprints: Sequence[str]) -> StoredText | None:
        """Return the first article to arrive with one of some fingerprints; None if there is none.

        Raises:
            ArticleRejected: It has no text.
        """
        hits = self._search(queries.text_by_fingerprint(fingerprints, fields=self._fields))
        return self._stored_text(hits[0]) if hits else None

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
        body = queries.texts_in_order(self._latest(latest), fields=self._fields) | {"size": _TEXTS_AT_ONCE}
        for hits in hit_pages(patient(self._client), ",".join(self._indices), body):
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

    def _stored_text(self, hit: dict[str, Any]) -> StoredText:
        source = hit["_source"]
        # As it is indexed: another program may have written other types into the source.
        indexed = hit.get("fields", {})
        record = {name: indexed.get(f"{self._fields.dedup}.{name}", [None])[0] for name in _RECORD}
        return StoredText(
            id=hit["_id"],
            index=hit["_index"],
            text=text_of(source, self._fields, name=hit["_id"]),
            site=site_of(source, self._fields),
            root=record["root"] or None,
            fingerprint=record["fingerprint"] or None,
            page=record["page"] or None,
            signature=signature_of(source, self._fields),
            profile=record["profile"],
            seq=None if record["seq"] is None else int(record["seq"]),
            seen_ms=None if record["seen"] is None else int(record["seen"]),
        )

    def _search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        with translated(f"read an article in {', '.join(self._indices)!r}"):
            answer = self._client.options(request_timeout=60).search(
                index=self._indices, body=body, allow_partial_search_results=False
            )
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

"""Reads the stored texts of articles: the latest texts, the text of a node, the boilerplate of each site."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pydantic
from elasticsearch import Elasticsearch

from esdedup.elastic.execute import execute, hit_pages
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.requests import Query, aggregate
from esdedup.elastic.requests import count as count_documents
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.reading.articles import StoredText, text_by_fingerprint
from esdedup.reading.excerpts import of_short_texts, seems_placeholder, under_titles
from esdedup.reading.scope import Scope
from esdedup.sites import RawPage, site_fields
from esdedup.text.parsed import LocatedPassages

LATEST_ARTICLES = 100_000
"""How many articles a forest learns from by default. After twice as many articles, it forgets the first."""

# This many texts of 200,000 characters, the longest that are compared whole, take about 40 MB.
_TEXTS_AT_ONCE = 200

# How many of the largest clusters of short texts are checked for placeholders.
_CLUSTERS_WATCHED = 20


class LearnedPassage(pydantic.BaseModel, frozen=True):
    """A passage that is boilerplate."""

    # The text as found in an article; None if it has more than 1,000 characters.
    text: str | None
    # How many of the articles read from the site contain it.
    articles: int


class SiteBoilerplate(pydantic.BaseModel, frozen=True):
    """The boilerplate in the articles of a site."""

    # None for articles whose site is unknown.
    site: str | None
    # How many articles of the site were read.
    articles: int
    # How many different passages in these articles are boilerplate.
    learned: int
    # The most frequent passages.
    passages: tuple[LearnedPassage, ...]


class BoilerplateBySite(pydantic.BaseModel, frozen=True):
    """The learned boilerplate of a forest that occurs in the articles read."""

    # How many articles were read.
    articles: int
    # Sites with the most articles first.
    sites: tuple[SiteBoilerplate, ...]
    # False if there were too many different passages to count them all.
    is_complete: bool


class StoredTexts:
    """Reads the texts of articles in indices that esdedup has set up; `client` should be `patient`."""

    def __init__(self, client: Elasticsearch, *, indices: Sequence[str], fields: Fields | None) -> None:
        self._client = client
        ready = execute(client, Scope(fields=fields).check(",".join(indices)))
        self._names, self._fields = ready.index, ready.fields

    def by_fingerprint(self, fingerprints: Sequence[str]) -> StoredText | None:
        """Return the earliest article with one of the fingerprints; see `text_by_fingerprint`."""
        return execute(self._client, text_by_fingerprint(self._names, fingerprints, fields=self._fields))

    def count_latest(self, latest: int) -> int:
        """Count the items that `texts` yields."""
        return execute(self._client, count_documents(self._names, self._latest(latest)))

    def texts(self, latest: int) -> Iterator[RawPage | ArticleRejected]:
        """Yield the latest texts, or why an article has none, by arrival; articles without a root first."""
        by_arrival = {"order": "asc", "unmapped_type": "long", "missing": "_first"}
        return self._pages(self._latest(latest), by_arrival)

    def latest_first(self) -> Iterator[RawPage | ArticleRejected]:
        """Yield the texts of articles with a root, or why an article has none; latest arrivals first."""
        with_root = {"exists": {"field": self._fields.root}}
        return self._pages(with_root, {"order": "desc", "unmapped_type": "long"})

    def placeholders(self) -> Iterator[tuple[str, int]]:
        """Yield the root and size of each placeholder among the largest clusters of short texts."""
        fields = self._fields
        terms = {"field": fields.root, "size": _CLUSTERS_WATCHED}
        clusters = {"clusters": {"terms": terms, "aggs": under_titles(fields)}}
        found = execute(self._client, aggregate(self._names, of_short_texts(fields), clusters))
        for bucket in found["clusters"]["buckets"]:
            if seems_placeholder(bucket, fields):
                yield bucket["key"], bucket["doc_count"]

    def _latest(self, latest: int) -> Query:
        aggregations = {"last": {"max": {"field": self._fields.seq}}}
        answer = execute(self._client, aggregate(self._names, {"match_all": {}}, aggregations))
        last = int(answer["last"]["value"] or 0)
        return {"bool": {"must_not": {"range": {self._fields.seq: {"lte": last - latest}}}}}

    def _pages(self, query: Query, by_arrival: Query) -> Iterator[RawPage | ArticleRejected]:
        body = {
            "query": query,
            "sort": [{self._fields.seq: by_arrival}],
            "_source": [self._fields.text, *site_fields(self._fields)],
            "size": _TEXTS_AT_ONCE,
            "track_total_hits": False,
        }
        for hit in itertools.chain.from_iterable(hit_pages(self._client, self._names, body)):
            try:
                yield RawPage.of(hit["_source"], self._fields, name=hit["_id"], article_id=hit["_id"])
            except ArticleRejected as rejected:
                yield rejected.bare()


@dataclasses.dataclass(kw_only=True)
class BoilerplateCounts:
    """Counts the articles of each site, and the passages in them that are boilerplate."""

    learned: LearnedCopy
    # How many characters of a text are fingerprinted.
    max_length: int
    # Maximum number of different passages in total; they take at most 100 MB. A site has a few dozen.
    most_passages: int = 50_000
    # Longer passages, which are few, are not shown: part of a passage could not be used as an override.
    longest_shown: int = 1_000
    articles: collections.Counter[str | None] = dataclasses.field(default_factory=collections.Counter)
    # The number of articles, by the site and the hash of the passage.
    passages: collections.Counter[tuple[str | None, int]] = dataclasses.field(
        default_factory=collections.Counter
    )
    texts: dict[int, str | None] = dataclasses.field(default_factory=dict)
    is_complete: bool = True

    def add(self, article: RawPage) -> None:
        """Count an article, and each of its boilerplate passages once."""
        self.articles[article.site] += 1
        found = LocatedPassages.of(article.text, max_length=self.max_length)
        hashes = found.passages.hashes
        places = np.flatnonzero(self.learned.are_learned(hashes, article.site))
        for place in places[np.sort(np.unique(hashes[places], return_index=True)[1])].tolist():
            passage, text = int(hashes[place]), found.text(place)
            if (article.site, passage) in self.passages or len(self.passages) < self.most_passages:
                self.passages[article.site, passage] += 1
                self.texts.setdefault(passage, text if len(text) <= self.longest_shown else None)
            else:
                self.is_complete = False

    def result(self, most: int) -> BoilerplateBySite:
        """Return the counts, with at most `most` passages for each site."""
        by_site: dict[str | None, list[LearnedPassage]] = {site: [] for site in self.articles}
        for (site, passage), count in self.passages.most_common():
            by_site[site].append(LearnedPassage(text=self.texts[passage], articles=count))
        sites = (
            SiteBoilerplate(
                site=site, articles=count, learned=len(by_site[site]), passages=tuple(by_site[site][:most])
            )
            for site, count in self.articles.most_common()
        )
        return BoilerplateBySite(
            articles=self.articles.total(), sites=tuple(sites), is_complete=self.is_complete
        )

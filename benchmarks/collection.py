"""Invented articles for the benchmark of reading. Clusters are drawn, so articles need no fingerprints."""

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch, helpers

from benchmarks.signatures import Signatures, random_ones
from esdedup import Dedup
from esdedup.fields import partition_of
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.profile import VERIFIED
from esdedup.neighbours.relation import relation_of
from esdedup.times import iso

Numbers = npt.NDArray[np.int64]

BEGIN_S = 1_788_220_800
"""The publication time of the first articles, 2026-09-01, in seconds since 1970."""
DAYS = 60
_S = DAYS * 24 * 3_600
# One cluster has a tenth of all articles; nearly all articles of some six hours belong to this cluster.
_LARGEST = 0.1
_FLOOD_S = 6 * 3_600
# The sizes of the other clusters follow a power law with this exponent, up to this maximum.
_POWER, _MOST = 2.64, 500
# The mean delay of a reprint after the first article.
_REPRINTED_AFTER_S = 8 * 3_600
# The share of articles that arrive late, and their mean delay.
_LATE, _LATE_S = 0.03, 1_800
_SOURCES, _VOCABULARY = 300, 50_000
_TITLE_WORDS, _TEXT_WORDS = 8, 24
# The share of reprints that change two words of the title.
_RETITLED = 0.3
# The minimum and maximum share of articles that contain a search word.
_SEARCHED = (0.000_5, 0.003)
_AT_ONCE = 2_000
_SEGMENTS = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collection:
    """Articles in order of arrival. An article's id and its `seq` are its position in this order."""

    # `roots`, `times_s`, `sources` and `titles` have one value for each article.
    roots: Numbers
    times_s: Numbers
    sources: Numbers
    titles: Numbers
    # `names`, `sizes` and `signatures` have one value for each root; row 0 is the largest cluster.
    names: list[str]
    sizes: Numbers
    signatures: Signatures
    # Words for queries; a query of three words matches a few articles per thousand.
    searched: Numbers

    @classmethod
    def of(cls, count: int, random: np.random.Generator) -> "Collection":
        largest = int(count * _LARGEST)
        sizes = np.concatenate(([largest], _sizes(count - largest, random)))
        roots = np.repeat(np.arange(len(sizes)), sizes)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes) == np.arange(count)
        calm_s = _S - _FLOOD_S
        arrivals = np.repeat(random.uniform(0, calm_s, len(sizes)), sizes)
        arrivals += np.where(first, 0, random.exponential(_REPRINTED_AFTER_S, count))
        arrivals %= calm_s
        arrivals += np.where(arrivals > calm_s / 2, _FLOOD_S, 0)
        arrivals[:largest] = calm_s / 2 + random.uniform(0, _FLOOD_S, largest)
        titles = np.repeat(_words((len(sizes), _TITLE_WORDS), random), sizes, axis=0)
        retitled = ~first & (random.random(count) < _RETITLED)
        titles[retitled, -2:] = _words((int(retitled.sum()), 2), random)
        order = np.argsort(arrivals)
        late_s = np.where(random.random(count) < _LATE, random.exponential(_LATE_S, count), 0)
        often = np.bincount(titles.ravel(), minlength=_VOCABULARY) / count
        signatures = random_ones(VERIFIED, len(sizes), random)
        return cls(
            roots=roots[order],
            times_s=BEGIN_S + np.maximum(0, arrivals[order] - late_s).astype(np.int64),
            sources=_zipf(_SOURCES, count, random),
            titles=titles[order],
            names=relation_of(VERIFIED).ids(signatures),
            sizes=sizes,
            signatures=signatures,
            searched=np.flatnonzero((often > _SEARCHED[0]) & (often < _SEARCHED[1])),
        )

    def __len__(self) -> int:
        return len(self.roots)

    def members_of_size(self, least: int, most: int) -> Numbers:
        """Return the articles whose clusters have from `least` to `most` articles, inclusive."""
        sizes = self.sizes[self.roots]
        return np.flatnonzero((least <= sizes) & (sizes <= most))

    def root(self, article: int) -> str:
        return self.names[self.roots[article]]

    def place(self, article: int, index: str) -> list[Any]:
        """Return the sort values of an article when articles are sorted by time."""
        return [int(self.times_s[article]) * 1_000, article, index]

    def actions(self, index: str) -> Iterator[dict[str, Any]]:
        relation, random = relation_of(VERIFIED), np.random.default_rng(len(self))
        for at in range(0, len(self), _AT_ONCE):
            articles = range(at, min(at + _AT_ONCE, len(self)))
            signatures = self.signatures[self.roots[at : articles.stop]]
            bands = relation.terms(signatures.tobytes(), ARTICLES, are_indexed=False)
            texts = _words((len(articles), _TEXT_WORDS), random).tolist()
            titles = self.titles[at : articles.stop].tolist()
            for article, signature, own, title, text in zip(
                articles, signatures, bands, titles, texts, strict=True
            ):
                root, body = self.root(article), phrase(text)
                yield {
                    "_index": index,
                    "_id": str(article),
                    "title": phrase(title),
                    "text": body,
                    "published_at": iso(int(self.times_s[article]) * 1_000),
                    "source": source(int(self.sources[article])),
                    "url": f"https://{source(int(self.sources[article]))}.example/{article}",
                    "dedup": {
                        "fingerprint": root,
                        "signature": base64.b64encode(signature.tobytes()).decode(),
                        "bands": own,
                        "root": root,
                        "profile": VERIFIED.label,
                        "seq": article,
                        "seen": int(self.times_s[article]) * 1_000,
                        "published": int(self.times_s[article]) * 1_000,
                        "length": len(body),
                        "partition": partition_of(root),
                    },
                }

    def write(self, client: Elasticsearch, index: str) -> None:
        """Write an index with one shard, no replica and no caches, and merge it to at most five segments."""
        client.options(ignore_status=404).indices.delete(index=index)
        Dedup(client).setup(index, shards=1)
        # The query cache can only be turned off while the index is closed.
        client.indices.close(index=index)
        settings = {
            "number_of_replicas": 0,
            "refresh_interval": "-1",
            "queries.cache.enabled": False,
            "requests.cache.enable": False,
        }
        client.indices.put_settings(index=index, settings={"index": settings})
        client.indices.open(index=index)
        client.cluster.health(index=index, wait_for_status="green")
        patient = client.options(request_timeout=1_800)
        for _ in helpers.parallel_bulk(patient, self.actions(index), thread_count=2, chunk_size=_AT_ONCE):
            pass
        patient.indices.refresh(index=index)
        patient.indices.forcemerge(index=index, max_num_segments=_SEGMENTS)
        patient.indices.refresh(index=index)


def source(number: int) -> str:
    return f"source-{number}"


def phrase(words: list[int]) -> str:
    return " ".join([f"w{word}" for word in words])


def _sizes(articles: int, random: np.random.Generator) -> Numbers:
    """Draw the sizes of clusters that have `articles` articles in total."""
    chances = np.arange(1, _MOST + 1) ** -_POWER
    sizes = random.choice(np.arange(1, _MOST + 1), articles, p=chances / chances.sum())
    until = int(np.searchsorted(np.cumsum(sizes), articles))
    sizes = sizes[: until + 1]
    sizes[-1] -= sizes.sum() - articles
    return sizes


def _words(shape: tuple[int, int], random: np.random.Generator) -> Numbers:
    return _zipf(_VOCABULARY, shape[0] * shape[1], random).reshape(shape)


def _zipf(kinds: int, count: int, random: np.random.Generator) -> Numbers:
    """Draw numbers below `kinds` by Zipf's law: higher numbers are rarer."""
    chances = np.cumsum(1 / np.arange(1, kinds + 1))
    return np.searchsorted(chances, random.uniform(0, chances[-1], count), side="right")

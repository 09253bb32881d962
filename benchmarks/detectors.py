"""Clusters a set with our profiles and with the peers, using several hash functions."""

import contextlib
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from unittest import mock

import mmh3
import numpy as np
import numpy.typing as npt
from datasketch import MinHash, MinHashLSH
from esdedup.ingest.cluster import ClusteredArticle, Clustering
from esdedup.ingest.files import FileArticle
from esdedup.ingest.learn import first_pass
from simhash import Simhash

from benchmarks.articles import Articles, shingles_of
from benchmarks.detection import Roots
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile
from esdedup.forest import store
from esdedup.text import parsed
from esdedup.text.hashing import TokenHash

# An odd number that differs from the base of the real token hashes.
_STEP = 0xD1342543DE82EF95


@contextlib.contextmanager
def hashed_by(seed: int) -> Iterator[None]:
    """Replace the hash functions of characters and words within the block, unless `seed` is 0."""
    if not seed:
        yield
        return

    def words_hashed(_: TokenHash, words: Sequence[str]) -> npt.NDArray[np.uint64]:
        return np.array([_word_hash(word.encode(), seed=seed) for word in words], np.uint64)

    with (
        mock.patch.object(parsed, "CHARACTER_HASH", (1, seed * _STEP % 2**64)),
        mock.patch.object(TokenHash, "of", words_hashed),
    ):
        yield


def _word_hash(token: bytes, *, seed: int) -> int:
    return mmh3.hash64(token, seed=seed, x64arch=True, signed=False)[0]


def clustered(articles: Articles, profile: Profile) -> Roots:
    """Cluster articles in one pass."""
    return {article.id: article.root for article in assigned(articles, profile)}


def in_two_passes(articles: Articles, profile: Profile) -> Roots:
    """Learn from all articles, then cluster them."""
    return {article.id: article.root for article in assigned(articles, profile, learn_first=True)}


def assigned(
    articles: Articles, profile: Profile, *, learn_first: bool = False
) -> Iterator[ClusteredArticle]:
    fields = Fields()
    clustering = Clustering(
        profile=profile, fields=fields, use_time=False, retention=timedelta(days=30), on_rejected=_fail
    )
    if learn_first:
        first_pass(clustering.learn, _as_in_a_file(articles), fields)
    return clustering.cluster(_as_in_a_file(articles))


def never_learning(articles: Articles, profile: Profile) -> Roots:
    """Cluster without learning boilerplate, as if each page were the first page of its site."""
    # The first block of pages never fills, so nothing is learned.
    endless = functools.partial(Boilerplate, block_pages=len(articles) + 1)
    with mock.patch.object(store, "Boilerplate", endless):
        return clustered(articles, profile)


def parts(articles: Articles, size: int) -> Iterator[Articles]:
    """Split articles into parts of `size`, in order."""
    items = iter(articles.items())
    while part := dict(itertools.islice(items, size)):
        yield part


def _as_in_a_file(articles: Articles) -> Iterator[FileArticle]:
    for article_id, article in articles.items():
        yield FileArticle(
            place="benchmark",
            id=article_id,
            article={name: value for name, value in article.items() if name != "id"},
            size_bytes=len(article["text"]),
        )


def _fail(rejected: ArticleRejected) -> None:
    raise rejected


# Twice the usual number of permutations, for less noise: 1 KB per text.
PERMUTATIONS = 256
LSH = f"datasketch MinHashLSH({PERMUTATIONS})"
CHECKED = f"{LSH}, MinHash.jaccard checked"
SIMHASH = "simhash Simhash(text), its own features"
THRESHOLDS = [round(float(each), 2) for each in np.arange(0.35, 0.95, 0.05)]
DISTANCES_BITS = range(13)

_Ints = npt.NDArray[np.int64]
ByThreshold = Mapping[float, Roots]


class Shingled:
    """The shingles of articles, hashed once for all seeds."""

    def __init__(self, articles: Articles) -> None:
        self.ids = list(articles)
        # A faster hash than datasketch's own; datasketch then permutes the hashes by the seed.
        self.hashes = [
            [
                mmh3.hash(shingle, signed=False)
                for shingle in set(shingles_of(article["text"], is_chinese=article["lang"] == "zh"))
            ]
            for article in articles.values()
        ]


def minhash_lsh(
    shingled: Shingled, *, seed: int, thresholds: Sequence[float] = THRESHOLDS
) -> dict[str, ByThreshold]:
    """Cluster by shared bands.

    Returns:
        Roots by method and threshold. In `LSH`, texts match if they share a band; in `CHECKED`, only if their
        estimated resemblance also reaches the threshold.
    """
    minhashes = MinHash.bulk(shingled.hashes, num_perm=PERMUTATIONS, hashfunc=int, seed=seed)
    values = np.stack([each.hashvalues for each in minhashes])
    found: dict[str, dict[float, Roots]] = {LSH: {}, CHECKED: {}}
    for threshold in thresholds:
        index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
        unchecked, checked = _Online(len(values)), _Online(len(values))
        for row, minhash in enumerate(minhashes):
            matches = np.array(index.query(minhash), np.int64)
            unchecked.add(row, matches)
            # This computes `MinHash.jaccard` for all matches together.
            resemblances = (values[matches] == values[row]).mean(axis=1)
            checked.add(row, matches[resemblances >= threshold])
            index.insert(row, minhash)
        found[LSH][threshold] = unchecked.roots(shingled.ids)
        found[CHECKED][threshold] = checked.roots(shingled.ids)
    return dict(found)


def simhash(articles: Articles, *, seed: int, distances_bits: Sequence[int] = DISTANCES_BITS) -> ByThreshold:
    """Cluster by distance, with an exhaustive search that has the same results as `SimhashIndex`."""

    def hashed(feature: bytes) -> int:
        return mmh3.hash64(feature, seed=seed, signed=False)[0]

    values = np.array(
        [Simhash(article["text"], hashfunc=hashed).value for article in articles.values()], np.uint64
    )
    online = {bits: _Online(len(values)) for bits in distances_bits}
    for row, value in enumerate(values):
        apart = np.bitwise_count(values[:row] ^ value)
        for bits, each in online.items():
            each.add(row, np.flatnonzero(apart <= bits))
    return {bits: each.roots(list(articles)) for bits, each in online.items()}


class _Online:
    """Clusters of rows, each named by its first row."""

    def __init__(self, count: int) -> None:
        self._roots = np.arange(count)
        self._sizes = np.zeros(count, np.int64)

    def add(self, row: int, matches: _Ints) -> None:
        if len(matches):
            roots = np.unique(self._roots[matches])
            self._roots[row] = roots[np.argmax(self._sizes[roots])]
        self._sizes[self._roots[row]] += 1

    def roots(self, ids: Sequence[str]) -> Roots:
        return {article: ids[root] for article, root in zip(ids, self._roots.tolist(), strict=True)}

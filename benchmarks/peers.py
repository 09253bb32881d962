"""Clusters of articles by other packages, in the order of arrival, as a careful user would set them.

Each article joins the largest cluster among its matches, the earliest of several.
"""

from collections.abc import Mapping, Sequence

import mmh3
import numpy as np
import numpy.typing as npt
from datasketch import MinHash, MinHashLSH
from simhash import Simhash

from benchmarks.articles import Articles, shingles_of
from benchmarks.score import Roots

# Twice as many as usual, for less noise: 1 KB a text.
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
        # A faster hash than the package's own; it rehashes by the seed.
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
        Roots by threshold, of `LSH`: all that share a band match; and of `CHECKED`: those whose estimated
        resemblance reaches the threshold too.
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
            # As `MinHash.jaccard`, for all at once.
            resemblances = (values[matches] == values[row]).mean(axis=1)
            checked.add(row, matches[resemblances >= threshold])
            index.insert(row, minhash)
        found[LSH][threshold] = unchecked.roots(shingled.ids)
        found[CHECKED][threshold] = checked.roots(shingled.ids)
    return dict(found)


def simhash(articles: Articles, *, seed: int, distances_bits: Sequence[int] = DISTANCES_BITS) -> ByThreshold:
    """Cluster by distance; an exhaustive search, which finds what `SimhashIndex` finds."""

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
    """Clusters of rows, each named by its first one."""

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

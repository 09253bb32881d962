"""Clusters of a set of articles in the order of arrival: our profiles' and the peers'."""

import logging
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from datasketch import MinHash, MinHashLSH
from esdedup.ingest.cluster import cluster
from esdedup.ingest.files import read_articles
from simhash import Simhash, SimhashIndex

from benchmarks.score import Roots
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile

PERMUTATIONS = 128
SIMHASH_DISTANCE_BITS = 3


def ours(path: Path, profile: Profile) -> Roots:
    """Cluster as `esdedup cluster` does without times."""
    clustered = cluster(
        read_articles([path]),
        profile=profile,
        fields=Fields(),
        use_time=False,
        retention=timedelta(days=30),
        on_rejected=_fail,
    )
    return {article.id: article.root for article in clustered}


def simhash(texts: Mapping[str, str]) -> Roots:
    """Cluster by the simhash of the package's own features."""
    # It warns about every large bucket.
    logging.getLogger("simhash").setLevel(logging.ERROR)
    index = SimhashIndex([], k=SIMHASH_DISTANCE_BITS)
    online = _Online()
    for article, text in texts.items():
        value = Simhash(text)
        online.add(article, index.get_near_dups(value))
        index.add(article, value)
    return online.roots


def minhashes_of(shingles: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """Return a `MinHash` of the shingles of each article."""
    minhashes = {}
    for article, each in shingles.items():
        minhashes[article] = MinHash(num_perm=PERMUTATIONS)
        minhashes[article].update_batch([shingle.encode() for shingle in each])
    return minhashes


def minhash_lsh(minhashes: Mapping[str, Any], *, threshold: float, is_checked: bool) -> Roots:
    """Cluster by shared bands.

    Args:
        minhashes: By article.
        threshold: Decides the bands.
        is_checked: Whether the estimated resemblance of what shares a band must reach the threshold too.
    """
    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    online = _Online()
    for article, minhash in minhashes.items():
        matches = index.query(minhash)
        if is_checked:
            matches = [match for match in matches if minhash.jaccard(minhashes[match]) >= threshold]
        online.add(article, matches)
        index.insert(article, minhash)
    return online.roots


class _Online:
    """An article joins the largest cluster among its matches, the earliest of several."""

    def __init__(self) -> None:
        self.roots: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._ages: dict[str, int] = {}

    def add(self, article: str, matches: Iterable[str]) -> None:
        roots = {self.roots[match] for match in matches}
        root = max(roots, key=lambda each: (self._sizes[each], -self._ages[each]), default=article)
        self.roots[article] = root
        self._sizes[root] = self._sizes.get(root, 0) + 1
        self._ages.setdefault(root, len(self._ages))


def _fail(rejected: ArticleRejected) -> None:
    raise rejected

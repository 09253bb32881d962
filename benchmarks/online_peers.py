"""Other packages that cluster texts online, each as its own documentation advises for a stream of texts.

Each text is looked up among those before it, and joins the cluster of the first one that matches.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import mmh3
from datasketch import MinHash, MinHashLSH
from gaoya.minhash import MinHashStringIndex
from rensa import RMinHash, RMinHashDeduplicator

from benchmarks.articles import SHINGLE_LETTERS, SHINGLE_WORDS, shingles_of

# The usual number; more would estimate better, and take longer.
_PERMUTATIONS = 128
# Minhashes are made of so many texts at once where a package can; texts of ours come in such batches.
_BATCH = 1_000
_BITS = 32
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)

Cluster = Callable[[Sequence[str], bool, float], list[int]]
"""Takes texts, whether they are Chinese, and a threshold; returns the number of the first text of each one's
cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Peer:
    """A package with its settings."""

    name: str
    cluster: Cluster


def cut(text: str, is_chinese: bool) -> Sequence[str]:
    """Return shingles as labels are made from, which find most: without punctuation, in lower case."""
    return shingles_of(text, is_chinese=is_chinese)


def _cut_as_it_is(text: str, is_chinese: bool) -> Sequence[str]:
    """Return shingles of the text as it is, which Python cuts faster."""
    if is_chinese:
        starts = range(max(1, len(text) - SHINGLE_LETTERS + 1))
        return [text[at : at + SHINGLE_LETTERS] for at in starts]
    words = text.split()
    starts = range(max(1, len(words) - SHINGLE_WORDS + 1))
    return [" ".join(words[at : at + SHINGLE_WORDS]) for at in starts]


def _datasketch(texts: Sequence[str], is_chinese: bool, threshold: float) -> list[int]:
    index = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)
    # A faster hash than the package's own.
    minhashes = MinHash.generator(
        (set(cut(text, is_chinese)) for text in texts),
        num_perm=_PERMUTATIONS,
        hashfunc=functools.partial(mmh3.hash, signed=False),
    )
    held: list[MinHash] = []
    roots: list[int] = []
    for row, minhash in enumerate(minhashes):
        matches = [each for each in index.query(minhash) if minhash.jaccard(held[each]) >= threshold]
        roots.append(roots[min(matches)] if matches else row)
        index.insert(row, minhash)
        held.append(minhash)
    return roots


def _rensa(
    texts: Sequence[str],
    is_chinese: bool,
    threshold: float,
    *,
    shingles: Callable[[str, bool], Sequence[str]],
) -> list[int]:
    # It checks what shares a band, and keeps only texts that match none before: the roots.
    index = RMinHashDeduplicator(threshold=threshold, num_perm=_PERMUTATIONS, use_lsh=True)
    roots: list[int] = []
    for at in range(0, len(texts), _BATCH):
        minhashes = RMinHash.from_token_sets(
            [shingles(text, is_chinese) for text in texts[at : at + _BATCH]], num_perm=_PERMUTATIONS, seed=42
        )
        for row, minhash in enumerate(minhashes, at):
            matches = index.get_duplicates(minhash)
            if not matches:
                index.add(str(row), minhash)
            roots.append(min(map(int, matches), default=row))
    return roots


def _gaoya(texts: Sequence[str], is_chinese: bool, threshold: float) -> list[int]:
    length = SHINGLE_LETTERS if is_chinese else SHINGLE_WORDS
    index = MinHashStringIndex(
        hash_size=_BITS,
        jaccard_threshold=threshold,
        # It finds the bands that suit the threshold.
        num_bands=None,
        band_size=None,
        num_hashes=_PERMUTATIONS,
        # In Rust, so that no shingle is cut in Python.
        analyzer="char" if is_chinese else "word",
        lowercase=True,
        ngram_range=(length, length),
        # For texts of which few are alike.
        id_container="smallvec",
    )
    roots: list[int] = []
    for row, text in enumerate(texts):
        matches = index.query(text)
        roots.append(roots[min(matches)] if matches else row)
        # Makes the minhash of the text again: there is no call for both.
        index.insert_document(row, text)
    return roots


PEERS = (
    Peer(
        name=f"rensa RMinHashDeduplicator({_PERMUTATIONS}), texts as they are",
        cluster=functools.partial(_rensa, shingles=_cut_as_it_is),
    ),
    Peer(
        name=f"rensa RMinHashDeduplicator({_PERMUTATIONS})", cluster=functools.partial(_rensa, shingles=cut)
    ),
    Peer(name=f"gaoya MinHashStringIndex({_PERMUTATIONS})", cluster=_gaoya),
    Peer(name=f"datasketch MinHashLSH({_PERMUTATIONS}), MinHash.jaccard checked", cluster=_datasketch),
)

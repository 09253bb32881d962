"""Precision and recall of clusters, on every labelled set: our profiles', and the peers'.

The thresholds of our profiles were chosen on the same sets, and those of the peers are the best for each.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks import articles, detectors, peers
from benchmarks.articles import Articles
from benchmarks.detection import Detection
from benchmarks.hash_seed import hashed_by
from benchmarks.run import Run
from benchmarks.score import Share
from benchmarks.tally import Tally
from esdedup.fingerprint.profile import DEFAULT, PROFILES

TABLE, PEERS_TABLE = "quality", "quality-peers"
KEPT_WHOLE = f"{DEFAULT.name}, pages kept whole"
BY_DEFAULT = f"{DEFAULT.name} (default)"
TWO_LOOKS = f"{DEFAULT.name}, two looks"
SHUFFLED = f"{DEFAULT.name}, in another order"
WITHOUT_SOURCE = f"{DEFAULT.name}, without `source`"
NEW_SITES = f"{DEFAULT.name}, all sites new"
NOTHING_LEARNED = f"{DEFAULT.name}, nothing learned"
# What a site may have shown at most, on average, where all sites are new.
_FIRST_PAGES = 20


def quality(run: Run) -> list[Detection]:
    """Score our profiles on all sets, with several hash functions."""
    rows: list[Detection] = []
    for name in articles.SETS:
        tally, held = Tally(name), articles.articles_of(name)
        for seed in range(run.seeds):
            with hashed_by(seed):
                _add_ours(tally, name, held, seed)
        rows += tally.detections(TABLE)
    return rows


def quality_peers(run: Run) -> list[Detection]:
    """Score the peers on all sets, each with the threshold that is the best for the set."""
    rows: list[Detection] = []
    for name in articles.SETS:
        first = Tally(name)
        held = articles.articles_of(name)
        shingled = peers.Shingled(held)
        add_minhashes(first, shingled, seed=1, thresholds=peers.THRESHOLDS)
        _add_simhash(first, held, seed=1, distances_bits=peers.DISTANCES_BITS)
        best = _best(list(first.detections(PEERS_TABLE)))
        others = Tally(name)
        for seed in range(2, run.seeds + 1):
            for each in best:
                assert each.threshold is not None
                if each.method == peers.SIMHASH:
                    _add_simhash(others, held, seed=seed, distances_bits=[int(each.threshold)])
                else:
                    add_minhashes(
                        others, shingled, seed=seed, thresholds=[each.threshold], methods=[each.method]
                    )
        found = {(each.method, each.threshold): each for each in others.detections(PEERS_TABLE)}
        rows += [_joined(each, found.get((each.method, each.threshold))) for each in best]
    return rows


def _add_ours(tally: Tally, name: str, held: Articles, seed: int) -> None:
    tally.add(KEPT_WHOLE, detectors.clustered(held, DEFAULT.with_changes(keep_boilerplate=True)))
    found = detectors.clustered(held, DEFAULT)
    tally.add(BY_DEFAULT, found)
    tally.add(TWO_LOOKS, detectors.in_two_looks(held, DEFAULT))
    ids = np.random.default_rng(seed).permutation(np.array(list(held), object))
    tally.add(SHUFFLED, detectors.clustered({article: held[article] for article in ids}, DEFAULT))
    if name in articles.SITES:
        without_source = {
            article: {field: value for field, value in each.items() if field != "source"}
            for article, each in held.items()
        }
        tally.add(WITHOUT_SOURCE, detectors.clustered(without_source, DEFAULT))
        parts = detectors.parts(held, _FIRST_PAGES * articles.SITES[name])
        tally.add_parts(NEW_SITES, [detectors.clustered(part, DEFAULT) for part in parts])
        tally.add(NOTHING_LEARNED, detectors.never_learning(held, DEFAULT))
    for profile in PROFILES.values():
        if profile != DEFAULT:
            tally.add(profile.name, detectors.clustered(held, profile))


def add_minhashes(
    tally: Tally,
    shingled: peers.Shingled,
    *,
    seed: int,
    thresholds: Sequence[float],
    methods: Sequence[str] = (peers.LSH, peers.CHECKED),
) -> None:
    found = peers.minhash_lsh(shingled, seed=seed, thresholds=thresholds)
    for method in methods:
        for threshold, roots in found[method].items():
            tally.add(method, roots, threshold=threshold)


def _add_simhash(tally: Tally, held: Articles, *, seed: int, distances_bits: Sequence[int]) -> None:
    for bits, roots in peers.simhash(held, seed=seed, distances_bits=distances_bits).items():
        tally.add(peers.SIMHASH, roots, threshold=bits)


def _best(found: Sequence[Detection]) -> list[Detection]:
    """Return each method with its best threshold, by F1."""
    by_method: dict[str, list[Detection]] = defaultdict(list)
    for each in found:
        by_method[each.method].append(each)
    return [max(some, key=lambda each: each.f1.value) for some in by_method.values()]


def _joined(one: Detection, other: Detection | None) -> Detection:
    """Return the scores of both, of the same method on the same set."""
    if other is None:
        return one
    recalls: list[Share] = [*one.recalls_of_edited, *other.recalls_of_edited]
    return dataclasses.replace(one, scores=[*one.scores, *other.scores], recalls_of_edited=recalls)

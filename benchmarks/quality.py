"""Precision and recall of the clusters of every profile and of the peers, on every labelled set.

The thresholds of our profiles were chosen on the same sets, and those of the peers are the best for them.
"""

import dataclasses
import itertools
import statistics
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks import articles, detectors
from benchmarks.score import Roots, Score, Share
from esdedup.fingerprint.profile import PROFILES, VERIFIED, Profile
from esdedup.text.normalise import normalise

TABLE, CURVES = "quality", "quality-threshold"
_SHIFTS = [round(float(each), 2) for each in np.arange(-0.25, 0.3, 0.05)]
_THRESHOLDS = [round(float(each), 2) for each in np.arange(0.3, 0.95, 0.05)]
SHIFTED = "verified, thresholds shifted together"
LSH = f"datasketch MinHashLSH({detectors.PERMUTATIONS})"
CHECKED = f"{LSH}, MinHash.jaccard checked"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detection:
    """The score of one method on one set."""

    table: str
    # The set.
    case: str
    method: str
    # The threshold that was varied; for `verified` the least resemblance.
    threshold: float | None = None
    score: Score
    # Recall of the pairs that are not copies of each other.
    recall_of_edited: Share
    # The lowest exact Jaccard resemblance between a member of a cluster and its first one, and between
    # two members; for our profiles only. Shingles are those of the labels, but of normalised text, so that
    # script makes no difference.
    lowest_to_root: float | None = None
    lowest_of_two: float | None = None

    def cells(self) -> dict[str, str]:
        score = self.score
        return {
            "set": self.case,
            "method": self.method,
            "precision": str(score.precision),
            "recall": str(score.recall),
            "of edited pairs": str(self.recall_of_edited),
            "F1": str(score.f1),
            "positives": str(score.positives),
            "false": str(score.false_positives),
            "largest": str(score.largest_cluster),
            "least to root": "" if self.lowest_to_root is None else f"{self.lowest_to_root:.2f}",
            "least of two": "" if self.lowest_of_two is None else f"{self.lowest_of_two:.2f}",
        }


def quality() -> list[Detection]:
    """Score all methods on all sets, each in the order of arrival, and some at many thresholds."""
    curves = list(itertools.chain.from_iterable(_curves_of(name) for name in articles.labelled_sets()))
    best = [
        *_best([each for each in curves if each.method == LSH]),
        *_best([each for each in curves if each.method == CHECKED]),
    ]
    rows = list(itertools.chain.from_iterable(_rows_of(name) for name in articles.labelled_sets()))
    return sorted((*rows, *best), key=lambda row: row.case) + curves


def _rows_of(name: str) -> Iterator[Detection]:
    held = articles.articles_of(name)
    normal = normalise([each["text"] for each in held.values()])
    shingles = {
        article: articles.shingles_of(held[article] | {"text": text})
        for article, text in zip(held, normal, strict=True)
    }
    for profile in PROFILES.values():
        roots = detectors.ours(articles.path_of(name), profile)
        lowest = _lowest_resemblance(roots, shingles)
        yield dataclasses.replace(
            _detection(TABLE, name, profile.name, roots), lowest_to_root=lowest[0], lowest_of_two=lowest[1]
        )
    roots = detectors.simhash({article: each["text"] for article, each in held.items()})
    method = f"simhash SimhashIndex(k={detectors.SIMHASH_DISTANCE_BITS}), its own features"
    yield _detection(TABLE, name, method, roots)


def _curves_of(name: str) -> Iterator[Detection]:
    for profile, threshold in _shifted():
        yield _detection(CURVES, name, SHIFTED, detectors.ours(articles.path_of(name), profile), threshold)
    held = articles.articles_of(name)
    minhashes = detectors.minhashes_of(
        {article: articles.shingles_of(each) for article, each in held.items()}
    )
    for threshold in _THRESHOLDS:
        for method in (LSH, CHECKED):
            roots = detectors.minhash_lsh(minhashes, threshold=threshold, is_checked=method == CHECKED)
            yield _detection(CURVES, name, method, roots, threshold)


def _detection(table: str, name: str, method: str, roots: Roots, threshold: float | None = None) -> Detection:
    return Detection(
        table=table,
        case=name,
        method=method,
        threshold=threshold,
        score=Score.of(roots, articles.labels_of(name)),
        recall_of_edited=Score.of(roots, articles.labels_of(name, edited_only=True)).recall,
    )


def _shifted() -> Iterator[tuple[Profile, float]]:
    """Yield stricter and laxer variants of `verified`, each with its least resemblance."""
    rules = VERIFIED.agreement
    if rules is None:
        return
    for shift in _SHIFTS:
        least, most, tiny = (
            min(max(threshold + shift, 0.0), 1.0)
            for threshold in (rules.least_resemblance, rules.most_resemblance, rules.tiny_resemblance)
        )
        changed = dataclasses.replace(
            rules, least_resemblance=least, most_resemblance=most, tiny_resemblance=tiny
        )
        yield dataclasses.replace(VERIFIED, agreement=changed), round(least, 2)


def _best(curves: list[Detection]) -> Iterator[Detection]:
    """Choose a method's best threshold by F1: on each set, and by its mean over all sets."""

    def f1(each: Detection) -> float:
        return each.score.f1.value

    def named(each: Detection, chosen: str) -> Detection:
        method = f"{each.method}, {each.threshold}: best {chosen}"
        return dataclasses.replace(each, table=TABLE, method=method)

    for _, of_set in itertools.groupby(curves, lambda each: each.case):
        yield named(max(of_set, key=f1), "for this set")
    by_threshold = {
        threshold: [each for each in curves if each.threshold == threshold] for threshold in _THRESHOLDS
    }
    for each in max(by_threshold.values(), key=lambda some: statistics.mean(map(f1, some))):
        yield named(each, "over all sets")


def _lowest_resemblance(roots: Roots, shingles: Mapping[str, frozenset[str]]) -> tuple[float, float]:
    """Return the lowest resemblance of a member to the first of its cluster, and of any two members."""
    clusters: dict[str, list[frozenset[str]]] = {}
    for article, root in roots.items():
        if root is not None:
            clusters.setdefault(root, []).append(shingles[article])
    lowest_to_root = lowest_of_two = 1.0
    for members in clusters.values():
        for number, one in enumerate(members):
            for other in members[number + 1 :]:
                shared = len(one & other)
                resemblance = shared / (len(one) + len(other) - shared)
                lowest_of_two = min(lowest_of_two, resemblance)
                if number == 0:
                    lowest_to_root = min(lowest_to_root, resemblance)
    return lowest_to_root, lowest_of_two

"""How right the clusters of every profile and of the peers are, on every labelled set."""

import dataclasses
import itertools
import statistics
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks import articles, detectors
from benchmarks.score import Roots, Score
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
    """What a method makes of a set."""

    table: str
    # The set.
    case: str
    method: str
    # What was varied: of `verified`, its least resemblance.
    threshold: float | None = None
    score: Score
    # The lowest exact Jaccard resemblance that a member of a cluster has to its first one, and two members
    # have to each other; only of our profiles. Of shingles as the labels have them, but of normalised text:
    # the same article in the other script is no different article.
    lowest_to_root: float | None = None
    lowest_of_two: float | None = None

    def cells(self) -> dict[str, str]:
        score = self.score
        return {
            "set": self.case,
            "method": self.method,
            "precision": str(score.precision),
            "recall": str(score.recall),
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
    labels = articles.labels_of(name)
    normal = normalise([each["text"] for each in held.values()])
    shingles = {
        article: articles.shingles_of(held[article] | {"text": text})
        for article, text in zip(held, normal, strict=True)
    }
    for profile in PROFILES.values():
        roots = detectors.ours(articles.path_of(name), profile)
        lowest = _lowest_resemblance(roots, shingles)
        yield Detection(
            table=TABLE,
            case=name,
            method=profile.name,
            score=Score.of(roots, labels),
            lowest_to_root=lowest[0],
            lowest_of_two=lowest[1],
        )
    roots = detectors.simhash({article: each["text"] for article, each in held.items()})
    method = f"simhash SimhashIndex(k={detectors.SIMHASH_DISTANCE_BITS}), its own features"
    yield Detection(table=TABLE, case=name, method=method, score=Score.of(roots, labels))


def _curves_of(name: str) -> Iterator[Detection]:
    labels = articles.labels_of(name)

    def detection(method: str, threshold: float, roots: Roots) -> Detection:
        score = Score.of(roots, labels)
        return Detection(table=CURVES, case=name, method=method, threshold=threshold, score=score)

    for profile, threshold in _shifted():
        yield detection(SHIFTED, threshold, detectors.ours(articles.path_of(name), profile))
    held = articles.articles_of(name)
    minhashes = detectors.minhashes_of(
        {article: articles.shingles_of(each) for article, each in held.items()}
    )
    for threshold in _THRESHOLDS:
        for method in (LSH, CHECKED):
            roots = detectors.minhash_lsh(minhashes, threshold=threshold, is_checked=method == CHECKED)
            yield detection(method, threshold, roots)


def _shifted() -> Iterator[tuple[Profile, float]]:
    """Make `verified` stricter and laxer; with each its least resemblance."""
    rules = VERIFIED.agreement
    if rules is None:
        return
    for shift in _SHIFTS:
        least = min(max(rules.least_resemblance + shift, 0.0), 1.0)
        most = min(max(rules.most_resemblance + shift, 0.0), 1.0)
        changed = dataclasses.replace(rules, least_resemblance=least, most_resemblance=most)
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
    """Return the lowest of a member and the first of its cluster, and of any two members."""
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

"""Computes precision and recall of clusters from labelled pairs of articles, with confidence intervals.

Any two articles with the same root are a predicted pair. Pairs labelled ``pos`` must be found, pairs labelled
``grey`` are ignored, and every other predicted pair, labelled or not, is false.

Pairs are not independent of each other: one wrong article in a cluster of twenty makes nineteen pairs wrong.
The bootstrap for the intervals therefore draws groups of articles. No predicted or ``pos`` pair connects two
groups.
"""

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks import articles
from benchmarks.articles import Records

_DRAWS = 2_000
_LOW, _HIGH = 2.5, 97.5
# 95% of a normal distribution lies within this many standard deviations.
_DEVIATIONS = 1.96

Roots = Mapping[str, str | None]
"""The root of each article, in the order of arrival; None for an article without a cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
    """A share, and the bounds of its 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, shares: Sequence["Share"]) -> "Share":
        """Return the mean of several measurements of one share, with the lowest and the highest bound."""
        return cls(
            value=float(np.mean([share.value for share in shares])),
            low=min(share.low for share in shares),
            high=max(share.high for share in shares),
        )

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.2f}-{self.high:.2f})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """The score of the clusters of one set."""

    precision: Share
    recall: Share
    f1: Share
    positives: int
    true_positives: int
    false_positives: int
    grey: int
    largest_cluster: int

    @classmethod
    def of(cls, roots: Roots, labels: Records) -> "Score":
        """Score clusters, which must contain every labelled article."""
        numbers: dict[tuple[str, bool], int] = {}
        cluster_of = {
            article: numbers.setdefault((root or article, root is None), len(numbers))
            for article, root in roots.items()
        }
        sizes = np.bincount(list(cluster_of.values()))
        found = {"pos": np.zeros(len(sizes), np.int64), "grey": np.zeros(len(sizes), np.int64)}
        positive: list[tuple[int, int]] = []
        for pair, label in labels.items():
            one, other = (cluster_of[article] for article in pair)
            if label == "pos":
                positive.append((one, other))
            if one == other and label in found:
                found[label][one] += 1
        groups = _groups(len(sizes), positive)
        wrong = sizes * (sizes - 1) // 2 - found["pos"] - found["grey"]
        true, false, positives = (
            np.bincount(groups, each, len(sizes)).astype(np.int64)
            for each in (found["pos"], wrong, np.bincount([one for one, _ in positive], minlength=len(sizes)))
        )
        return cls(
            precision=_share(true, true + false),
            recall=_share(true, positives),
            # The harmonic mean of precision and recall.
            f1=_share(2 * true, true + false + positives),
            positives=len(positive),
            true_positives=int(true.sum()),
            false_positives=int(false.sum()),
            grey=int(found["grey"].sum()),
            largest_cluster=int(sizes.max()),
        )


def _groups(count: int, pairs: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """Return a group number for each cluster; clusters connected by pairs have the same number."""
    parents = list(range(count))

    def first_of(cluster: int) -> int:
        while parents[cluster] != cluster:
            parents[cluster] = cluster = parents[parents[cluster]]
        return cluster

    for one, other in pairs:
        # Keep the lower number in any order of pairs, so that every run makes the same draws.
        lower, higher = sorted((first_of(one), first_of(other)))
        parents[higher] = lower
    return np.array([first_of(cluster) for cluster in range(count)])


def _share(parts: npt.NDArray[np.int64], wholes: npt.NDArray[np.int64]) -> Share:
    """Return the sum of the parts divided by the sum of the wholes, both given by group."""
    counted = wholes > 0
    parts, wholes = parts[counted], wholes[counted]
    count = len(wholes)
    if not count:
        return Share(value=0.0, low=0.0, high=1.0)
    value = parts.sum() / wholes.sum()
    draws = np.random.default_rng(count).multinomial(count, np.full(count, 1 / count), _DRAWS)
    low, high = np.percentile(draws @ parts / (draws @ wholes), (_LOW, _HIGH))
    # If all groups are right, or all are wrong, the bootstrap has no spread. In that case, use Wilson's
    # interval, with groups as trials.
    unseen = _DEVIATIONS**2 / (count + _DEVIATIONS**2)
    if value == 1:
        low = 1 - unseen
    if value == 0:
        high = unseen
    return Share(value=float(value), low=float(low), high=float(high))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detection:
    """The scores of one method on one set."""

    table: str
    # The name of the set.
    case: str
    method: str
    # The threshold that was chosen or varied, if any.
    threshold: float | None = None
    # One score for each hash function.
    scores: Sequence[Score]
    # The recall of pairs that are not copies, for each hash function; then the number of such pairs.
    recalls_of_edited: Sequence[Share]
    edited: int

    @property
    def precision(self) -> Share:
        return Share.mean([each.precision for each in self.scores])

    @property
    def recall(self) -> Share:
        return Share.mean([each.recall for each in self.scores])

    @property
    def recall_of_edited(self) -> Share:
        return Share.mean(self.recalls_of_edited)

    @property
    def f1(self) -> Share:
        return Share.mean([each.f1 for each in self.scores])

    def cells(self) -> dict[str, str]:
        first = self.scores[0]
        return {
            "set": self.case,
            "method": self.method,
            "threshold": "" if self.threshold is None else f"{self.threshold:g}",
            "precision": str(self.precision),
            "precision by seed": _range([each.precision for each in self.scores]),
            "recall": str(self.recall),
            "recall by seed": _range([each.recall for each in self.scores]),
            "of edited pairs": str(self.recall_of_edited),
            "F1": str(self.f1),
            "pairs": str(first.positives),
            "edited": str(self.edited),
            "false": f"{statistics.mean(each.false_positives for each in self.scores):,.0f}",
            "largest": str(max(each.largest_cluster for each in self.scores)),
        }


def _range(shares: Sequence[Share]) -> str:
    values = [each.value for each in shares]
    return f"{min(values):.3f}-{max(values):.3f}" if len(values) > 1 else ""


class Tally:
    """Scores of methods on one set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._labels = articles.labels_of(name)
        self._of_edited = articles.labels_of(name, edited_only=True)
        self._scores: dict[tuple[str, float | None], list[Score]] = defaultdict(list)
        self._edited: dict[tuple[str, float | None], list[Score]] = defaultdict(list)

    def add(self, method: str, roots: Roots, *, threshold: float | None = None) -> None:
        """Score clusters of all articles."""
        case = method, threshold
        self._scores[case].append(Score.of(roots, self._labels))
        self._edited[case].append(Score.of(roots, self._of_edited))

    def add_parts(self, method: str, found: Sequence[Roots]) -> None:
        """Score clusters of separate parts of the articles; pairs across parts are ignored."""
        part_of = {article: number for number, part in enumerate(found) for article in part}
        roots = {
            article: None if root is None else f"{number} {root}"
            for number, part in enumerate(found)
            for article, root in part.items()
        }
        for labels, scores in ((self._labels, self._scores), (self._of_edited, self._edited)):
            scores[method, None].append(Score.of(roots, _within(labels, part_of)))

    def detections(self, table: str) -> Iterator[Detection]:
        for (method, threshold), scores in self._scores.items():
            edited = self._edited[method, threshold]
            yield Detection(
                table=table,
                case=self._name,
                method=method,
                threshold=threshold,
                scores=scores,
                recalls_of_edited=[each.recall for each in edited],
                edited=edited[0].positives,
            )


def _within(labels: Records, part_of: dict[str, int]) -> Records:
    """Return the labels of pairs within one part."""
    return {pair: label for pair, label in labels.items() if len({part_of[each] for each in pair}) == 1}

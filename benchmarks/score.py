"""Precision and recall of clusters by labelled pairs of articles, with confidence intervals.

Every two articles with one root are a predicted pair. Pairs labelled ``pos`` must be found, ``grey`` ones
count neither way, and every other predicted pair, labelled or not, is false.

Pairs are not independent of each other: one wrong member of a cluster of twenty makes nineteen wrong
pairs. The bootstrap for the intervals therefore draws groups of articles that no pair, predicted or
labelled ``pos``, connects with another group.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.articles import Records

_DRAWS = 2_000
_LOW, _HIGH = 2.5, 97.5
# 95% of a normal distribution lie within so many standard deviations.
_DEVIATIONS = 1.96

Roots = Mapping[str, str | None]
"""The root of each article, in the order of arrival; None for an article that is alone."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
    """A share, and the bounds of its 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, shares: Sequence["Share"]) -> "Share":
        """Return the mean of several measurements of one share, within the widest bounds of any of them."""
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
        """Score clusters; every labelled article must have its place in them."""
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
            # The harmonic mean of both.
            f1=_share(2 * true, true + false + positives),
            positives=len(positive),
            true_positives=int(true.sum()),
            false_positives=int(false.sum()),
            grey=int(found["grey"].sum()),
            largest_cluster=int(sizes.max()),
        )


def _groups(count: int, pairs: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """Number clusters so that those that pairs connect have one number."""
    parents = list(range(count))

    def first_of(cluster: int) -> int:
        while parents[cluster] != cluster:
            parents[cluster] = cluster = parents[parents[cluster]]
        return cluster

    for one, other in pairs:
        # The lower number, in whatever order pairs come: the same draws in every run.
        lower, higher = sorted((first_of(one), first_of(other)))
        parents[higher] = lower
    return np.array([first_of(cluster) for cluster in range(count)])


def _share(parts: npt.NDArray[np.int64], wholes: npt.NDArray[np.int64]) -> Share:
    """Return the share of all parts in all wholes, both by group."""
    counted = wholes > 0
    parts, wholes = parts[counted], wholes[counted]
    count = len(wholes)
    if not count:
        return Share(value=0.0, low=0.0, high=1.0)
    value = parts.sum() / wholes.sum()
    draws = np.random.default_rng(count).multinomial(count, np.full(count, 1 / count), _DRAWS)
    low, high = np.percentile(draws @ parts / (draws @ wholes), (_LOW, _HIGH))
    # Where all groups are right, or none is, the bootstrap has no spread; Wilson's interval with groups
    # as trials does.
    unseen = _DEVIATIONS**2 / (count + _DEVIATIONS**2)
    if value == 1:
        low = 1 - unseen
    if value == 0:
        high = unseen
    return Share(value=float(value), low=float(low), high=float(high))

"""Which pages are near-duplicates, by the articles on them, and how clusters stand against that.

As in the labelled sets, a pair is positive if the two articles have 0.7 of their shingles in common. Other
pairs of one story count neither way, nor do those of which an article makes up little of its page. All other
pairs in a cluster are false.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.articles import SHINGLE_LETTERS, SHINGLE_WORDS
from benchmarks.day.crawl import CrawledPage

_LEAST_JACCARD = 0.7
_LEAST_SHARE_OF_PAGE = 0.3

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts:
    """For each page, in their order: int64 ``(n,)``. A pair counts for both of its pages."""

    positives: Ints
    found: Ints
    false: Ints

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Shares":
        """Return the shares of the pairs with a chosen page."""
        positives, found, false = (
            int(each[chosen].sum()) for each in (self.positives, self.found, self.false)
        )
        return Shares(pages=int(chosen.sum()), positives=positives, found=found, false=false)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shares:
    pages: int
    positives: int
    found: int
    false: int

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.false)

    @property
    def recall(self) -> float:
        return self.found / max(1, self.positives)


class Truth:
    """Labels of the pairs of pages with one story; all others are negative."""

    def __init__(self, pages: Iterable[CrawledPage]) -> None:
        stories: dict[int, list[tuple[int, str, bool]]] = {}
        self.count = 0
        for page in pages:
            is_little = len(page.body) < _LEAST_SHARE_OF_PAGE * len(page.text)
            stories.setdefault(page.story, []).append((page.number, page.body, is_little))
            self.count += 1
        self._positive: list[tuple[int, int]] = []
        self._neither: list[tuple[int, int]] = []
        for versions in stories.values():
            for (one, other), is_positive in _labels(versions):
                (self._positive if is_positive else self._neither).append((one, other))

    def counts(self, roots: Sequence[str | None]) -> Counts:
        """Score clusters: the root of each page, None for one that is alone."""
        numbers: dict[str, int] = {}
        clusters = np.array(
            [
                numbers.setdefault(root if root is not None else f"alone {place}", len(numbers))
                for place, root in enumerate(roots)
            ]
        )
        positives, found = self._of_pages(self._positive, clusters)
        _, excused = self._of_pages(self._neither, clusters)
        together = np.bincount(clusters)[clusters] - 1
        return Counts(positives=positives, found=found, false=together - found - excused)

    def _of_pages(self, pairs: list[tuple[int, int]], clusters: Ints) -> tuple[Ints, Ints]:
        """Return how many pairs each page has, and how many of them in its cluster."""
        held = np.array(pairs, np.int64).reshape(-1, 2)
        together = held[clusters[held[:, 0]] == clusters[held[:, 1]]]
        return (
            np.bincount(held.ravel(), minlength=self.count),
            np.bincount(together.ravel(), minlength=self.count),
        )


def _labels(versions: list[tuple[int, str, bool]]) -> Iterable[tuple[tuple[int, int], bool]]:
    """Yield the pairs of one story that are not negative, and whether each is positive."""
    shingles: dict[str, frozenset[tuple[str, ...]]] = collections.defaultdict(frozenset)
    for _, body, _ in versions:
        if len(versions) > 1 and body and body not in shingles:
            shingles[body] = _shingles(body)
    for (one, body, one_little), (other, other_body, other_little) in itertools.combinations(versions, 2):
        if body == other_body:
            jaccard = 1.0
        else:
            shared = len(shingles[body] & shingles[other_body])
            jaccard = shared / max(1, len(shingles[body]) + len(shingles[other_body]) - shared)
        yield (one, other), jaccard >= _LEAST_JACCARD and not (one_little or other_little)


def _shingles(body: str) -> frozenset[tuple[str, ...]]:
    words = body.split()
    # Scripts without spaces.
    is_spaced = len(words) > len(body) / 20
    parts, length = (words, SHINGLE_WORDS) if is_spaced else (list("".join(words)), SHINGLE_LETTERS)
    return frozenset(zip(*(parts[at:] for at in range(length)), strict=False))

"""The benchmark `day`: compares clusters with the truth, and measures time and memory."""

import collections
import dataclasses
import itertools
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.articles import SHINGLE_LETTERS, SHINGLE_WORDS
from benchmarks.day.crawl import CrawledPage, crawl
from benchmarks.day.measure import Fed, Usage, cluster_file, feed_file, learned_by, roots_of
from benchmarks.server import Run
from esdedup.maintenance import LearnedStats

_LEAST_JACCARD = 0.7
_LEAST_SHARE_OF_PAGE = 0.3

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of pairs for each page, in order: int64 ``(n,)``. A pair is counted for both of its pages."""

    positives: Ints
    found: Ints
    false: Ints

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Shares":
        """Return precision and recall for the pairs of the chosen pages."""
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
    """Labels of the pairs of pages about the same story; all other pairs are negative."""

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
        """Score clusters, given the root of each page; None stands for a page without a cluster."""
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
        """Return the number of pairs of each page, and how many of them are in its cluster."""
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
    # Words are long in scripts without spaces.
    is_spaced = len(words) > len(body) / 20
    parts, length = (words, SHINGLE_WORDS) if is_spaced else (list("".join(words)), SHINGLE_LETTERS)
    return frozenset(zip(*(parts[at:] for at in range(length)), strict=False))


PAGES, SITES = 50_000, 200
PARTS = 4
_INDEX, _FOREST = "benchmark-day", "benchmark-day-forest"
# Ranges of `CrawledPage.age`: from, and to (exclusive).
_AGES = ((0, 5), (5, 10), (10, 50), (50, 200), (200, None))
_MILLION = 1e6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quality:
    """Precision and recall of clusters, for some of the pages."""

    table: str
    case: str
    shares: Shares

    def cells(self) -> dict[str, str]:
        return {
            "pages": self.case,
            "count": f"{self.shares.pages:,}",
            "precision": f"{self.shares.precision:.3f}",
            "recall": f"{self.shares.recall:.3f}",
            "positives": f"{self.shares.positives:,}",
            "false": f"{self.shares.false:,}",
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quarter:
    """The time and memory that were needed for a quarter of the pages."""

    table: str
    case: str
    # The costs of clustering in memory.
    clustered: Usage
    # The costs of feeding to Elasticsearch, by a new process that opened the forest.
    fed: Fed
    # The state after the quarter.
    learned: LearnedStats

    def cells(self) -> dict[str, str]:
        clustered, fed, learned = self.clustered, self.fed.usage, self.learned
        return {
            "": self.case,
            "in memory, µs a page": f"{clustered.processor_s / clustered.pages * _MILLION:,.0f}",
            "resident, MB": f"{clustered.resident_bytes / _MILLION:,.0f}",
            "opening, s": f"{self.fed.opening_s:.2f}",
            "feeding, µs a page": f"{fed.processor_s / fed.pages * _MILLION:,.0f}",
            "feeder resident, MB": f"{fed.resident_bytes / _MILLION:,.0f}",
            "no fingerprint": f"{self.fed.without_fingerprint:,}",
            "boilerplate": f"{learned.boilerplate:,}",
            "stored, MB": f"{learned.document_bytes / _MILLION:.1f}",
            "held, MB": f"{learned.memory_bytes / _MILLION:.1f}",
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one run."""

    quality: list[Quality]
    quarters: list[Quarter]
    # The number of pages whose root in Elasticsearch differs from the root in memory.
    differences: int
    largest_false_cluster: int


def day(run: Run) -> Sequence[Quality | Quarter]:
    """Crawl the pages of a day, and score their clusters."""
    with server.client(run, lifetime_s=3_600) as client:
        outcome = outcome_of(client, pages=run.size(PAGES), sites=SITES)
    print(f"{outcome.differences} pages have different roots in Elasticsearch and in memory")
    return [*outcome.quality, *outcome.quarters]


def outcome_of(client: Elasticsearch, *, pages: int, sites: int) -> Outcome:
    """Cluster pages in memory, and feed them to Elasticsearch in four parts, with a restart between parts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.jsonl"
        facts = _Facts()
        truth = Truth(facts.noting(_written(crawl(pages, sites=sites), path)))
        roots, clustered = cluster_file(path, pages, parts=PARTS)
        quarters = list(_fed(client, path, pages, clustered))
        differences = sum(
            one != other for one, other in zip(roots, roots_of(client, _INDEX, pages), strict=True)
        )
        client.indices.delete(index=[_INDEX, _FOREST])
    counts = truth.counts(roots)
    return Outcome(
        quality=list(_qualities(facts, counts)),
        quarters=quarters,
        differences=differences,
        largest_false_cluster=int(counts.false.max()) + 1,
    )


class _Facts:
    """The age and design of each page, and whether its article is lost."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, bool]] = []

    def noting(self, pages: Iterable[CrawledPage]) -> Iterator[CrawledPage]:
        for page in pages:
            self._rows.append((page.age, page.design, page.kind == "lost"))
            yield page

    @property
    def columns(self) -> tuple[npt.NDArray[np.int64], ...]:
        ages, designs, are_lost = np.array(self._rows, np.int64).T
        return ages, designs, are_lost


def _written(pages: Iterable[CrawledPage], path: Path) -> Iterator[CrawledPage]:
    """Write pages to a file, and pass them on."""
    with path.open("w", encoding="utf-8") as file:
        for page in pages:
            file.write(json.dumps(page.article, ensure_ascii=False) + "\n")
            yield page


def _fed(client: Elasticsearch, path: Path, count: int, clustered: list[Usage]) -> Iterator[Quarter]:
    client.options(ignore_status=404).indices.delete(index=[_INDEX, _FOREST])
    url = server.url_of(client)
    for number, fed in enumerate(feed_file(url, path, count, parts=PARTS, index=_INDEX, forest=_FOREST)):
        yield Quarter(
            table="day: costs",
            case=_quarter(number),
            clustered=clustered[number],
            fed=fed,
            learned=learned_by(client, _FOREST),
        )


def _quarter(number: int) -> str:
    return f"quarter {number + 1}"


def _qualities(facts: _Facts, counts: Counts) -> Iterator[Quality]:
    ages, designs, are_lost = facts.columns
    quarters = np.arange(len(ages)) * PARTS // len(ages)
    chosen = {"all": ages >= 0}
    chosen |= {_quarter(number): quarters == number for number in range(PARTS)}
    for design, since in enumerate(("its first page", "its redesign")):
        for start, stop in _AGES:
            name = f"{start + 1} to {stop}" if stop else f"from {start + 1} on"
            are_within = (ages >= start) & ((ages < stop) if stop else True)
            chosen[f"pages of each site since {since}: {name}"] = are_within & (designs == design)
    chosen["without their articles"] = are_lost == 1
    for case, pages in chosen.items():
        yield Quality(table="day", case=case, shares=counts.where(pages))

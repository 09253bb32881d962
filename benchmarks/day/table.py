"""The benchmark `day`: clusters against the truth, time, memory and disk, from quarter to quarter."""

import dataclasses
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from elasticsearch import Elasticsearch

from benchmarks import server
from benchmarks.day.crawl import CrawledPage, crawl
from benchmarks.day.measure import Fed, Usage, cluster_file, feed_file, learned_by, roots_of
from benchmarks.day.truth import Counts, Shares, Truth
from benchmarks.run import Run
from esdedup.maintenance import LearnedStats

PAGES, SITES = 50_000, 200
PARTS = 4
_INDEX, _FOREST = "benchmark-day", "benchmark-day-forest"
# How many pages a design was on before: from, and to (exclusive).
_AGES = ((0, 5), (5, 10), (10, 50), (50, 200), (200, None))
_MILLION = 1e6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quality:
    """How clusters stand against the truth, for some of the pages."""

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
    """What a quarter of the pages took."""

    table: str
    case: str
    # In memory.
    clustered: Usage
    # Into Elasticsearch, by a process that opened the forest for this quarter.
    fed: Fed
    # After it.
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
    """Of one run of the day."""

    quality: list[Quality]
    quarters: list[Quarter]
    # Pages with another root in Elasticsearch than in memory.
    differences: int
    largest_false_cluster: int


def day(run: Run) -> Sequence[Quality | Quarter]:
    """Let a crawler bring the pages of a day, and score the clusters that come of it."""
    with server.client(run, lifetime_s=3_600) as client:
        outcome = outcome_of(client, pages=run.size(PAGES), sites=SITES)
    print(f"{outcome.differences} pages have another root in Elasticsearch than in memory")
    return [*outcome.quality, *outcome.quarters]


def outcome_of(client: Elasticsearch, *, pages: int, sites: int) -> Outcome:
    """Cluster so many pages in memory, and feed them in four parts, with restarts, into Elasticsearch."""
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
    """What is known of each page."""

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
    """Write pages to a file as they come."""
    with path.open("w", encoding="utf-8") as file:
        for page in pages:
            file.write(json.dumps(page.article, ensure_ascii=False) + "\n")
            yield page


def _fed(client: Elasticsearch, path: Path, count: int, clustered: list[Usage]) -> Iterator[Quarter]:
    client.options(ignore_status=404).indices.delete(index=[_INDEX, _FOREST])
    url = server.url_of(client)
    for number, fed in enumerate(feed_file(url, path, count, parts=PARTS, index=_INDEX, forest=_FOREST)):
        yield Quarter(
            table="day: what it takes",
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
    for design, since in enumerate(("its first", "its redesign")):
        for start, stop in _AGES:
            name = f"{start + 1} to {stop}" if stop else f"from {start + 1} on"
            are_within = (ages >= start) & ((ages < stop) if stop else True)
            chosen[f"of each site since {since}: {name}"] = are_within & (designs == design)
    chosen["without their articles"] = are_lost == 1
    for case, pages in chosen.items():
        yield Quality(table="day", case=case, shares=counts.where(pages))

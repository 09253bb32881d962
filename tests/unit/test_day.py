"""The generated day and month of articles: arrivals, the resulting clusters, and how growth is measured."""

import dataclasses
import itertools
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from esdedup.ingest.assigner import arrive

from benchmarks.day.crawl import RETENTION, CrawledPage, crawl
from benchmarks.day.table import Truth
from benchmarks.month.arrivals import BEGINNING, HOT_DAY, Arrival, Month
from benchmarks.month.owner import Fed
from benchmarks.month.table import TABLE, Day, flatness
from esdedup.elastic.forest.store import ForestSize
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.forest import Aging
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of

pytestmark = pytest.mark.slow

COUNT, SITES, BATCH = 2_000, 40, 500


@pytest.fixture(scope="module")
def pages() -> list[CrawledPage]:
    return list(crawl(COUNT, sites=SITES))


def assigned(texts: list[str], times_ms: list[int], sites: list[str]) -> list[str | None]:
    """Assign texts in batches, and return the root of each."""
    articles = [str(number) for number in range(len(texts))]
    relation = relation_of(DEFAULT)
    store = MemoryStore(aging=Aging.of(retention=RETENTION), relation=relation)
    fingerprinter, roots = Fingerprinter(DEFAULT), []
    for start in range(0, len(texts), BATCH):
        batch = slice(start, start + BATCH)
        _, decided = arrive(
            texts[batch],
            times_ms=times_ms[batch],
            sites=sites[batch],
            articles=articles[batch],
            fingerprinter=fingerprinter,
            store=store,
            now_ms=times_ms[-1],
        )
        roots += [answer.root for answer in decided.assignments]
    return roots


def test_the_day_has_the_documented_composition(pages: list[CrawledPage]) -> None:
    again = list(itertools.islice(crawl(COUNT, sites=SITES), 100))
    assert again == pages[:100]
    stories = Counter(page.story for page in pages)
    # Some languages have only one or two sites in this sample, so there are few articles to reprint.
    assert 0.3 < 1 - len(stories) / COUNT < 0.6
    kinds = Counter(page.kind for page in pages)
    assert set(kinds) == {"article", "again", "bulletin", "lost"}
    assert all(count > 10 for count in kinds.values())
    redesigned = {page.site for page in pages if page.design}
    assert 0.3 < len(redesigned) / SITES < 0.7
    assert len({page.site for page in pages}) == SITES
    assert all((page.body == "") == (page.kind == "lost") for page in pages)


def test_clusters_match_the_generated_truth(pages: list[CrawledPage]) -> None:
    times_ms = [int(page.when.timestamp() * 1_000) for page in pages]
    roots = assigned([page.text for page in pages], times_ms, [page.site for page in pages])
    shares = Truth(pages).counts(roots).where(np.ones(COUNT, bool))
    assert shares.positives > 1_000
    # Most sites have little learned boilerplate; `python -m benchmarks day` scores first pages separately.
    assert shares.precision > 0.9
    # The measured recall is 0.87: unlearned boilerplate makes some pages resemble each other too little.
    assert shares.recall > 0.85


ARTICLES_PER_DAY, DAYS = 300, HOT_DAY + 2


@pytest.fixture(scope="module")
def days() -> list[list[Arrival]]:
    return list(Month(ARTICLES_PER_DAY).days(DAYS))


def test_arrivals_are_repeatable_and_in_order(days: list[list[Arrival]]) -> None:
    assert list(Month(ARTICLES_PER_DAY).days(3)) == days[:3]
    flat = list(itertools.chain.from_iterable(days))
    assert [each.when for each in flat] == sorted(each.when for each in flat)
    assert len({each.article["id"] for each in flat}) == len(flat)
    for number, arrivals in enumerate(days):
        assert {(each.when - BEGINNING) // timedelta(days=1) for each in arrivals} == {number}


def day(number: int, **changes: float) -> Day:
    contents = ForestSize(
        nodes=int(changes.get("nodes", 1_000)),
        hashes=0,
        memory_bytes=int(changes.get("memory", 5e6)),
        learned_bytes=2_000_000,
        passages=7,
    )
    batches_s = [changes.get("batch_s", 0.5)] * 4
    fed = Fed(
        articles=100,
        batches_s=batches_s,
        expiring_s=0.0,
        expired=5,
        contents=contents,
        resident_bytes=100_000_000,
    )
    return Day(
        table=TABLE,
        number=number,
        fed=fed,
        opening_s=1.5 if number == 3 else None,
        forest_bytes=int(changes.get("disk", 9e6)),
        documents=1_000,
        deleted=100,
    )


def test_flatness_compares_days_after_the_first_retention_period() -> None:
    flat = [day(number) for number in range(30)]
    assert [row.ratio for row in flatness(flat)] == [1.0] * 5
    growing = [
        day(number, nodes=number, memory=2e6 + number, disk=number, batch_s=number) for number in range(1, 31)
    ]
    ratios = {row.case.split(",")[0]: row.ratio or 0.0 for row in flatness(growing)}
    assert min(ratio for what, ratio in ratios.items() if what != "articles") > 1.4
    assert ratios["articles"] < 0.7
    # Days within the first retention period do not count.
    first = [dataclasses.replace(each, forest_bytes=0) if each.number < 7 else each for each in flat]
    assert [row.ratio for row in flatness(first)] == [1.0] * 5
    assert list(flatness(flat[:9])) == []

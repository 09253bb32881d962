"""A small day of generated pages: what it is made of, what clusters come of it, and what stays limited."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from esdedup.ingest.arrive import arrive

from benchmarks.day.crawl import RETENTION, CrawledPage, Design, Page, Recent, crawl
from benchmarks.day.stories import Language, Version, original, tell
from benchmarks.day.table import Truth
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import DEFAULT
from esdedup.forest import Aging, Forest
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of

pytestmark = pytest.mark.slow

COUNT, SITES, BATCH = 2_000, 40, 500


@pytest.fixture(scope="module")
def pages() -> list[CrawledPage]:
    return list(crawl(COUNT, sites=SITES))


def assigned(texts: list[str], times_ms: list[int], sites: list[str]) -> list[str | None]:
    """Return the root of each text; they come in batches."""
    articles = [str(number) for number in range(len(texts))]
    relation = relation_of(DEFAULT)
    forest = Forest(MemoryStore(aging=Aging.of(retention=RETENTION), relation=relation))
    fingerprinter, roots = Fingerprinter(DEFAULT), []
    for start in range(0, len(texts), BATCH):
        batch = slice(start, start + BATCH)
        _, decided = arrive(
            texts[batch],
            times_ms=times_ms[batch],
            sites=sites[batch],
            articles=articles[batch],
            fingerprinter=fingerprinter,
            forest=forest,
            now_ms=times_ms[-1],
        )
        roots += [answer.root for answer in decided.assignments]
    return roots


def test_the_day_is_made_of_what_it_promises(pages: list[CrawledPage]) -> None:
    again = list(itertools.islice(crawl(COUNT, sites=SITES), 100))
    assert again == pages[:100]
    stories = Counter(page.story for page in pages)
    # Some languages have one site or two here, which have nobody to reprint from.
    assert 0.3 < 1 - len(stories) / COUNT < 0.6
    kinds = Counter(page.kind for page in pages)
    assert set(kinds) == {"article", "again", "bulletin", "lost"}
    assert all(count > 10 for count in kinds.values())
    redesigned = {page.site for page in pages if page.design}
    assert 0.3 < len(redesigned) / SITES < 0.7
    assert len({page.site for page in pages}) == SITES
    assert all((page.body == "") == (page.kind == "lost") for page in pages)


def test_clusters_stand_against_the_truth(pages: list[CrawledPage]) -> None:
    times_ms = [int(page.when.timestamp() * 1_000) for page in pages]
    roots = assigned([page.text for page in pages], times_ms, [page.site for page in pages])
    shares = Truth(pages).counts(roots).where(np.ones(COUNT, bool))
    assert shares.positives > 1_000
    # Most sites are hardly learned yet; `python -m benchmarks day` tells their first pages from later ones.
    assert shares.precision > 0.9
    assert shares.recall > 0.9


def test_the_truth_counts_every_pair_for_both_of_its_pages(pages: list[CrawledPage]) -> None:
    truth = Truth(pages[:300])
    together = truth.counts(["one"] * 300)
    alone = truth.counts([None] * 300)
    assert (together.positives == together.found).all()
    assert (alone.found + alone.false == 0).all()
    positive = {pair for pair in itertools.combinations(range(300), 2) if are_alike(pages, *pair)}
    assert together.positives.sum() >= 2 * len(positive) > 0


def are_alike(pages: list[CrawledPage], one: int, other: int) -> bool:
    """Whether two pages have the same article, which is not little of either."""
    bodies = {pages[each].body for each in (one, other)}
    return len(bodies) == 1 and all(len(pages[each].text) < 2 * len(*bodies) for each in (one, other))


def test_pages_with_nothing_but_a_title_are_alone_once_their_site_is_learned() -> None:
    chance, recent = random.Random(8), Recent()
    language = Language("latin", 7)
    design = Design(language, chance)

    def text(version: Version) -> str:
        time = f"2026-03-02 {chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
        return design.print(Page(version=version, date=time, recent=recent), chance)[0]

    before = [text(original(tell(language, chance))) for _ in range(200)]
    lost = [text(Version(title=language.phrase(chance, 5, 12), paragraphs=())) for _ in range(200)]
    found = assigned(before + lost, [0] * 400, ["a.example"] * 400)[200:]
    assert max(Counter(root for root in found if root is not None).values(), default=0) <= 3

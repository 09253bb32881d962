"""Number and size of the documents that store learned boilerplate; and counts of boilerplate by site."""

import itertools
from typing import Any, cast

import numpy as np
import pytest

from esdedup._core import Parsed
from esdedup.elastic.forest.learned import LearnedCopy, LearnedLog, LearnedRecord
from esdedup.elastic.forest.stored import Document
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.maintenance import LearnedPassage
from esdedup.maintenance.stored_texts import BoilerplateCounts
from esdedup.sites import RawPage
from esdedup.text.parsed import ParsedTexts
from tests.support.learned import contents
from tests.support.pages import pages

PAGES = [next(Fingerprinter(VERIFIED).parsed([page["text"]])) for page in pages(200)]


class Documents:
    """The documents of a forest, in memory."""

    def __init__(self) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}

    def write(self, documents: list[Document]) -> None:
        self.by_id |= {name: document for name, document in documents if "learned" in document}

    @property
    def sizes(self) -> list[int]:
        return [len(each["state"]["changes"]) for each in self.by_id.values()]

    def opened(self) -> LearnedLog:
        """Return the log as a new owner reads it."""
        hits = [
            {"_id": name, "_source": each, "sort": [each["learned"]], "_seq_no": 0, "_primary_term": 1}
            for name, each in self.by_id.items()
        ]
        return LearnedLog("forest", [LearnedRecord.of_hits([hit], forest="forest") for hit in hits])


def learn_from(log: LearnedLog, parsed: ParsedTexts) -> list[Document]:
    log.boilerplate.begin()
    parsed.left_out(log.boilerplate.filter())
    documents = log.add(log.boilerplate.changes())
    log.boilerplate.keep()
    return documents


@pytest.mark.parametrize("is_reopened", [False, True])
def test_batches_of_one_page_need_few_documents(is_reopened: bool) -> None:
    log, documents = LearnedLog("forest", []), Documents()
    for page in PAGES:
        documents.write(learn_from(log, page))
        log = documents.opened() if is_reopened else log
    kept_bytes = sum(documents.sizes)
    assert kept_bytes < 2_000 * len(PAGES)
    assert len(documents.sizes) <= kept_bytes / 8_000 + 2
    assert contents(documents.opened().boilerplate) == contents(log.boilerplate)


def test_no_document_is_too_large_for_a_server() -> None:
    """The batch has 900,000 passages."""
    chance, page_count, each = np.random.default_rng(3), 300, 3_000
    numbers = iter(chance.integers(1, 2**64, page_count * (each + 1), np.uint64).tolist())
    parsed = Parsed.of_passages(
        [
            (next(numbers), [(number, 60, True, False) for number in itertools.islice(numbers, each)])
            for _ in range(page_count)
        ]
    )
    log, documents = LearnedLog("forest", []), Documents()
    documents.write(learn_from(log, ParsedTexts(parsed)))
    assert len(documents.sizes) > 3
    assert max(documents.sizes) <= 1_000_000


class AllLearned:
    """Learned boilerplate that contains every passage."""

    def are_learned(self, hashes: np.ndarray[tuple[int], np.dtype[np.uint64]], site: str | None) -> object:
        return np.ones(len(hashes), bool)


def count(texts: list[str], **limits: Any) -> BoilerplateCounts:
    counts = BoilerplateCounts(learned=cast("LearnedCopy", AllLearned()), max_length=1_000, **limits)
    for text in texts:
        counts.add(RawPage(text, "a.example"))
    return counts


def test_a_passage_counts_once_per_article_despite_different_dates() -> None:
    (site,) = count(["In 2001.\n\nIn 2002.\n\nHome", "In 2003.", ""]).result(1).sites
    assert (site.articles, site.learned) == (3, 2)
    assert site.passages == (LearnedPassage(text="In 2001.", articles=2),)


def test_counted_and_shown_passages_are_bounded() -> None:
    found = count(["Home\n\nWeather", "Home\n\nSports"], most_passages=2, longest_shown=5).result(9)
    assert found.sites[0].passages == (
        LearnedPassage(text="Home", articles=2),
        LearnedPassage(text=None, articles=1),
    )
    assert not found.is_complete

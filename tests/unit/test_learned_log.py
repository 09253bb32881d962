"""The documents of what was learned, as they would be written: their number and size."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from esdedup.elastic.forest.documents import Document
from esdedup.elastic.forest.learned import LearnedLog, LearnedRecord
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import VERIFIED
from esdedup.text.parsed import Passages
from tests.support.learned import contents
from tests.support.pages import pages

PAGES = next(Fingerprinter(VERIFIED).passages_and_pages([page["text"] for page in pages(200)]))


class Documents:
    """Those of a forest, in memory."""

    def __init__(self) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}

    def write(self, documents: list[Document]) -> None:
        self.by_id |= {name: document for name, document in documents if "learned" in document}

    @property
    def sizes(self) -> list[int]:
        return [len(each["state"]["changes"]) for each in self.by_id.values()]

    def opened(self) -> LearnedLog:
        """Return what a new owner knows."""
        hits = [
            {"_id": name, "_source": each, "sort": [each["learned"]], "_seq_no": 0, "_primary_term": 1}
            for name, each in self.by_id.items()
        ]
        return LearnedLog("forest", [LearnedRecord.of_hits([hit], forest="forest") for hit in hits])


def teach(log: LearnedLog, passages: Passages, ids: npt.NDArray[np.uint64]) -> list[Document]:
    log.boilerplate.begin()
    log.boilerplate.filter(passages, ids)
    documents = log.add(log.boilerplate.changes())
    log.boilerplate.keep()
    return documents


@pytest.mark.parametrize("is_reopened", [False, True])
def test_batches_of_one_page_take_few_documents(is_reopened: bool) -> None:
    passages, ids = PAGES
    log, documents = LearnedLog("forest", []), Documents()
    for at in range(len(ids)):
        documents.write(teach(log, passages.of_texts(at, at + 1), ids[at : at + 1]))
        log = documents.opened() if is_reopened else log
    kept_bytes = sum(documents.sizes)
    assert kept_bytes < 2_000 * len(ids)
    assert len(documents.sizes) <= kept_bytes / 8_000 + 2
    assert contents(documents.opened().boilerplate) == contents(log.boilerplate)


def test_no_document_is_too_large_for_a_server() -> None:
    """However many passages a batch brings."""
    chance, page_count, each = np.random.default_rng(3), 300, 3_000
    passages = Passages(
        hashes=chance.integers(1, 2**64, page_count * each, np.uint64),
        alphanumerics=np.full(page_count * each, 60),
        are_prose=np.ones(page_count * each, bool),
        have_figures=np.zeros(page_count * each, bool),
        texts=np.repeat(np.arange(page_count), each),
        text_count=page_count,
    )
    log, documents = LearnedLog("forest", []), Documents()
    documents.write(teach(log, passages, chance.integers(1, 2**64, page_count, np.uint64)))
    assert len(documents.sizes) > 3
    assert max(documents.sizes) <= 1_000_000

"""Clustering without a server: how much of a file is in memory at a time."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from esdedup.ingest.cluster import Clustering
from esdedup.ingest.files import FileArticle

from esdedup import VERIFIED, Fields

COUNT, LENGTH, BATCH = 30, 3_000, 10_000


def test_the_size_of_articles_ends_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esdedup.ingest.batches.MAX_BATCH_SIZE", BATCH)
    taken = given = most_ahead = 0

    def articles() -> Iterator[FileArticle]:
        nonlocal taken, most_ahead
        for number in range(COUNT):
            taken += 1
            most_ahead = max(most_ahead, taken - given)
            text = f"{number} words " * (LENGTH // 8)
            yield FileArticle(
                place=f"f:{number}", id=str(number), article={"text": text}, size_bytes=len(text)
            )

    cut: list[str] = []
    clustering = Clustering(
        profile=VERIFIED.with_changes(max_text_length=1_000),
        fields=Fields(),
        use_time=False,
        retention=timedelta(days=30),
        on_rejected=lambda rejected: pytest.fail(str(rejected)),
        on_cut=cut.append,
    )
    for _ in clustering.cluster(articles()):
        given += 1
    assert given == len(cut) == COUNT
    assert most_ahead * LENGTH < 2 * BATCH

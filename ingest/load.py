"""Enriches and indexes the articles of files, and accounts for every one."""

import collections
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pydantic
from elasticsearch import Elasticsearch
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.batches import BATCH_SIZE, batches
from esdedup.ingest.check_again import check_again
from esdedup.ingest.dates import DateCheck, is_too_old
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.files import FileArticle
from esdedup.ingest.learn import first_look

from esdedup.elastic.bulk import ArticleBulk, Written
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, value_of
from esdedup.forest import Assignment, Kind


class Summary(pydantic.BaseModel, frozen=True):
    """The outcome of a run: each article that was read was either indexed or failed."""

    read: int
    indexed: int
    failed: int
    # The indexed ones, by what the forest decided.
    new_roots: int
    joined: int
    known: int
    without_fingerprint: int
    # Indexed ones with a longer text than is fingerprinted.
    cut: int
    # In a backfill: indexed ones without a date, or with one that cannot be read or lies in January 1970.
    undated: int
    # Without backfill: indexed ones with a date too old to be believed, which count as published on arrival.
    too_old: int
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Decision:
    """What is known of an assigned article."""

    kind: Kind
    is_cut: bool
    is_undated: bool
    is_too_old: bool


class Load:
    """One run of articles into an index."""

    def __init__(
        self,
        *,
        on_rejected: Callable[[ArticleRejected], None],
        on_cut: Callable[[str], None] = lambda _: None,
        on_undated: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Account for the articles of one run.

        Args:
            on_rejected: Called for each article that is not indexed.
            on_cut: Called with the name of each article that has a longer text than is fingerprinted.
            on_undated: Called once in a backfill, with a message about the first date that cannot be right.
        """
        self._on_rejected = on_rejected
        self._on_cut = on_cut
        self._undated_ones = DateCheck(on_undated)
        self._read = self._failed = self._cut = self._undated = self._too_old = 0
        self._indexed: collections.Counter[Kind] = collections.Counter()
        self._seconds = 0.0
        # Articles that Elasticsearch has not acknowledged, by id, and what was decided for them.
        self._articles: dict[str, FileArticle] = {}
        self._decided: dict[str, _Decision] = {}
        # Where dates are looked for in a backfill.
        self._dated_by: Fields | None = None

    @property
    def summary(self) -> Summary:
        """The run so far; after an error, unacknowledged articles count as failed."""
        return Summary(
            read=self._read,
            indexed=self._indexed.total(),
            failed=self._failed,
            new_roots=self._indexed[Kind.NEW_ROOT],
            joined=self._indexed[Kind.JOINED],
            known=self._indexed[Kind.KNOWN],
            without_fingerprint=self._indexed[Kind.WITHOUT_FINGERPRINT],
            cut=self._cut,
            undated=self._undated,
            too_old=self._too_old,
            seconds=round(self._seconds, 3),
        )

    def run(
        self,
        client: Elasticsearch,
        dedup: Dedup,
        articles: Iterable[FileArticle | ArticleRejected],
        *,
        index: str,
        backfill: bool = False,
        batch_size: int = BATCH_SIZE,
        flush_interval_s: float | None = None,
        learned_from: Iterable[FileArticle | ArticleRejected] = (),
    ) -> None:
        """Index articles. May be called several times, with one part after the other.

        Args:
            client: Closed by the caller.
            dedup: Enriches the articles.
            articles: Articles, and rejections of what could not be read.
            index: Where they go.
            backfill: Take the forest's time from the articles instead of the clock.
            batch_size: How many are read, enriched and indexed together.
            flush_interval_s: A batch is indexed so long after its first article was read, though it is not
                full. None: when it is full.
            learned_from: The same articles, read once more: before the first is indexed, these teach what is
                boilerplate.

        Raises:
            EsdedupError: The run cannot continue.
        """
        started = time.monotonic()
        self._dated_by = dedup.require_ready(index) if backfill else None
        bulk = ArticleBulk(client, index=index)
        try:
            if learned_from:
                first_look(dedup, learned_from, dedup.require_ready(index))
            for batch in batches(articles, most=batch_size, size_of=_size, flush_interval_s=flush_interval_s):
                actions = dedup.enrich(
                    self._actions(batch, index),
                    backfill=backfill,
                    on_rejected=self._reject_by_id,
                    on_assigned=self._assigned,
                )
                for written in bulk.write(actions):
                    check_again(dedup.require_ready, index)
                    self._acknowledge(written)
        finally:
            self._failed = self._read - self._indexed.total()
            self._seconds += time.monotonic() - started

    def _actions(
        self, batch: Iterable[FileArticle | ArticleRejected], index: str
    ) -> Iterator[dict[str, Any]]:
        for article in batch:
            self._read += 1
            if isinstance(article, ArticleRejected):
                self._reject(article)
                continue
            self._articles[article.id] = article
            yield {"_index": index, "_id": article.id, "_source": article.article}

    def _assigned(self, article: ArticleAction, assignment: Assignment) -> None:
        is_undated = False
        if self._dated_by is not None:
            field, given = self._dated_by.time, self._articles[article.name]
            is_undated = self._undated_ones.sees(given.name, value_of(given.article, field), field=field)
        self._decided[article.name] = _Decision(
            kind=assignment.kind,
            is_cut=article.is_cut,
            is_undated=is_undated,
            is_too_old=self._dated_by is None and is_too_old(article.dated_ms, arrived_ms=assignment.time_ms),
        )

    def _acknowledge(self, written: list[Written]) -> None:
        for each in written:
            decided = self._decided.pop(each.id)
            if each.refusal is not None:
                self._reject_by_id(ArticleRejected(each.id, f"Elasticsearch refuses it: {each.refusal}"))
                continue
            article = self._articles.pop(each.id)
            self._indexed[decided.kind] += 1
            self._undated += decided.is_undated
            self._too_old += decided.is_too_old
            if decided.is_cut:
                self._cut += 1
                self._on_cut(article.name)

    def _reject_by_id(self, rejected: ArticleRejected) -> None:
        self._reject(ArticleRejected(self._articles.pop(rejected.article).name, rejected.reason))

    def _reject(self, rejected: ArticleRejected) -> None:
        self._failed += 1
        self._on_rejected(rejected)


def _size(article: FileArticle | ArticleRejected) -> int:
    return article.size_bytes if isinstance(article, FileArticle) else len(str(article))

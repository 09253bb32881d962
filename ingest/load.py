"""Enriches and indexes the articles of files, and accounts for every article."""

import collections
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pydantic
from elasticsearch import Elasticsearch
from esdedup.ingest.actions import ArticleAction, date_of
from esdedup.ingest.batches import BATCH_SIZE, batches
from esdedup.ingest.dated_names import DatedName
from esdedup.ingest.dates import MAX_AGE_MS, published_ms
from esdedup.ingest.dedup import Dedup
from esdedup.ingest.enricher import check_again
from esdedup.ingest.files import FileArticle, ReadArticle
from esdedup.ingest.learn import first_pass

from esdedup.elastic.bulk import NOTE, ArticleBulk, Written
from esdedup.errors import ArticleRejected
from esdedup.forest import Assignment, Kind

# Statuses for an article that exists and was to be created, or that was changed or deleted after it was read.
_UNCHANGED_STATUSES = frozenset({404, 409})


class RunSummary(pydantic.BaseModel, frozen=True):
    """The outcome of a run: every article that was read was written, was skipped, or failed."""

    read: int
    # Articles that were indexed, or enriched in place.
    written: int
    # Articles that were left unchanged: with `create`, because the index has their ids; in place, because
    # another program changed or deleted them after they were read (the run re-reads those without a root).
    skipped: int
    failed: int
    # Written articles, by the forest's decision.
    new_roots: int
    joined: int
    known: int
    without_fingerprint: int
    # Written articles whose text was too long to be fingerprinted whole.
    cut: int
    # Written articles whose fingerprint leaves out boilerplate.
    with_boilerplate: int
    # The number of letters and digits in that boilerplate.
    boilerplate_letters: int
    # Written articles without a date, or with an implausible one.
    undated: int
    # Without backfill: written articles with an implausibly old date, treated as published on arrival.
    too_old: int
    seconds: float


class Run:
    """A run that writes articles and counts every article."""

    def __init__(self) -> None:
        # Counts by field of `RunSummary`.
        self._counts: collections.Counter[str] = collections.Counter()
        self._started_s = time.monotonic()
        # The articles that are being enriched, in order: the id, and the source (for `_reject`).
        self._under_way: collections.deque[tuple[str, Any]] = collections.deque()

    @property
    def summary(self) -> RunSummary:
        """The numbers so far; after an error, articles read but not acknowledged count as failed."""
        counted: dict[str, Any] = {name: self._counts[name] for name in RunSummary.model_fields}
        counted["failed"] = counted["read"] - counted["written"] - counted["skipped"]
        return RunSummary(**counted | {"seconds": round(time.monotonic() - self._started_s, 3)})

    def _reject(self, source: Any, rejected: ArticleRejected) -> None:
        """Report that an article cannot be enriched or written."""
        raise NotImplementedError

    def _enriched(
        self, dedup: Dedup, actions: Iterable[dict[str, Any]], *, backfill: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield actions for `_write`; `actions` must add to `_under_way` what they yield."""
        decided: list[dict[str, int]] = []
        self._under_way.clear()
        enriched = dedup.enrich(
            actions,
            backfill=backfill,
            on_rejected=lambda error: self._reject(self._source_of(error.article), error),
            on_assigned=lambda article, assignment: decided.append(counts_of(article, assignment)),
        )
        for action in enriched:
            yield action | {NOTE: (self._source_of(action["_id"]), decided.pop())}

    def _source_of(self, article_id: str) -> Any:
        # If a batch fails, its other articles are neither enriched nor rejected.
        while (found := self._under_way.popleft())[0] != article_id:
            pass
        return found[1]

    def _write(
        self,
        bulk: ArticleBulk,
        actions: Iterable[dict[str, Any]],
        *,
        check: Callable[[str], object] = lambda _: None,
    ) -> Iterator[list[Written]]:
        """Write and count articles, which have notes; yield the results of each request.

        `check` is called for each index after a request.
        """
        for written in bulk.write(actions):
            for index in {each.index for each in written}:
                check_again(check, index)
            for each in written:
                source, counts = each.note
                if each.refusal is None:
                    self._counts.update(counts)
                elif each.status in _UNCHANGED_STATUSES:
                    self._counts["skipped"] += 1
                else:
                    why = f"Elasticsearch refuses it: {each.refusal}"
                    self._reject(source, ArticleRejected(each.id, why))
            yield written


def counts_of(article: ArticleAction, assignment: Assignment) -> dict[str, int]:
    """Return the amounts that an article adds to the fields of `RunSummary` once it is written."""
    dated_ms, believed_from_ms = article.dated_ms, assignment.time_ms - MAX_AGE_MS
    return {
        "written": 1,
        "new_roots" if assignment.kind is Kind.NEW_ROOT else assignment.kind.value: 1,
        "cut": article.is_cut,
        "with_boilerplate": article.boilerplate_letters > 0,
        "boilerplate_letters": article.boilerplate_letters,
        "undated": dated_ms is None,
        "too_old": not article.is_backfill and dated_ms is not None and dated_ms < believed_from_ms,
    }


@dataclasses.dataclass(eq=False, kw_only=True)
class Load(Run):
    """A run that indexes articles, and accounts for every article."""

    on_rejected: Callable[[ArticleRejected], None]
    # Called with the name of each article whose text is too long to be fingerprinted whole.
    on_cut: Callable[[str], None] = lambda _: None
    # Called with each article that was read but could not be indexed.
    on_refused: Callable[[FileArticle], None] = lambda _: None

    def __post_init__(self) -> None:
        super().__init__()

    def run(
        self,
        client: Elasticsearch,
        dedup: Dedup,
        articles: Iterable[ReadArticle],
        *,
        index: str,
        create: bool = False,
        backfill: bool = False,
        batch_size: int = BATCH_SIZE,
        flush_interval_s: float | None = None,
        learned_from: Iterable[ReadArticle] = (),
    ) -> None:
        """Index articles. May be called repeatedly, with one part of the articles at a time.

        The name of the index may contain a date, which stands for the article's day (`DatedName`). `create`
        leaves existing articles unchanged, as data streams require. `learned_from` are the same
        articles, read separately: boilerplate is learned from them before the first article is indexed. For
        the other parameters, see `Dedup` and `Dedup.enrich`.
        """
        names = DatedName(index)
        today = names.of(_now_ms())
        bulk = ArticleBulk(client, index=today)
        fields = dedup.require_ready(today)
        if learned_from:
            first_pass(dedup.learn, learned_from, fields)

        def name_of(article: FileArticle) -> str:
            now_ms = _now_ms()
            date_ms, _ = date_of(article.article, fields) if names.is_dated else (None, "")
            return names.of(published_ms(date_ms, arrived_ms=now_ms, backfill=backfill) or now_ms)

        for batch in batches(articles, most=batch_size, size_of=_size, flush_interval_s=flush_interval_s):
            read = self._actions(batch, name_of, operation="create" if create else "index")
            actions = self._enriched(dedup, read, backfill=backfill)
            for each in itertools.chain.from_iterable(self._write(bulk, actions, check=dedup.require_ready)):
                article, counts = each.note
                if each.refusal is None and counts["cut"]:
                    self.on_cut(article.name)

    def _actions(
        self, batch: Iterable[ReadArticle], index_of: Callable[[FileArticle], str], *, operation: str
    ) -> Iterator[dict[str, Any]]:
        for article in batch:
            self._counts["read"] += 1
            if isinstance(article, ArticleRejected):
                self.on_rejected(article)
                continue
            self._under_way.append((article.id, article))
            yield {
                "_op_type": operation,
                "_index": index_of(article),
                "_id": article.id,
                "_source": article.article,
            }

    def _reject(self, source: FileArticle, rejected: ArticleRejected) -> None:
        self.on_rejected(ArticleRejected(source.name, rejected.reason))
        self.on_refused(source)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _size(article: ReadArticle) -> int:
    return article.size_bytes if isinstance(article, FileArticle) else len(str(article))

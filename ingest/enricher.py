"""Enriches bulk actions in batches: articles are fingerprinted, then assigned by the forest."""

import functools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from esdedup.ingest.actions import (
    Addition,
    ArticleAction,
    BulkAction,
    index_of,
    read_action,
    redating,
    with_addition,
)
from esdedup.ingest.batches import batches, refuse_fork
from esdedup.ingest.json_values import size_of

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import ArticleRejected, IndexNotReady
from esdedup.fields import Fields
from esdedup.forest import Assignment
from esdedup.serial_thread import SerialThread

log = logging.getLogger("esdedup")

OnRejected = Callable[[ArticleRejected], None]
"""Called for each article that cannot be indexed."""
OnAssigned = Callable[[ArticleAction, Assignment], None]
"""Called with each article and its assignment."""
_Read = ArticleAction | dict[str, Any] | ArticleRejected


class ArticleDecision(Protocol):
    """An article with what was decided for it: `LocalDecision`, or what a sidecar has answered."""

    @property
    def article(self) -> ArticleAction:
        """The article."""

    @property
    def assignment(self) -> Assignment:
        """The forest's decision."""

    def addition(self, index: WritableIndex) -> Addition:
        """Return what is added to its action; raises `ArticleRejected` if it cannot be indexed."""


class ForestOwner(Protocol):
    """Assigns articles: `Owner`, or `RemoteOwner`."""

    def assign(self, articles: Sequence[ArticleAction]) -> Sequence[ArticleDecision]:
        """Return the articles with what was decided for them, which is durable."""


class _Outcome(NamedTuple):
    """What became of an action: it goes on, or its article cannot be indexed."""

    action: dict[str, Any] | None
    # Of an article that goes on.
    assigned: ArticleDecision | None = None
    rejected: ArticleRejected | None = None


class EnrichedBatch(NamedTuple):
    """What became of the actions of a batch."""

    outcomes: list[_Outcome]
    # Why no more of them go on; what comes after them does not either.
    failure: Exception | None = None


class EnrichRun:
    """Actions that are enriched one batch after the other, by the process that has begun."""

    def __init__(self, enricher: "Enricher", *, backfill: bool) -> None:
        self._enricher = enricher
        self._backfill = backfill
        self._failure: Exception | None = None
        self._process = os.getpid()
        self._position = 0
        self._names: set[str] = set()

    def enrich(self, batch: list[BulkAction]) -> EnrichedBatch:
        """Assign the articles of the next batch; `results` raises what that meets."""
        read: list[tuple[_Read, WritableIndex]] = []
        try:
            # Of an index that cannot be written to, what came before it is known all the same.
            read.extend(self._read_actions(batch))
            assigned = self._assign([action for action, _ in read if isinstance(action, ArticleAction)])
        except Exception as error:  # raised after what is said of the rejected ones
            self._failure = error
            rejected = [_Outcome(None, None, each) for each, _ in read if isinstance(each, ArticleRejected)]
            return EnrichedBatch(rejected, error)
        return EnrichedBatch([self._outcome(action, index, assigned) for action, index in read])

    def results(
        self, batch: EnrichedBatch, on_rejected: OnRejected | None, on_assigned: OnAssigned | None
    ) -> Iterator[dict[str, Any]]:
        """Yield the actions of a batch with the dedup object in their articles."""
        on_rejected, on_assigned = on_rejected or log_rejected, on_assigned or self._enricher.log_cut
        # The caller may have forked meanwhile: the rest belongs to the parent.
        refuse_fork(self._process)
        for action, assigned, rejected in batch.outcomes:
            if rejected is not None:
                on_rejected(rejected)
            if assigned is not None:
                on_assigned(assigned.article, assigned.assignment)
            if action is not None:
                yield action
                refuse_fork(self._process)
                if (name := index_of(action)) is not None:
                    self._names.add(name)
        if batch.failure is not None:
            raise batch.failure

    def end(self) -> None:
        """Check the indices once more: the last batch may be half written by now."""
        for name in sorted(self._names):
            check_again(self._enricher.check_index, name)

    def _read_actions(self, batch: list[BulkAction]) -> Iterator[tuple[_Read, WritableIndex]]:
        named_index = functools.cache(self._enricher.check_index)
        for given in batch:
            self._position += 1
            name = index_of(given)
            index = self._enricher.unnamed_index if name is None else named_index(name)
            routed_index = name if index.is_routed_by_root else None
            read: _Read
            try:
                read = read_action(
                    given,
                    index.fields,
                    position=self._position,
                    routed_index=routed_index,
                    backfill=self._backfill,
                )
            except ArticleRejected as error:
                read = error.bare()
            yield read, index

    def _assign(self, articles: Sequence[ArticleAction]) -> Iterator[ArticleDecision]:
        """Assign articles, unless some before them could not be: that would change their order."""
        if self._failure is not None:
            raise self._failure
        return iter(self._enricher.forest.assign(articles) if articles else ())

    def _outcome(self, action: _Read, index: WritableIndex, assigned: Iterator[ArticleDecision]) -> _Outcome:
        if isinstance(action, ArticleRejected):
            return _Outcome(None, rejected=action)
        if not isinstance(action, ArticleAction):
            now_ms = int(time.time() * 1000)
            redated = redating(action, fields=index.fields, now_ms=now_ms, backfill=self._backfill)
            return _Outcome(action if redated is None else with_addition(action, redated, index.fields))
        each = next(assigned)
        try:
            return _Outcome(with_addition(action.action, each.addition(index), index.fields), each)
        except ArticleRejected as error:
            return _Outcome(None, rejected=error.bare())


class Enricher:
    """Adds the dedup object to the articles in bulk actions, a batch at a time.

    `check_index` is called for each index of a batch, and of all once more at the end, because an index that
    is deleted meanwhile would come back without its mapping. `check_process` raises in a forked process.
    """

    def __init__(
        self,
        forest: ForestOwner,
        *,
        fields: Fields | None,
        check_process: Callable[[], None],
        check_index: Callable[[str], WritableIndex],
        batch_size: int,
        max_text_length: int,
    ) -> None:
        self.forest = forest
        self.unnamed_index = WritableIndex(fields=fields or Fields())
        self.check_index = check_index
        self.batch_size = batch_size
        self._check_process = check_process
        self._max_text_length = max_text_length

    def enrich(
        self,
        actions: Iterable[BulkAction],
        *,
        backfill: bool,
        on_rejected: OnRejected | None,
        on_assigned: OnAssigned | None,
        flush_interval_s: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the actions with the dedup object in their articles; see `Dedup.enrich`."""
        run = self.begin(backfill=backfill)
        ahead = SerialThread("esdedup-ahead")
        found = batches(actions, most=self.batch_size, size_of=size_of, flush_interval_s=flush_interval_s)
        ready: EnrichedBatch | None = None
        is_more = True
        while is_more:
            failure: Exception | None = None
            following: EnrichedBatch | Future[EnrichedBatch] | None = None
            try:
                # Empty: the next one would have to be waited for.
                is_more = (batch := next(found, None)) is not None
                if batch:
                    enrich = functools.partial(run.enrich, batch)
                    following = enrich() if ready is None else ahead.begin(enrich)
            except Exception as error:  # raised after the actions that came before it
                failure = error
            if ready is not None:
                yield from run.results(ready, on_rejected, on_assigned)
            if failure is not None:
                raise failure
            ready = following.result() if isinstance(following, Future) else following
        run.end()

    def begin(self, *, backfill: bool) -> EnrichRun:
        """Begin with some actions, which follow batch by batch; raises `ClientForked` in a forked process."""
        self._check_process()
        return EnrichRun(self, backfill=backfill)

    def log_cut(self, article: ArticleAction, _: Assignment) -> None:
        """Log an article of which only the beginning is fingerprinted."""
        if article.is_cut:
            cut = "%s: only the first %s characters of its text are fingerprinted"
            log.warning(cut, article.name, f"{self._max_text_length:,}")


def log_rejected(rejected: ArticleRejected) -> None:
    """Log what becomes of an article that cannot be indexed."""
    log.warning("article left out: %s", rejected)


def check_again(check: Callable[[str], object], index: str) -> None:
    """Raise `IndexNotReady` if an index was deleted, changed or closed while articles are written to it.

    A bulk request brings one that was deleted back without the fields. `check` raises then.
    """
    try:
        check(index)
    except IndexNotReady as error:
        if error.status is None and not error.missing_fields:
            raise  # closed
        raise IndexNotReady(
            f"the index {index!r} was deleted or changed while articles were written to it ({error}): delete "
            "what is there now, set it up, and index the articles again",
            status=error.status,
            index=index,
            missing_fields=error.missing_fields,
        ) from error

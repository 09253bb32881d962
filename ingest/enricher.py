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
from esdedup.ingest.check_again import check_again
from esdedup.ingest.json_values import size_of

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.forest import Assignment
from esdedup.serial_thread import SerialThread

log = logging.getLogger("esdedup")

OnRejected = Callable[[ArticleRejected], None]
"""Called for each article that cannot be indexed."""
OnAssigned = Callable[[ArticleAction, Assignment], None]
"""Called with each article and its assignment."""


class AssignedArticle(Protocol):
    """An article with what was decided for it: `Assigned`, or what a sidecar has answered."""

    @property
    def article(self) -> ArticleAction:
        """The article."""

    @property
    def assignment(self) -> Assignment:
        """The forest's decision."""

    def addition(self, index: WritableIndex) -> Addition:
        """Return what is added to its action; raises `ArticleRejected` if it cannot be indexed."""


class Assigns(Protocol):
    """Assigns articles: `Owner`, or `RemoteOwner`."""

    def assign(self, articles: Sequence[ArticleAction]) -> Sequence[AssignedArticle]:
        """Return the articles with what was decided for them, which is durable."""


class _Enriched(NamedTuple):
    """What became of an action: it goes on, or its article cannot be indexed."""

    action: dict[str, Any] | None
    # Of an article that goes on.
    assigned: AssignedArticle | None = None
    rejected: ArticleRejected | None = None


class _Batch(NamedTuple):
    """What became of the actions of a batch."""

    actions: list[_Enriched]
    # Why no more of them go on; what comes after them does not either.
    failure: Exception | None = None


class EnrichRun:
    """Actions that are enriched one batch after the other, by the process that has begun."""

    def __init__(
        self,
        forest: Assigns,
        unnamed_index: WritableIndex,
        check_index: Callable[[str], WritableIndex],
        *,
        backfill: bool,
    ) -> None:
        self._forest = forest
        self._unnamed_index = unnamed_index
        self._check_index = check_index
        self._backfill = backfill
        self._thread = SerialThread("esdedup-ahead")
        self._failure: Exception | None = None
        self._process = os.getpid()
        self._read = 0
        self._names: set[str] = set()

    def begin(self, batch: list[BulkAction]) -> Future[_Batch]:
        """Begin with the next batch in a thread, while the actions of the one before are used."""
        return self._thread.begin(lambda: self.enrich(batch))

    def enrich(self, batch: list[BulkAction]) -> _Batch:
        """Assign the articles of the next batch; `results` raises what that meets."""
        read: list[tuple[ArticleAction | dict[str, Any] | ArticleRejected, WritableIndex]] = []
        try:
            # Of an index that cannot be written to, what came before it is known all the same.
            read.extend(self._read_actions(batch))
            assigned = self._assign([action for action, _ in read if isinstance(action, ArticleAction)])
        except Exception as error:  # raised after what is said of the rejected ones
            self._failure = error
            rejected = [_Enriched(None, None, each) for each, _ in read if isinstance(each, ArticleRejected)]
            return _Batch(rejected, error)
        return _Batch([self._enriched(action, index, assigned) for action, index in read])

    def results(
        self, batch: _Batch, on_rejected: OnRejected, on_assigned: OnAssigned
    ) -> Iterator[dict[str, Any]]:
        """Yield the actions of a batch with the dedup object in their articles."""
        # The caller may have forked meanwhile: the rest belongs to the parent.
        refuse_fork(self._process)
        for action, assigned, rejected in batch.actions:
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

    def _read_actions(
        self, batch: list[BulkAction]
    ) -> Iterator[tuple[ArticleAction | dict[str, Any] | ArticleRejected, WritableIndex]]:
        named_index = functools.cache(self._check_index)
        for given in batch:
            self._read += 1
            name = index_of(given)
            index = self._unnamed_index if name is None else named_index(name)
            try:
                action = read_action(
                    given,
                    index.fields,
                    position=self._read,
                    routed_index=name if index.is_routed_by_root else None,
                    backfill=self._backfill,
                )
            except ArticleRejected as error:
                yield error.bare(), index
            else:
                yield action, index

    def _assign(self, articles: Sequence[ArticleAction]) -> Iterator[AssignedArticle]:
        """Assign articles, unless some before them could not be: that would change their order."""
        if self._failure is not None:
            raise self._failure
        return iter(self._forest.assign(articles) if articles else ())

    def _enriched(
        self,
        action: ArticleAction | dict[str, Any] | ArticleRejected,
        index: WritableIndex,
        assigned: Iterator[AssignedArticle],
    ) -> _Enriched:
        if isinstance(action, ArticleRejected):
            return _Enriched(None, rejected=action)
        if not isinstance(action, ArticleAction):
            now_ms = int(time.time() * 1000)
            redated = redating(action, fields=index.fields, now_ms=now_ms, backfill=self._backfill)
            return _Enriched(action if redated is None else with_addition(action, redated, index.fields))
        each = next(assigned)
        try:
            added = each.addition(index)
        except ArticleRejected as error:
            return _Enriched(None, rejected=error.bare())
        return _Enriched(with_addition(action.action, added, index.fields), each)

    def end(self) -> None:
        """Check the indices once more: the last batch may be half written by now."""
        for name in sorted(self._names):
            check_again(self._check_index, name)


class Enricher:
    """Adds the dedup object to the articles in bulk actions, a batch at a time."""

    def __init__(
        self,
        forest: Assigns,
        *,
        fields: Fields | None,
        check_process: Callable[[], None],
        check_index: Callable[[str], WritableIndex],
        batch_size: int,
        max_text_length: int,
    ) -> None:
        """Enrich with what a forest decides.

        Args:
            forest: Assigns the articles.
            fields: The names of the articles' fields where an action does not name its index; None: the
                usual ones.
            check_process: Called first; raises in a forked process that may not use the client.
            check_index: Called for each index of a batch, and of all once more at the end, because an index
                that is deleted meanwhile would come back without its mapping. Raises if articles cannot be
                written to it.
            batch_size: How many actions are read, and their articles assigned, together.
            max_text_length: The profile's, for messages.
        """
        self._forest = forest
        self._unnamed_index = WritableIndex(fields=fields or Fields())
        self._check_process = check_process
        self._check_index = check_index
        self.batch_size = batch_size
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
        found = batches(actions, most=self.batch_size, size_of=size_of, flush_interval_s=flush_interval_s)
        ready: _Batch | None = None
        is_more = True
        while is_more:
            failure: Exception | None = None
            following: _Batch | Future[_Batch] | None = None
            try:
                # Empty: the next one would have to be waited for.
                is_more = (batch := next(found, None)) is not None
                if batch:
                    following = run.enrich(batch) if ready is None else run.begin(batch)
            except Exception as error:  # raised after the actions that came before it
                failure = error
            if ready is not None:
                yield from run.results(ready, on_rejected or log_rejected, on_assigned or self.log_cut)
            if failure is not None:
                raise failure
            ready = following.result() if isinstance(following, Future) else following
        run.end()

    def begin(self, *, backfill: bool) -> "EnrichRun":
        """Begin with some actions, which follow batch by batch.

        Raises:
            ClientForked: This is a forked process that may not use the client.
        """
        self._check_process()
        return EnrichRun(self._forest, self._unnamed_index, self._check_index, backfill=backfill)

    def log_cut(self, article: ArticleAction, _: Assignment) -> None:
        """Log an article of which only the beginning is fingerprinted."""
        if article.is_cut:
            log.warning(
                "%s: only the first %s characters of its text are fingerprinted",
                article.name,
                f"{self._max_text_length:,}",
            )


def log_rejected(rejected: ArticleRejected) -> None:
    """Log what becomes of an article that cannot be indexed."""
    log.warning("article left out: %s", rejected)

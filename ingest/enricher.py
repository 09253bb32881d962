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
from esdedup.errors import ArticleRejected, EsdedupError
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


class _Batch(NamedTuple):
    """Actions that were read, while or after their articles are assigned."""

    actions: list[tuple[ArticleAction | dict[str, Any], WritableIndex]]
    rejected: list[ArticleRejected]
    # Of the articles among the actions.
    assigned: Future[Sequence[AssignedArticle]]


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

    def read(self, batch: list[BulkAction], *, ahead: bool = False) -> _Batch:
        """Read the actions of a batch, and assign its articles; `enriched` raises what that meets.

        Args:
            batch: The next one.
            ahead: Assign them in a thread, while the actions of the batch before are used.
        """
        actions: list[tuple[ArticleAction | dict[str, Any], WritableIndex]] = []
        rejected: list[ArticleRejected] = []
        assigned: Future[Sequence[AssignedArticle]] = Future()
        try:
            self._read_actions(batch, actions, rejected)
        except EsdedupError as error:
            self._failure = error
            assigned.set_exception(error)
            return _Batch([], rejected, assigned)
        articles = [action for action, _ in actions if isinstance(action, ArticleAction)]
        if ahead:
            return _Batch(actions, rejected, self._thread.begin(lambda: self._assign(articles)))
        try:
            assigned.set_result(self._assign(articles))
        except Exception as error:  # raised after what is said of the rejected ones
            assigned.set_exception(error)
        return _Batch(actions, rejected, assigned)

    def enriched(
        self, batch: _Batch, on_rejected: OnRejected, on_assigned: OnAssigned
    ) -> Iterator[dict[str, Any]]:
        """Yield the actions of a batch with the dedup object in their articles."""
        # The caller may have forked meanwhile: the rest belongs to the parent.
        refuse_fork(self._process)
        for rejected in batch.rejected:
            on_rejected(rejected)
        assigned = iter(batch.assigned.result())
        for action, index in batch.actions:
            if isinstance(action, ArticleAction):
                each = next(assigned)
                try:
                    added = each.addition(index)
                except ArticleRejected as error:
                    on_rejected(error.bare())
                    continue
                on_assigned(each.article, each.assignment)
                changed = with_addition(action.action, added, index.fields)
            else:
                now_ms = int(time.time() * 1000)
                redated = redating(action, fields=index.fields, now_ms=now_ms, backfill=self._backfill)
                changed = action if redated is None else with_addition(action, redated, index.fields)
            yield changed
            refuse_fork(self._process)
            if (name := index_of(changed)) is not None:
                self._names.add(name)

    def _read_actions(
        self,
        batch: list[BulkAction],
        actions: list[tuple[ArticleAction | dict[str, Any], WritableIndex]],
        rejected: list[ArticleRejected],
    ) -> None:
        named_index = functools.cache(self._check_index)
        for given in batch:
            self._read += 1
            name = index_of(given)
            index = self._unnamed_index if name is None else named_index(name)
            try:
                routed = name if index.is_routed_by_root else None
                action = read_action(
                    given,
                    index.fields,
                    position=self._read,
                    routed_index=routed,
                    backfill=self._backfill,
                )
            except ArticleRejected as error:
                rejected.append(error.bare())
            else:
                actions.append((action, index))

    def _assign(self, articles: Sequence[ArticleAction]) -> Sequence[AssignedArticle]:
        """Assign articles, unless some before them could not be: that would change their order."""
        if self._failure is not None:
            raise self._failure
        try:
            return self._forest.assign(articles) if articles else ()
        except Exception as error:
            self._failure = error
            raise

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
        following: _Batch | None
        is_more = True
        while is_more:
            failure: Exception | None = None
            try:
                # Empty: the next one would have to be waited for.
                is_more = (batch := next(found, None)) is not None
                following = run.read(batch, ahead=ready is not None) if batch else None
            except Exception as error:  # raised after the actions that came before it
                failure, following = error, None
            if ready is not None:
                yield from run.enriched(ready, on_rejected or log_rejected, on_assigned or self.log_cut)
            if failure is not None:
                raise failure
            ready = following
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

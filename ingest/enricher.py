"""Enriches bulk actions in batches: articles are fingerprinted, then assigned by the forest."""

import dataclasses
import functools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from esdedup.ingest.actions import ArticleAction, BulkAction, index_of, read_action
from esdedup.ingest.batches import batches
from esdedup.ingest.json_values import size_of

from esdedup.elastic.meta import WritableIndex
from esdedup.errors import ArticleRejected, IndexNotReady
from esdedup.fields import Fields
from esdedup.forest import Assignment
from esdedup.serial_thread import SerialThread

log = logging.getLogger("esdedup")

OnRejected = Callable[[ArticleRejected], None]
"""Called for each article that cannot be indexed."""
OnAssigned = Callable[[ArticleAction, Assignment], None]
"""Called with each article and its assignment."""
_Outcome = ArticleAction | dict[str, Any] | Exception
"""An article; an action without an article, which is yielded unchanged; or an error: the rejection of an
article, or the failure that aborts the run."""


@dataclasses.dataclass(kw_only=True)
class Enricher:
    """One call of `Dedup.enrich`: adds the dedup object to articles in bulk actions, a batch at a time."""

    # Assigns articles, and returns once the assignments are durable.
    assign: Callable[[Sequence[ArticleAction]], None]
    # The names of the fields if an action names no index.
    fields: Fields | None
    # Raises an error in a forked process.
    check_process: Callable[[], None]
    # Called for each index of a batch, and for all indices again at the end: a bulk request recreates an
    # index that was deleted during the run, but without its mapping.
    check_index: Callable[[str], WritableIndex]
    batch_size: int
    # From the profile.
    max_text_length: int
    # For these, see `Dedup.enrich`.
    backfill: bool = False
    on_rejected: OnRejected | None = None
    on_assigned: OnAssigned | None = None

    _failure: Exception | None = dataclasses.field(default=None, init=False)
    _position: int = dataclasses.field(default=0, init=False)
    _names: set[str] = dataclasses.field(default_factory=set, init=False)

    def enrich(
        self, actions: Iterable[BulkAction], *, flush_interval_s: float | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the actions with the dedup object in their articles; see `Dedup.enrich`."""
        self.check_process()
        ahead, ready = SerialThread("esdedup-ahead"), list[_Outcome]()
        for batch in self._batches(actions, flush_interval_s):
            # An empty batch, which precedes a wait, contains nothing to assign.
            following = ahead.begin(self.enrich_batch, batch) if ready and batch else None
            yield from self.results(ready)
            ready = self.enrich_batch(batch) if following is None else following.result()
        yield from self.results(ready)
        self.end()

    def _batches(
        self, actions: Iterable[BulkAction], flush_interval_s: float | None
    ) -> Iterator[list[BulkAction]]:
        found = batches(actions, most=self.batch_size, size_of=size_of, flush_interval_s=flush_interval_s)
        try:
            yield from found
        except Exception as error:  # raised by `results`, after the previous actions were yielded
            self._failure = error
            yield []

    def enrich_batch(self, batch: list[BulkAction]) -> list[_Outcome]:
        """Assign the articles of the next batch; return the outcomes of its actions, for `results`."""
        read: list[_Outcome] = []
        try:
            # `extend` keeps the actions that were read before an error about an index.
            read.extend(self._read(batch))
            articles = [each for each in read if isinstance(each, ArticleAction)]
            # After a failure, assign nothing more, because later articles must not overtake earlier ones.
            if articles and self._failure is None:
                self.assign(articles)
        except Exception as error:  # raised by `results`, after it has reported the rejections
            self._failure = error
        if self._failure is None:
            return read
        return [*(each for each in read if isinstance(each, ArticleRejected)), self._failure]

    def results(self, outcomes: Iterable[_Outcome]) -> Iterator[dict[str, Any]]:
        """Yield the actions of a batch that can be written; then raise the error that aborted it, if any."""
        # If the caller has forked since the last batch, the actions belong to the parent process.
        self.check_process()
        process = os.getpid()
        for outcome in outcomes:
            action = outcome.enriched() if isinstance(outcome, ArticleAction) else outcome
            if isinstance(action, ArticleRejected):
                (self.on_rejected or log_rejected)(action)
                continue
            if isinstance(action, Exception):
                raise action
            if isinstance(outcome, ArticleAction):
                (self.on_assigned or self._log_cut)(outcome, outcome.assignment)
            yield action
            if os.getpid() != process:
                self.check_process()
            if (name := index_of(action)) is not None:
                self._names.add(name)

    def end(self) -> None:
        """Check the indices again, because the last batch has been yielded and may be partly written."""
        for name in sorted(self._names):
            check_again(self.check_index, name)

    def _read(self, batch: list[BulkAction]) -> Iterator[_Outcome]:
        named_index, now_ms = functools.cache(self.check_index), int(time.time() * 1000)
        unnamed_index = WritableIndex(fields=self.fields or Fields())
        for given in batch:
            self._position += 1
            name = index_of(given)
            index = unnamed_index if name is None else named_index(name)
            try:
                yield read_action(
                    given, index, position=self._position, now_ms=now_ms, backfill=self.backfill
                )
            except ArticleRejected as error:
                yield error.bare()

    def _log_cut(self, article: ArticleAction, _: Assignment) -> None:
        if article.is_cut:
            cut = "%s: only the first %s characters of its text are fingerprinted"
            log.warning(cut, article.name, f"{self.max_text_length:,}")


def log_rejected(rejected: ArticleRejected) -> None:
    """Log a warning that an article cannot be indexed."""
    log.warning("article left out: %s", rejected)


def check_again(check: Callable[[str], object], index: str) -> None:
    """Raise `IndexNotReady` if an index was deleted, changed or closed while it was written to."""
    try:
        check(index)
    except IndexNotReady as error:
        if error.status is None and not error.missing_fields:
            raise  # closed
        raise IndexNotReady(
            f"the index {index!r} was deleted or changed while articles were written to it ({error}): delete "
            "the current index, set it up, and index the articles again",
            status=error.status,
            index=index,
            missing_fields=error.missing_fields,
        ) from error

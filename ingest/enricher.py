"""Enriches bulk actions in batches: articles are fingerprinted, then assigned by the forest."""

import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, cast

from esdedup.ingest.actions import ArticleAction, BulkAction, index_of, read_action, redated
from esdedup.ingest.assigner import Assigned, Assigner
from esdedup.ingest.batches import batches, refuse_fork
from esdedup.ingest.check_again import check_again
from esdedup.ingest.json_values import size_of
from esdedup.ingest.learn import OnLearned, learn

from esdedup.boilerplate.pins import Pins
from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields, refuse_surrogates
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Assignment, Forest
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")

OnRejected = Callable[[ArticleRejected], None]
"""Called for each article that cannot be indexed."""
OnAssigned = Callable[[ArticleAction, Assignment], None]
"""Called with each article and its assignment."""


class Enricher:
    """Adds the dedup object to the articles in bulk actions, a batch at a time."""

    def __init__(
        self,
        *,
        profile: Profile,
        fields: Fields | None,
        lock: AbstractContextManager[Any],
        check_process: Callable[[], None],
        open_forest: Callable[[], tuple[Forest, int]],
        check_index: Callable[[str], WritableIndex],
        batch_size: int,
        most_plausible_leaves: int,
        pins: Pins,
    ) -> None:
        """Enrich with a profile and a forest.

        Args:
            profile: How texts are fingerprinted.
            fields: The names of the articles' fields where an action does not name its index; None: the
                usual ones.
            lock: Held while a batch is assigned: threads may enrich at the same time.
            check_process: Called before the lock is taken; raises in a forked process that may not use the
                client.
            open_forest: Called for each batch with an article; returns the forest that assigns it, and the
                time, milliseconds since 1970.
            check_index: Called for each index of a batch, and of all once more at the end, because an index
                that is deleted meanwhile would come back without its mapping. Raises if articles cannot be
                written to it.
            batch_size: How many actions are read, and their articles assigned, together.
            most_plausible_leaves: A warning is logged when a cluster grows beyond this.
            pins: Which passages are boilerplate or text, whatever was learned.
        """
        self._profile = profile
        self._unnamed_index = WritableIndex(fields=fields or Fields())
        self._lock = lock
        self._check_process = check_process
        self._open_forest = open_forest
        self._check_index = check_index
        self._batch_size = batch_size
        self._pins = pins
        self._assigner = Assigner(profile, pins=pins, most_plausible_leaves=most_plausible_leaves)

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
        self._check_process()
        process = os.getpid()
        names: set[str] = set()
        for batch in batches(
            enumerate(actions, 1),
            most=self._batch_size,
            size_of=lambda numbered: size_of(numbered[1]),
            flush_interval_s=flush_interval_s,
        ):
            for action in self._enrich_batch(
                batch, backfill, on_rejected or _log_rejected, on_assigned or self._log_cut
            ):
                yield action
                # The caller may have forked meanwhile: the rest belongs to the parent.
                refuse_fork(process)
                if (name := index_of(action)) is not None:
                    names.add(name)
        # The last batch may be half written by now.
        for name in sorted(names):
            check_again(self._check_index, name)

    def learn(
        self,
        texts: Iterable[str | RawPage | ArticleRejected],
        *,
        on_rejected: OnRejected | None,
        on_learned: OnLearned,
    ) -> int:
        """Learn from pages; see `Dedup.learn`."""
        return learn(
            _valid(texts, on_rejected or _log_rejected),
            fingerprinter=Fingerprinter(self._profile),
            open_forest=self._opened_forest,
            pins=self._pins,
            batch_size=self._batch_size,
            on_learned=on_learned,
        )

    @contextlib.contextmanager
    def _opened_forest(self) -> Iterator[Forest]:
        # Before the lock, as for articles.
        self._check_process()
        with self._lock:
            yield self._open_forest()[0]

    def _enrich_batch(
        self,
        batch: list[tuple[int, BulkAction]],
        backfill: bool,
        on_rejected: OnRejected,
        on_assigned: OnAssigned,
    ) -> Iterator[dict[str, Any]]:
        named_index = functools.cache(self._check_index)
        actions: list[tuple[ArticleAction | dict[str, Any], WritableIndex]] = []
        for position, given in batch:
            name = index_of(given)
            index = self._unnamed_index if name is None else named_index(name)
            try:
                routed = name if index.is_routed_by_root else None
                action = read_action(given, index.fields, position=position, routed_index=routed)
            except ArticleRejected as rejected:
                on_rejected(rejected.bare())
            else:
                actions.append((action, index))
        articles = [action for action, _ in actions if isinstance(action, ArticleAction)]
        assigned = iter(self._assign(articles, backfill) if articles else ())
        for action, index in actions:
            if not isinstance(action, ArticleAction):
                yield redated(action, fields=index.fields, now_ms=int(time.time() * 1000), backfill=backfill)
                continue
            each = next(assigned)
            on_assigned(each.article, each.assignment)
            yield each.enriched(index)

    def _assign(self, articles: list[ArticleAction], backfill: bool) -> list[Assigned]:
        """Return the articles with what was decided for them."""
        # Before the lock: a thread of the parent may have held it when this process was forked.
        self._check_process()
        with self._lock:
            forest, now_ms = self._open_forest()
            return self._assigner.assign(articles, forest=forest, now_ms=now_ms, backfill=backfill)

    def _log_cut(self, article: ArticleAction, _: Assignment) -> None:
        if article.is_cut:
            log.warning(
                "%s: only the first %s characters of its text are fingerprinted",
                article.name,
                f"{self._profile.max_text_length:,}",
            )


def _valid(texts: Iterable[object], on_rejected: OnRejected) -> Iterator[RawPage]:
    """Yield the texts that can be read."""
    for position, each in enumerate(texts, 1):
        if isinstance(each, ArticleRejected):
            on_rejected(each)
            continue
        page = each if isinstance(each, RawPage) else RawPage(cast(str, each))
        name, text = f"text {position}", cast(object, page.text)
        if not isinstance(text, str):
            on_rejected(ArticleRejected(name, f"is a {type(text).__name__}, not a string"))
            continue
        try:
            refuse_surrogates(text, name=name)
        except ArticleRejected as rejected:
            on_rejected(rejected.bare())
        else:
            yield page


def _log_rejected(rejected: ArticleRejected) -> None:
    log.warning("article left out: %s", rejected)

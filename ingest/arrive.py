"""Texts arrive at a forest, without what is boilerplate: they are assigned, or learned from."""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import cast

from esdedup.ingest.batches import BATCH_SIZE, batches

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.errors import ArticleRejected, TextFailed
from esdedup.fields import refuse_surrogates
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest import Arrivals, Decision, Forest
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")

OnLearned = Callable[[int, int], None]
"""Called after each batch of pages with how many of them had not been seen before, and how many had."""


def arrive(
    texts: Sequence[str],
    *,
    times_ms: Sequence[int | None],
    fingerprinter: Fingerprinter,
    forest: Forest,
    now_ms: int,
    overrides: Overrides = NO_OVERRIDES,
    sites: Iterable[str | None] = itertools.repeat(None),
    articles: Iterable[str | None] = itertools.repeat(None),
) -> tuple[Fingerprints, Decision]:
    """Return the fingerprints and assignments of raw texts, in their order; see `Forest.decide`.

    The forest learns from them what is boilerplate. Times (milliseconds since 1970), sites and ids of
    articles come one per text; None if not known.
    """
    passage_filter = forest.begin(overrides=overrides, sites=sites, articles=articles)
    fingerprints = fingerprinter.fingerprint(texts, passage_filter=passage_filter)
    arrivals = Arrivals.of(fingerprints, times_ms=times_ms)
    return fingerprints, forest.decide(arrivals, now_ms=now_ms)


def learn(
    texts: Iterable[RawPage],
    *,
    fingerprinter: Fingerprinter,
    open_forest: Callable[[], AbstractContextManager[Forest]],
    overrides: Overrides = NO_OVERRIDES,
    batch_size: int = BATCH_SIZE,
    on_learned: OnLearned = lambda *_: None,
) -> int:
    """Learn from raw texts batch by batch, and assign none; return how many had not been seen before.

    `open_forest` is called for each batch, and at the end; it returns the forest that learns.
    """
    new, has_begun = 0, False
    for batch in batches(texts, most=batch_size, size_of=lambda each: len(each.text)):
        has_begun = True
        with open_forest() as forest:
            new_here = _learn_batch(batch, fingerprinter=fingerprinter, forest=forest, overrides=overrides)
        new += new_here
        on_learned(new_here, len(batch) - new_here)
    # Also if all had been seen before: an earlier call may have been interrupted just here.
    if has_begun:
        with open_forest() as forest:
            forest.end_look()
    return new


def _learn_batch(
    batch: Sequence[RawPage], *, fingerprinter: Fingerprinter, forest: Forest, overrides: Overrides
) -> int:
    passage_filter = forest.begin(
        overrides=overrides, sites=(each.site for each in batch), articles=(each.article for each in batch)
    )
    faults: list[str] = []
    for parsed in fingerprinter.parsed([each.text for each in batch]):
        passage_filter(parsed.passages, parsed.pages)
        faults += parsed.core.faults
    for page, fault in zip(batch, faults, strict=True):
        if fault:
            log.warning("page left out: %s", TextFailed(page.article or "a page", fault))
    return forest.learn()


def valid_pages(texts: Iterable[object], on_rejected: Callable[[ArticleRejected], None]) -> Iterator[RawPage]:
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

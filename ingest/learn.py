"""Learns boilerplate from pages before articles are assigned."""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar, cast

from esdedup.ingest.batches import BATCH_SIZE, batches
from esdedup.ingest.files import ReadArticle
from esdedup.ingest.records import input_name

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.errors import ArticleRejected, SettingError, TextFailed
from esdedup.fields import Fields, refuse_surrogates
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Store, begin
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")

_Read = TypeVar("_Read")

LOOK_AHEAD_PAGES = 40_000
"""How many pages of a file are learned from before they are assigned: half the number that the learner is
certain to remember, unless pages are very long. In a longer part, the first pages would be forgotten."""

OnLearned = Callable[[int, int], None]
"""Called after each batch of pages with the numbers of new and of previously seen pages."""


def learn(
    texts: Iterable[RawPage],
    *,
    fingerprinter: Fingerprinter,
    open_store: Callable[[], AbstractContextManager[Store]],
    overrides: Overrides = NO_OVERRIDES,
    batch_size: int = BATCH_SIZE,
    on_learned: OnLearned = lambda *_: None,
    are_last: bool = True,
) -> int:
    """Learn boilerplate from raw texts, batch by batch; return how many had not been seen before.

    `open_store` is called for each batch, and at the end; it must return the store of the forest that learns.
    Texts are learned from in blocks. With `are_last`, this includes an incomplete block at the end, which
    otherwise waits for further texts.
    """
    new, has_begun = 0, False
    for batch in batches(texts, most=batch_size, size_of=lambda each: len(each.text)):
        has_begun = True
        with open_store() as store:
            sites, articles = (each.site for each in batch), (each.article for each in batch)
            titles = (each.title for each in batch)
            passage_filter = begin(store, overrides=overrides, sites=sites, articles=articles, titles=titles)
            faults: list[str] = []
            for parsed in fingerprinter.parsed([each.text for each in batch]):
                parsed.left_out(passage_filter)
                faults += parsed.core.faults
            # These pages are not learned from again when they are enriched later.
            new_here = store.boilerplate.changes().page_count
            store.learn()
        for page, fault in zip(batch, faults, strict=True):
            if fault:
                log.warning("page left out: %s", TextFailed(page.article or "a page", fault))
        new += new_here
        on_learned(new_here, len(batch) - new_here)
    # Do this even if all texts had been seen before: an earlier call may have been interrupted here.
    if has_begun and are_last:
        with open_store() as store:
            store.begin()
            store.boilerplate.learn_rest()
            store.learn()
    return new


def valid_pages(texts: Iterable[object], on_rejected: Callable[[ArticleRejected], None]) -> Iterator[RawPage]:
    """Yield the valid texts as pages, and call `on_rejected` for the others."""
    for position, each in enumerate(texts, 1):
        if isinstance(each, ArticleRejected):
            on_rejected(each)
            continue
        page = each if isinstance(each, RawPage) else RawPage(cast(str, each))
        name, text = f"text {position}", cast(object, page.text)
        if not isinstance(text, str):
            on_rejected(ArticleRejected(name, f"must be a string, not {type(text).__name__}"))
            continue
        try:
            refuse_surrogates(text, name=name)
        except ArticleRejected as rejected:
            on_rejected(rejected.bare())
        else:
            yield page


def texts_of(articles: Iterable[ReadArticle], fields: Fields) -> Iterator[RawPage | ArticleRejected]:
    """Yield the page of each article, or a rejection if the article has no text."""
    for article in articles:
        if isinstance(article, ArticleRejected):
            yield article
            continue
        try:
            yield RawPage.of(article.article, fields, name=article.name, article_id=article.id)
        except ArticleRejected as rejected:
            yield rejected.bare()


def first_pass(
    learn: Callable[[Iterator[RawPage]], int], articles: Iterable[ReadArticle], fields: Fields
) -> None:
    """Learn from articles that will be re-read to be assigned; the second pass rejects invalid articles."""
    learn(each for each in texts_of(articles, fields) if isinstance(each, RawPage))


def two_passes(
    read: Callable[[], Iterator[_Read]], *, learn_first: bool, ahead: int = LOOK_AHEAD_PAGES
) -> Iterator[tuple[Iterable[_Read], Iterable[_Read]]]:
    """Yield parts of `ahead` articles, each part twice: once to learn from, once to assign.

    The caller must exhaust both iterators before it takes the next part. `read` starts reading the articles
    from the beginning. Without `learn_first`, there is a single part, and nothing to learn from.
    """
    if not learn_first:
        yield (), read()
        return
    first, second = read(), read()
    for article in first:
        yield itertools.chain([article], itertools.islice(first, ahead - 1)), itertools.islice(second, ahead)
    # Assign articles that were added to a file after its first pass.
    yield (), second


def check_two_passes(paths: Iterable[Path], profile: Profile) -> None:
    """Raise `SettingError` unless the inputs can be read twice and the profile learns boilerplate."""
    refuse_to_keep(profile)
    if (once := next((path for path in paths if not path.is_file()), None)) is not None:
        raise SettingError(
            f"{input_name(once)} can be read only once: to learn from it first, save it as a file"
        )


def refuse_to_keep(profile: Profile) -> None:
    """Raise `SettingError` if a profile keeps boilerplate."""
    if profile.keep_boilerplate:
        raise SettingError(f"the profile {profile.label!r} keeps boilerplate, so it learns nothing")

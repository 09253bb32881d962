"""`Assigner`: assigns roots to the articles of a batch, and builds the addition to each."""

import base64
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from esdedup.ingest.actions import ArticleAction, addition_to
from esdedup.ingest.dates import UNDERSTOOD

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, without_placeholders
from esdedup.boilerplate.placeholders import MOST_LETTERS, PlaceholderWatch
from esdedup.elastic.forest.stored import hash_name
from esdedup.errors import TextFailed
from esdedup.fields import term_of
from esdedup.fingerprint.bands import ARTICLES
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest import Aging, Arrivals, Assignment, Decision, Kind, Store, begin, decide
from esdedup.forest.forest import Growth
from esdedup.forest.model import NO_HASH, NO_TIME
from esdedup.forest.store import completed
from esdedup.forest.stories import NO_STORIES, Stories
from esdedup.neighbours.relation import relation_of
from esdedup.times import iso

log = logging.getLogger("esdedup")

# Articles are assigned in parts of this size; each part is assigned while the previous one is written.
_PART = 512


def arrive(
    texts: Sequence[str],
    *,
    times_ms: Sequence[int | None],
    fingerprinter: Fingerprinter,
    store: Store,
    now_ms: int,
    overrides: Overrides = NO_OVERRIDES,
    sites: Iterable[str | None] = itertools.repeat(None),
    articles: Iterable[str | None] = itertools.repeat(None),
    titles: Iterable[str | None] = itertools.repeat(None),
    origins: Iterable[int] = (),
) -> tuple[Fingerprints, Decision]:
    """Return the fingerprints and assignments of raw texts, in order; see `decide`.

    The forest also learns boilerplate from the texts. Each text has one value in `times_ms` (milliseconds
    since 1970), `sites`, `titles`, `origins` and `articles` (names unique on a site); None means unknown.
    """
    of_texts = list(itertools.islice(sites, len(texts)))
    passage_filter = begin(store, overrides=overrides, sites=of_texts, articles=articles, titles=titles)
    fingerprints = fingerprinter.fingerprint(texts, passage_filter=passage_filter)
    fingerprints = without_placeholders(overrides, fingerprints, texts, of_texts)
    arrivals = Arrivals.of(fingerprints, times_ms=times_ms, origins=origins)
    return fingerprints, decide(store, arrivals, now_ms=now_ms)


class DateCheck:
    """Logs a warning for the first implausible date."""

    _has_warned = False

    def check(self, article: str, wrong: str, *, field: str) -> None:
        """Warn if an article has an implausible date; `wrong` says why, and is "" for a plausible date."""
        if wrong and not self._has_warned:
            self._has_warned = True
            log.warning("%s: its date in %r, %s. %s", article, field, wrong, UNDERSTOOD)


class Assigner:
    """Assigns roots to the articles of a batch. Not thread-safe.

    Logs a warning when a cluster grows beyond `most_plausible_leaves`. `threads` threads fingerprint texts.
    """

    def __init__(
        self, profile: Profile, *, overrides: Overrides, most_plausible_leaves: int, threads: int = 1
    ) -> None:
        self._fingerprinter = Fingerprinter(profile, threads=threads)
        self._profile, self._label = profile, profile.label
        self._overrides = overrides
        self._dates = DateCheck()
        # Counts only the leaves that this process adds, so it needs no request.
        self._growth = Growth(most_plausible_leaves=most_plausible_leaves)
        self.placeholders = PlaceholderWatch()

    def assign(
        self, articles: Sequence[ArticleAction], *, store: Store, now_ms: int, stories: Stories = NO_STORIES
    ) -> Future[None]:
        """Assign articles in order of arrival; `stories` are defined by editors.

        The future is done once the assignments are durable, and must be awaited before the assignments are
        used. Its `result` raises an error if the assignments could not be written.
        """
        written = completed()
        for start in range(0, len(articles), _PART):
            some = articles[start : start + _PART]
            written = self._assign_part(some, store=store, now_ms=now_ms, stories=stories)
        return written

    def look_up(self, text: str, *, site: str | None, store: Store, now_ms: int) -> Assignment:
        """Return the assignment that a text would get if it arrived now, without changing the forest.

        Raises `TextFailed` if the text triggers a bug in the core.
        """
        passage_filter = begin(store, overrides=self._overrides, sites=[site])
        try:
            fingerprints = self._fingerprinter.fingerprint([text], passage_filter=passage_filter).checked()
            fingerprints = without_placeholders(self._overrides, fingerprints, [text], [site])
            arrivals = Arrivals.of(fingerprints, times_ms=[now_ms])
            nodes = store.nodes(arrivals, now_ms=now_ms)
            return nodes.assign(arrivals, store.state, now_ms=now_ms).assignments[0]
        finally:
            # Undo the look-up.
            store.begin()

    def _assign_part(
        self, articles: Sequence[ArticleAction], *, store: Store, now_ms: int, stories: Stories
    ) -> Future[None]:
        for article in articles:
            self._dates.check(article.name, article.wrong_date, field=article.fields.time)
        time_before_ms = store.state.time_ms
        fingerprints, (assignments, written) = arrive(
            [article.text for article in articles],
            times_ms=[article.dated_ms if article.is_backfill else now_ms for article in articles],
            fingerprinter=self._fingerprinter,
            store=store,
            now_ms=now_ms,
            overrides=self._overrides,
            sites=[article.site for article in articles],
            articles=[article.path or article.id for article in articles],
            titles=map(_title_of, articles),
            origins=[article.origin for article in articles],
        )
        _warn_of_leaps(articles, assignments, time_before_ms=time_before_ms, aging=store.aging)
        for root, leaves in self._growth.add(assignments):
            log.warning(
                "the cluster %s has grown by more than %s distinct texts since this process started: it "
                "may be a template, or boilerplate in many articles; `esdedup stats` shows what they share",
                root,
                f"{leaves:,}",
            )
        label = self._label
        # Strict, because a column that is too short would silently drop articles.
        for article, assignment, fields, alphanumerics, letters, is_cut, fault in zip(
            articles,
            assignments,
            _fingerprint_fields(fingerprints.content_hashes.tolist(), assignments, self._profile),
            fingerprints.alphanumerics.tolist(),
            fingerprints.boilerplate_letters.tolist(),
            fingerprints.are_cut.tolist(),
            fingerprints.faults.tolist(),
            strict=True,
        ):
            article.assignment, article.is_cut, article.boilerplate_letters = assignment, is_cut, letters
            self._watch(article, assignment, alphanumerics)
            if fault:
                article.rejection = TextFailed(article.name, fault)
                continue
            article.parts, article.routing = addition_to(
                *(article, assignment, fields), alphanumerics=alphanumerics, profile=label, stories=stories
            )
        return written

    def _watch(self, article: ArticleAction, assignment: Assignment, letters: int) -> None:
        """Log a warning if a cluster appears to be a placeholder."""
        root, site = assignment.root, article.site
        if letters > MOST_LETTERS or root is None or site is None or assignment.kind is Kind.NEW_ROOT:
            return
        title = _title_of(article)
        if title and self.placeholders.add(root, article.text, title=title, site=site):
            log.warning(
                "the cluster %s seems to be a placeholder: several sites have its text under unrelated "
                "titles. If so, declare that text boilerplate in an override",
                root,
            )


def _title_of(article: ArticleAction) -> str | None:
    source, name = article.action["_source"], article.fields.title
    return term_of(source, name) or term_of(source, f"doc.{name}")


def _fingerprint_fields(
    content_hashes: Sequence[int], assignments: Sequence[Assignment], profile: Profile
) -> Iterator[dict[str, Any]]:
    """Yield the dedup fields that come from each article's content hash and node, if any.

    If the content hash was known, its node's fingerprint may differ from the article's, or be missing.
    """
    signatures = b"".join([each.signature for each in assignments])
    bands = relation_of(profile).terms(signatures, ARTICLES, are_indexed=False)
    for number, assignment, own in zip(content_hashes, assignments, bands, strict=True):
        of_hash = {} if number == NO_HASH else {"page": hash_name(number)}
        if assignment.node is None:
            yield of_hash
            continue
        signature = base64.b64encode(assignment.signature).decode()
        yield {"fingerprint": assignment.node, "signature": signature, "bands": own, **of_hash}


def _warn_of_leaps(
    articles: Sequence[ArticleAction], assignments: Sequence[Assignment], *, time_before_ms: int, aging: Aging
) -> None:
    """Log a warning for each article that moved the forest's time by more than the retention.

    All earlier clusters have then expired, so a wrong date or clock is likely.
    """
    for article, assignment in zip(articles, assignments, strict=True):
        if time_before_ms != NO_TIME and assignment.time_ms - time_before_ms > aging.retention_ms:
            log.warning(
                "%s: moved the forest's time from %s to %s, by more than the retention: all earlier clusters "
                "have expired. If its date is wrong (in a backfill) or a clock is ahead, stop and correct "
                "it; see `If a clock or a date was wrong` in docs/maintenance.md",
                article.name,
                iso(time_before_ms),
                iso(assignment.time_ms),
            )
        time_before_ms = assignment.time_ms

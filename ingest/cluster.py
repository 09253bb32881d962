"""Clusters articles in memory, without Elasticsearch."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import pydantic
from esdedup.ingest.assigner import DateCheck, arrive
from esdedup.ingest.dates import judged
from esdedup.ingest.files import FileArticle, ReadArticle, text_batches
from esdedup.ingest.learn import learn
from esdedup.ingest.saved_state import SavedStore

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, refuse_useless
from esdedup.errors import ArticleRejected, TextFailed
from esdedup.fields import Fields, term_of, value_of
from esdedup.fingerprint import WORKERS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Kind, Store
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from esdedup.sites import Provenance
from esdedup.times import time_reader


class ClusteredArticle(pydantic.BaseModel, frozen=True):
    """An article and its cluster."""

    id: str
    # The root; None if the text, or an earlier text with the same content hash, has no fingerprint.
    root: str | None
    # Whether the article began its cluster, or has no root.
    is_original: bool
    # An earlier root whose text contains this root's text, if any.
    part_of: str | None
    # An earlier root whose text is a part of this root's text, if any.
    has_part: str | None
    # The fingerprint of the article's node; None if `root` is None.
    fingerprint: str | None
    # The number of letters and digits of the text.
    length: int = pydantic.Field(default=0, exclude=True)
    # How many letters and digits of the text were left out of the fingerprint as boilerplate.
    boilerplate_letters: int = pydantic.Field(default=0, exclude=True)
    # Whether times are used and the article has no plausible date.
    is_undated: bool = pydantic.Field(default=False, exclude=True)


@dataclasses.dataclass(kw_only=True)
class Clustering:
    """Assigns articles to clusters in order of arrival, in a forest in memory.

    Rejected articles are not yielded. Without `use_time`, nothing expires.
    """

    profile: Profile
    fields: Fields
    # Whether the forest's time is taken from the articles.
    use_time: bool
    retention: timedelta | None = None
    # The forest begins with the contents of this file, which `save` replaces.
    state: Path | None = None
    overrides: Overrides = NO_OVERRIDES
    on_rejected: Callable[[ArticleRejected], None]
    # Called with the name of each article whose text is too long to be fingerprinted whole.
    on_cut: Callable[[str], None] = lambda _: None
    workers: int = WORKERS

    def __post_init__(self) -> None:
        refuse_useless(self.overrides, keep_boilerplate=self.profile.keep_boilerplate)
        self._dates = DateCheck()
        self._fingerprinter = Fingerprinter(self.profile, threads=self.workers)
        self._store: MemoryStore
        if self.state is not None:
            self._store = SavedStore(
                self.state, profile=self.profile, retention=self.retention, use_time=self.use_time
            )
        else:
            aging = Aging.of(retention=DEFAULT_RETENTION if self.retention is None else self.retention)
            self._store = MemoryStore(aging=aging, relation=relation_of(self.profile))
        store: Store = self._store
        # Learns boilerplate from texts without assigning them.
        self.learn = functools.partial(
            learn,
            fingerprinter=self._fingerprinter,
            open_store=lambda: contextlib.nullcontext(store),
            overrides=self.overrides,
        )

    def cluster(self, articles: Iterable[ReadArticle]) -> Iterator[ClusteredArticle]:
        """Assign articles, lazily, batch by batch."""
        return (clustered for _, clustered in self.pairs(articles))

    def pairs(self, articles: Iterable[ReadArticle]) -> Iterator[tuple[FileArticle, ClusteredArticle]]:
        """Assign articles as `cluster` does, and yield each with its cluster."""
        for batch in text_batches(articles, self.fields, self.on_rejected):
            yield from self._cluster_batch(batch)

    def save(self) -> None:
        """Save the forest, if `state` was given; raises `StateUnusable` if that is impossible."""
        if isinstance(self._store, SavedStore):
            self._store.save()

    def _cluster_batch(
        self, batch: list[tuple[FileArticle, str]]
    ) -> Iterator[tuple[FileArticle, ClusteredArticle]]:
        field = self.fields.time
        values = [value_of(article.article, field) if self.use_time else None for article, _ in batch]
        dates = [judged(each, time_reader(None)(each)) for each in values]
        origins = [Provenance.of(article.article, self.fields, article.id) for article, _ in batch]
        fingerprints, decided = arrive(
            [text for _, text in batch],
            times_ms=[dated_ms for dated_ms, _ in dates],
            fingerprinter=self._fingerprinter,
            store=self._store,
            now_ms=int(time.time() * 1000),
            overrides=self.overrides,
            sites=(each.site for each in origins),
            articles=(each.path or article.id for each, (article, _) in zip(origins, batch, strict=True)),
            titles=(term_of(article.article, self.fields.title) for article, _ in batch),
            origins=(each.origin for each in origins),
        )
        results = zip(
            batch,
            dates,
            decided.assignments,
            fingerprints.alphanumerics.tolist(),
            fingerprints.boilerplate_letters.tolist(),
            fingerprints.are_cut.tolist(),
            fingerprints.faults.tolist(),
            strict=True,
        )
        for (article, _), (dated_ms, wrong), assigned, length, letters, is_cut, fault in results:
            if is_cut:
                self.on_cut(article.name)
            if fault:
                self.on_rejected(TextFailed(article.name, fault))
                continue
            self._dates.check(article.name, wrong, field=field)
            clustered = ClusteredArticle(
                id=article.id,
                root=assigned.root,
                is_original=assigned.kind in {Kind.NEW_ROOT, Kind.WITHOUT_FINGERPRINT},
                part_of=assigned.part_of,
                has_part=assigned.has_part,
                fingerprint=assigned.node,
                length=length,
                boilerplate_letters=letters,
                is_undated=self.use_time and dated_ms is None,
            )
            yield article, clustered

"""`Inspection`: statistics, verification and explanations, which do not change a forest."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

from elasticsearch import Elasticsearch

from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, refuse_useless
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.names import check_index_names
from esdedup.elastic.requests import refresh
from esdedup.errors import ArticleRejected, ForestError, SettingError
from esdedup.fingerprint.profile import DEFAULT, Profile, profile_labelled
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.records import Records
from esdedup.maintenance.stats import ForestNode, Stats, node_of, stats
from esdedup.maintenance.stored_texts import (
    LATEST_ARTICLES,
    BoilerplateBySite,
    BoilerplateCounts,
    StoredTexts,
)
from esdedup.maintenance.times_ahead import TimesAhead
from esdedup.maintenance.violations import Violation
from esdedup.reading.clusters import ForestScope
from esdedup.reading.explanation import explain_indexed
from esdedup.reading.verdict import IndexedExplanation
from esdedup.sites import RawPage

OnProgress = Callable[[int], None]

ARTICLES_READ = 10_000
"""How many of the latest articles `Inspection.boilerplate` reads by default."""
PASSAGES_SHOWN = 10
"""How many passages of a site `Inspection.boilerplate` returns by default."""


class Inspection:
    """The part of `Maintenance` that only reads, and therefore needs no lease."""

    _client: Elasticsearch
    _scope: ForestScope

    def forest_of(self, indices: Sequence[str] = ()) -> str:
        """Return the given forest, or else the forest stored in the indices, or else ``esdedup-forest``."""
        check_index_names(indices)
        if not indices:
            return self._scope.forest
        return execute(self._client, self._scope.of_index(",".join(indices))).forest

    def count(self, indices: Sequence[str] = ()) -> int:
        """Count the nodes and the articles that `verify` checks."""
        index = self._found(indices)
        return index.run(index.nodes.count_nodes()) + (self.count_articles(indices) if indices else 0)

    def count_articles(self, indices: Sequence[str]) -> int:
        """Count the articles that have a root."""
        return self._records(indices).count()

    def explain(
        self,
        index: str,
        one_id: str,
        other_id: str,
        *,
        profile: Profile | None = None,
        overrides: Overrides = NO_OVERRIDES,
    ) -> IndexedExplanation:
        """Explain why two articles are, or are not, in one cluster.

        Each article is compared by the signature with which it was assigned, unless its text has changed. If
        the forest is missing, or belongs to other articles, the explanation uses the index alone.

        Args:
            index: An index, alias or pattern. If several articles have the same id, the latest one is used.
            one_id: The id of the first article.
            other_id: The id of the second article; may equal `one_id`.
            profile: The profile for the comparison. None uses the profile of the articles' fingerprints.
            overrides: The overrides of the process that feeds the forest, to show the text that is left out.

        Raises:
            ArticleNotFound: One of the articles does not exist.
            ArticleRejected: An article has no text.
            SettingError: The articles' profile is unknown, or an id is empty; or the profile keeps
                boilerplate, so overrides would have no effect.
        """
        check_index_names([index])
        scope = dataclasses.replace(self._scope, overrides=overrides)
        if profile is not None:
            refuse_useless(overrides, keep_boilerplate=profile.keep_boilerplate)
        missing: str | None = None
        try:
            self._own_records(ForestIndex.find(self._client, self.forest_of([index])), [index])
        except ForestError as error:
            missing = str(error)
        articles = (one_id, None), (other_id, None)
        requests = explain_indexed(scope, index, *articles, profile=profile, forest_missing=missing)
        found = execute(self._client, requests)
        compared_by = profile or profile_labelled(found.comparison.profile) or DEFAULT
        refuse_useless(overrides, keep_boilerplate=compared_by.keep_boilerplate)
        return found

    def node(self, node_id: str) -> ForestNode | None:
        """Return a node by its id, which is the fingerprint of its articles; None if it does not exist."""
        return node_of(self._found(), node_id)

    def texts(
        self, indices: Sequence[str], *, latest: int = LATEST_ARTICLES
    ) -> Iterator[RawPage | ArticleRejected]:
        """Yield the stored texts of the latest articles, with their sites, in order of arrival.

        For an article without a text, yield the reason instead. Articles that have no root yet come first.
        `Dedup.learn` learns from these texts, for example after a forest was rebuilt.

        Args:
            indices: The indices of the articles.
            latest: How many of the latest arrivals to read. A forest forgets passages that it has not seen
                in about 160,000 pages.
        """
        return self._stored_texts(indices, latest).texts(latest)

    def count_texts(self, indices: Sequence[str], *, latest: int = LATEST_ARTICLES) -> int:
        """Count the items that `texts` yields; parameters and errors as for `texts`."""
        return self._stored_texts(indices, latest).count_latest(latest)

    def stats(self, indices: Sequence[str] = ()) -> Stats:
        """Return the statistics of the forest.

        Args:
            indices: The indices of the forest's articles, to show sentences that many nodes share, and to
                count the articles that are not enriched.
        """
        index = self._found(indices)
        texts = StoredTexts(self._client, indices=indices, fields=self._scope.fields) if indices else None
        records = self._own_records(index, indices)
        return stats(
            index,
            texts,
            not_enriched=None if records is None else records.count_without(),
            most_plausible_leaves=MOST_PLAUSIBLE_LEAVES,
        )

    def boilerplate(
        self, indices: Sequence[str], *, articles: int = ARTICLES_READ, passages: int = PASSAGES_SHOWN
    ) -> BoilerplateBySite:
        """Return the learned boilerplate of each site.

        The forest stores no text, so this reads the latest articles, and counts the passages in them that are
        now boilerplate. Overrides are ignored.

        Args:
            indices: The indices of the forest's articles.
            articles: The maximum number of articles to read.
            passages: The maximum number of passages to return for each site; all are counted.

        Raises:
            ForestDamaged: The learned boilerplate cannot be read.
        """
        check_named(indices)
        check_at_least_1(articles=articles, passages=passages)
        index, learned = self._found(indices), LearnedCopy()
        texts = StoredTexts(self._client, indices=indices, fields=self._scope.fields)
        self._own_records(index, indices)
        index.run(learned.update(index.name))
        profile = profile_labelled(index.meta.profile) or DEFAULT
        counts = BoilerplateCounts(learned=learned, max_length=profile.max_text_length)
        with_text = (each for each in texts.latest_first() if isinstance(each, RawPage))
        for article in itertools.islice(with_text, articles):
            counts.add(article)
        return counts.result(passages)

    def verify(
        self, indices: Sequence[str] = (), *, on_progress: OnProgress | None = None
    ) -> Iterator[Violation]:
        """Yield every violation of the forest's laws, in the forest and its articles.

        Articles may be added at the same time.

        Args:
            indices: Indices of articles that this forest assigned. If empty, only the forest is checked.
            on_progress: Called with the number of nodes or articles in each batch.
        """
        index = self._found(indices)
        records = self._own_records(index, indices)
        aging, on_progress = index.status().aging, on_progress or ignore
        yield from TimesAhead(index, records, latest_ms=Clock(index).latest_ms(), aging=aging).violations()
        yield from ForestAudit(index, aging, on_nodes=on_progress).violations()
        if records is not None:
            articles = ArticleAudit(index, records, aging, on_articles=on_progress)
            yield from itertools.chain.from_iterable(articles.violations())

    def _stored_texts(self, indices: Sequence[str], latest: int) -> StoredTexts:
        check_at_least_1(latest=latest)
        check_named(indices)
        self.forest_of(indices)
        return StoredTexts(self._client, indices=indices, fields=self._scope.fields)

    def _own_records(self, index: ForestIndex, indices: Sequence[str]) -> Records | None:
        """Return the records of the forest's articles; None if no indices are given."""
        if not indices:
            return None
        records = self._records(indices)
        records.refuse_others_articles(index)
        return records

    def _records(self, indices: Sequence[str]) -> Records:
        check_named(indices)
        names = ",".join(indices)
        fields = execute(self._client, self._scope.fields_of(names))
        # Make acknowledged writes visible.
        execute(self._client, refresh(names))
        return Records(self._client, indices=indices, fields=fields)

    def _found(self, indices: Sequence[str] = ()) -> ForestIndex:
        index = ForestIndex.find(self._client, self.forest_of(indices))
        index.refresh_if_allowed()
        return index


def check_at_least_1(**numbers: int) -> None:
    """Raise `SettingError` if a setting is below 1; the keywords are the settings' names."""
    for name, number in numbers.items():
        if number < 1:
            raise SettingError(f"{name} is {number}; it must be at least 1")


def ignore(_count: int) -> None:
    """Ignore progress."""


def check_named(indices: Sequence[str]) -> None:
    """Raise `SettingError` unless indices are named."""
    check_index_names(indices)
    if not indices:
        raise SettingError("name the indices of the articles, as a list")

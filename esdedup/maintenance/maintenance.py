"""`Maintenance`: inspects, expires, repairs and rebuilds a forest."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from elasticsearch import Elasticsearch

from esdedup.arguments import check_type, checked
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides, refuse_useless
from esdedup.elastic.execute import execute
from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lease import LeaseTerms
from esdedup.elastic.forest.meta import Lookup, read_meta
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.names import check_index_names
from esdedup.elastic.patience import await_first_answer, patient
from esdedup.elastic.requests import refresh
from esdedup.errors import ArticleRejected, ForestError, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile, profile_labelled
from esdedup.forest.model import Aging
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.rebuild import Rebuild, Repaired
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
"""How many of the latest articles `Maintenance.boilerplate` reads by default."""
PASSAGES_SHOWN = 10
"""How many passages of a site `Maintenance.boilerplate` returns by default."""


class Maintenance:
    """Maintains one forest. Methods that change it hold its lease, `repair` and `rebuild` only at their end.

    Raises:
        ForestError: The forest does not exist; or the method changes the forest, and another process owns it.
        ForestMismatch: Articles belong to another forest.
        ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
        IndexNotReady: An index is missing, or lacks the fields of esdedup.
        SettingError: `indices` is a string, contains an empty name, or is empty where indices are required;
            or a number is below 1.
    """

    @checked
    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str | None = None,
        fields: Fields | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Use a forest; nothing is sent yet.

        Args:
            client: The caller must close it.
            forest: The name of the forest's index. None means the articles' forest, or ``esdedup-forest``.
            fields: The names of the articles' fields. None means the indices' own names, which must agree.
            wait_s: How long to wait while another process owns the forest, or while the server is starting.

        Raises:
            SettingError: An argument has a wrong type, the forest's name is invalid, or `wait_s` is negative.
        """
        if not wait_s >= 0:
            raise SettingError(f"wait_s is {wait_s}; it must be at least 0")
        await_first_answer(client, wait_s)
        self._client = patient(client)
        self._scope = ForestScope(fields=fields, given_forest=forest)
        self._wait_s = wait_s

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
        return self._stored_texts(indices, latest=latest).texts(latest)

    def count_texts(self, indices: Sequence[str], *, latest: int = LATEST_ARTICLES) -> int:
        """Count the items that `texts` yields; parameters and errors as for `texts`."""
        return self._stored_texts(indices, latest=latest).count_latest(latest)

    def stats(self, indices: Sequence[str] = ()) -> Stats:
        """Return the statistics of the forest.

        Args:
            indices: The indices of the forest's articles, to show sentences that many nodes share, and to
                count the articles that are not enriched.
        """
        index = self._found(indices)
        texts = StoredTexts(self._client, indices=indices, fields=self._scope.fields) if indices else None
        records = self._own_records(index, indices)
        return stats(index, texts, not_enriched=None if records is None else records.count_without())

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
        texts = self._stored_texts(indices, articles=articles, passages=passages)
        index, learned = self._found(indices), LearnedCopy()
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
        aging, on_progress = index.status().aging, on_progress or (lambda _: None)
        yield from TimesAhead(index, records, latest_ms=Clock(index).latest_ms(), aging=aging).violations()
        yield from ForestAudit(index, aging, on_nodes=on_progress).violations()
        if records is not None:
            articles = ArticleAudit(index, records, aging, on_articles=on_progress)
            yield from itertools.chain.from_iterable(articles.violations())

    def expire(self, *, dry_run: bool = False, on_progress: OnProgress | None = None) -> Expired:
        """Delete the nodes that have expired.

        Args:
            dry_run: Only count these nodes, which needs no lease.
            on_progress: Called with the number of nodes in each batch.

        Raises:
            ForestAhead: The forest's time is in the future.
        """
        index = ForestIndex.find(self._client, self.forest_of())
        Clock(index).check(index.status().state)
        if dry_run:
            return expiry.count_expired(index, index.status().aging)
        with ForestWriter(index, terms=LeaseTerms(wait_s=self._wait_s)) as writer:
            return expiry.expire(writer, index.status().aging, on_progress=on_progress or (lambda _: None))

    def repair(self, indices: Sequence[str] = (), *, on_progress: OnProgress | None = None) -> Repaired:
        """Verify the forest; if there are violations that can be repaired, rebuild it without them.

        Times in the future, caused by a clock that was ahead, are replaced by the forest's latest plausible
        time. Missing nodes of articles are restored, with the articles' roots. Then each tree whose root has
        an older neighbour joins that neighbour's tree. Finally, articles get the root of their node. If a
        repair is interrupted, run it again.

        Args:
            indices: The indices of all articles that this forest assigned. If empty, only the forest is
                repaired, and must not be in use meanwhile.
            on_progress: Called with the number of nodes or articles in each batch.

        Returns:
            How many violations of each kind were repaired, as a `collections.Counter`. A kind that repairs
            reveal several times is counted by the largest of these numbers.

        Raises:
            ForestError: As for the class; or violations remain after ten passes.
        """
        found = self.verify(indices, on_progress=on_progress)
        repaired = Repaired(violation.kind for violation in found if violation.can_be_repaired)
        if repaired:
            repaired |= self._rebuild(indices, on_progress, rename=False).run()[1]
        return repaired

    def rebuild(
        self,
        indices: Sequence[str],
        *,
        articles_only: bool = False,
        retention: timedelta | None = None,
        change_retention: bool = False,
        lookup: Lookup | None = None,
        forest_shards: int | None = None,
        rename: bool = False,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Rebuild the forest from its nodes and its articles, and repair it as `repair` does.

        If the forest is lost, it is rebuilt from its articles alone. Then articles whose node would have
        expired are left out. Articles with an invalid record are also left out, and their number is logged.
        With `wait_s`, the forest may be in use until a warning says that the new forest has caught up. If a
        rebuild is interrupted, run it again.

        Args:
            indices: The indices of all articles that this forest assigned.
            articles_only: Whether to leave out the forest's own nodes, and so the nodes of articles that
                were deleted.
            retention: How long nodes live. None means the retention stored in the replaced forest or in the
                indices, or else 30 days.
            change_retention: Whether nodes may live for less time than before.
            lookup: How the owner finds nodes. None means the lookup of the replaced forest, or else `memory`.
            forest_shards: The number of shards, 1 to 1,024; more than one requires the lookup `search`. None
                means the number of the replaced forest, or else 1.
            rename: Whether the given forest may be a new one, although the indices belong to another.
            on_progress: Called with the number of nodes or articles in each batch.

        Returns:
            The number of nodes in the forest.

        Raises:
            RetentionShorter: Nodes would live for less time than before, and `change_retention` is false.
            ForestMismatch: As for the class; or the articles of a lost forest have several profiles, or an
                unknown one.
            IndexNotReady: As for the class; or none of the articles was indexed through esdedup.
        """
        check_type("retention", retention, timedelta | None, taker="Maintenance.rebuild")
        _check_named(indices)
        rebuild = dataclasses.replace(
            self._rebuild(indices, on_progress, rename=rename),
            articles_only=articles_only,
            aging=None if retention is None else Aging.of(retention=retention),
            change_retention=change_retention,
            lookup=lookup,
            shards=forest_shards,
        )
        return rebuild.run()[0]

    def _rebuild(self, indices: Sequence[str], on_progress: OnProgress | None, *, rename: bool) -> Rebuild:
        name = self._scope.given_forest if rename else None
        if name is None or execute(self._client, read_meta(name)):
            name = self.forest_of(indices)
        # Check that the indices can be read before anything is deleted.
        scope = execute(self._client, self._scope.check(",".join(indices))) if indices else None
        return Rebuild(
            client=self._client,
            indices=scope.mappings if scope else {},
            name=name,
            records=self._records(indices) if indices else None,
            wait_s=self._wait_s,
            on_progress=on_progress or (lambda _: None),
        )

    def _stored_texts(self, indices: Sequence[str], **numbers: int) -> StoredTexts:
        for name, number in numbers.items():
            if number < 1:
                raise SettingError(f"{name} is {number}; it must be at least 1")
        _check_named(indices)
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
        _check_named(indices)
        names = ",".join(indices)
        fields = execute(self._client, self._scope.fields_of(names))
        # Make acknowledged writes visible.
        execute(self._client, refresh(names))
        return Records(self._client, indices=indices, fields=fields)

    def _found(self, indices: Sequence[str] = ()) -> ForestIndex:
        index = ForestIndex.find(self._client, self.forest_of(indices))
        index.refresh_if_allowed()
        return index


def _check_named(indices: Sequence[str]) -> None:
    check_index_names(indices)
    if not indices:
        raise SettingError("name the indices of the articles, as a list")

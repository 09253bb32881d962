"""`Maintenance`: expiring, verifying, repairing, rebuilding and measuring a forest."""

import collections
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from elasticsearch import Elasticsearch

from esdedup.boilerplate.pins import NO_PINS, Pins, refuse_useless
from esdedup.elastic.execute import execute
from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.given_client import take_blocking
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name, check_index_names
from esdedup.errors import ArticleRejected, ForestError, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile, profile_labelled
from esdedup.forest.growth import MOST_PLAUSIBLE_LEAVES
from esdedup.forest.model import Aging
from esdedup.maintenance import rebuild
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.belonging import refuse_others_articles
from esdedup.maintenance.explain import IndexExplainer, profile_of
from esdedup.maintenance.forest_audit import AUDIT_BATCH, ForestAudit
from esdedup.maintenance.records import Records
from esdedup.maintenance.repair import WRITE_BATCH, Repair, Repaired
from esdedup.maintenance.site_boilerplate import BoilerplateBySite, boilerplate_by_site
from esdedup.maintenance.stats import Stats, stats
from esdedup.maintenance.stored_texts import LATEST_ARTICLES, StoredTexts
from esdedup.maintenance.times_ahead import TimesAhead
from esdedup.maintenance.verdict import IndexedExplanation
from esdedup.maintenance.violations import Violation, ViolationKind
from esdedup.neighbours.explainer import Explainer
from esdedup.reading.scope import Scope
from esdedup.sites import RawPage

log = logging.getLogger("esdedup")

OnProgress = Callable[[int], None]

ARTICLES_READ = 10_000
"""So many of the latest articles are read for `Maintenance.boilerplate`, since that takes time."""
PASSAGES_SHOWN = 10
"""So many passages of each site."""

# Random damage to a third of all nodes took three at most; the last of them found nothing.
_MOST_PASSES = 10


class Maintenance:
    """Maintains one forest. Methods that change it hold its lease until they return."""

    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str = DEFAULT_FOREST,
        fields: Fields | None = None,
        wait_s: float = 0.0,
        most_plausible_leaves: int = MOST_PLAUSIBLE_LEAVES,
        audit_batch: int = AUDIT_BATCH,
        write_batch: int = WRITE_BATCH,
    ) -> None:
        """Use a forest; nothing is sent yet.

        Args:
            client: Closed by the caller.
            forest: Name of its index.
            fields: The names of the articles' fields; None: those that the indices keep, which must agree.
            wait_s: How long to wait while another process owns the forest.
            most_plausible_leaves: `stats` reports clusters with more live leaves than this.
            audit_batch: The fewest nodes that are verified together.
            write_batch: The most nodes or articles that a repair writes in one request.

        Raises:
            SettingError: The client is asynchronous, the forest's name is invalid, `wait_s` is negative, or
                a number is below 1.
        """
        take_blocking(client, taker="Maintenance")
        check_index_name(forest)
        if not wait_s >= 0:
            raise SettingError(f"wait_s is {wait_s}; it must be at least 0")
        numbers = {
            "most_plausible_leaves": most_plausible_leaves,
            "audit_batch": audit_batch,
            "write_batch": write_batch,
        }
        for name, number in numbers.items():
            if number < 1:
                raise SettingError(f"{name} is {number}; it must be at least 1")
        self._client = client
        self._forest = forest
        self._fields = fields
        self._wait_s = wait_s
        self._most_plausible_leaves = most_plausible_leaves
        self._audit_batch = audit_batch
        self._write_batch = write_batch

    def count(self, indices: Sequence[str] = ()) -> int:
        """Count the nodes and the articles that `verify` checks.

        Raises:
            ForestError: There is no such forest.
            IndexNotReady: An index is missing.
            SettingError: `indices` is a string, or contains an empty name.
        """
        check_index_names(indices)
        index = ForestIndex.find(self._client, self._forest)
        return index.run(index.search.count_nodes()) + (self.count_articles(indices) if indices else 0)

    def count_articles(self, indices: Sequence[str]) -> int:
        """Count the articles that have a root.

        Raises:
            IndexNotReady: An index is missing.
            SettingError: `indices` is a string, or empty, or contains an empty name.
        """
        return self._records(indices).count()

    def explain(
        self,
        index: str,
        one_id: str,
        other_id: str,
        *,
        profile: Profile | None = None,
        pins: Pins = NO_PINS,
    ) -> IndexedExplanation:
        """Explain why two articles are in one cluster or not. Needs no lease.

        Each is compared by the signature with which it was decided, while its text is the same. If the
        forest is missing, the explanation uses the index alone.

        Args:
            index: An index, alias or pattern; if several articles have one id, the last to arrive counts.
            one_id: The id of the first article.
            other_id: The id of the second article; may be the same.
            profile: The profile to compare by. None: the one that the articles were fingerprinted with.
            pins: Those that the forest is fed with, to show what is left out now.

        Raises:
            ArticleNotFound: No article has that id.
            ArticleRejected: An article has no text.
            IndexNotReady: The index is missing, or lacks the fields.
            SettingError: The articles' profile is unknown, or the name of the index or an id is empty; or the
                profile keeps boilerplate, so pins would have no effect.
        """
        texts = StoredTexts(self._client, indices=[index], fields=self._fields)
        one, other = (texts.by_id(article_id) for article_id in (one_id, other_id))
        profile = profile or profile_of((one, other))
        refuse_useless(pins, keep_boilerplate=profile.keep_boilerplate)
        forest, missing, learned, learned_missing = None, None, LearnedCopy(), None
        try:
            forest = ForestIndex.find(self._client, self._forest)
        except ForestError as error:
            missing = learned_missing = str(error)
        else:
            try:
                forest.run(learned.update(self._forest))
            except ForestError as error:
                learned_missing = str(error)
        omit_on = learned.omit_on(pins) if learned_missing is None else None
        explainer = IndexExplainer(texts, forest, Explainer(profile, omit_on=omit_on))
        return explainer.explain(
            one, other, forest=self._forest, forest_missing=missing, learned_missing=learned_missing
        )

    def texts(
        self, indices: Sequence[str], *, latest: int = LATEST_ARTICLES
    ) -> Iterator[RawPage | ArticleRejected]:
        """Yield the stored texts of the latest articles, with their sites, in the order of their arrival.

        Instead of an article that has none, yield the reason.

        `Dedup.learn` learns from them, for example after a forest was rebuilt. Articles that have no root yet
        come first.

        Args:
            indices: Their indices.
            latest: Of how many arrivals in the forest. What was learned from some 160,000 pages ago and not
                seen since is forgotten again.

        Raises:
            IndexNotReady: An index is missing, or lacks the fields.
            SettingError: `indices` is a string, or empty, or contains an empty name; or `latest` is below 1.
        """
        return self._stored_texts(indices, latest).texts(latest)

    def count_texts(self, indices: Sequence[str], *, latest: int = LATEST_ARTICLES) -> int:
        """Count what `texts` yields; parameters and errors as there."""
        return self._stored_texts(indices, latest).count_latest(latest)

    def stats(self, indices: Sequence[str] = ()) -> Stats:
        """Return the statistics of the forest.

        Args:
            indices: The indices of its articles, to show the sentences that many nodes share, and to count
                the articles that are not enriched.

        Raises:
            ForestError: There is no such forest.
            IndexNotReady: An index is missing, or lacks the fields.
            SettingError: `indices` is a string, or contains an empty name.
        """
        check_index_names(indices)
        index = ForestIndex.find(self._client, self._forest)
        texts = StoredTexts(self._client, indices=indices, fields=self._fields) if indices else None
        return stats(
            index,
            self._aging(index),
            texts,
            not_enriched=self._records(indices).count_without() if indices else None,
            most_plausible_leaves=self._most_plausible_leaves,
        )

    def boilerplate(
        self,
        indices: Sequence[str],
        *,
        articles: int = ARTICLES_READ,
        passages: int = PASSAGES_SHOWN,
    ) -> BoilerplateBySite:
        """Return what the forest has learned to be boilerplate, for each site. Needs no lease.

        The forest keeps no text, so the latest articles are read, and the passages of theirs counted that
        are boilerplate by now. What counts as pinned is not considered.

        Args:
            indices: The indices of its articles.
            articles: The most articles to read.
            passages: The most passages to return for a site; further ones are counted.

        Raises:
            ForestError: There is no such forest, or what it has learned cannot be read.
            IndexNotReady: An index is missing, or lacks the fields.
            SettingError: `indices` is a string, or empty, or contains an empty name; or a number is below 1.
        """
        check_index_names(indices)
        if not indices:
            raise SettingError("name the indices of the articles, as a list")
        for name, number in {"articles": articles, "passages": passages}.items():
            if number < 1:
                raise SettingError(f"{name} is {number}; it must be at least 1")
        index, learned = ForestIndex.find(self._client, self._forest), LearnedCopy()
        fields = execute(self._client, Scope(fields=self._fields).ready(",".join(indices))).fields
        index.run(learned.update(self._forest))
        return boilerplate_by_site(
            self._client,
            learned,
            indices=indices,
            fields=fields,
            max_length=(profile_labelled(index.meta.profile) or DEFAULT).max_text_length,
            articles=articles,
            passages=passages,
        )

    def expire(self, *, dry_run: bool = False, on_progress: OnProgress | None = None) -> Expired:
        """Delete the nodes that have expired.

        Args:
            dry_run: Only count them; needs no lease.
            on_progress: Called with the number of nodes in each step.

        Raises:
            ForestError: There is no such forest, or another process owns it, or its time is in the future.
            ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
        """
        index = ForestIndex.find(self._client, self._forest)
        Clock(index).check(index.status().state)
        if dry_run:
            return expiry.count_expired(index, self._aging(index))
        with ForestWriter(index, wait_s=self._wait_s) as writer:
            return expiry.expire(writer, self._aging(index), on_progress=on_progress or _ignore)

    def verify(
        self, indices: Sequence[str] = (), *, on_progress: OnProgress | None = None
    ) -> Iterator[Violation]:
        """Yield every violation of the laws in the forest and its articles.

        Changes nothing and needs no lease; articles may arrive meanwhile.

        Args:
            indices: Indices of articles that this forest assigned. Empty: only the forest is checked.
            on_progress: Called with the number of nodes or articles in each step.

        Raises:
            ForestError: There is no such forest.
            ForestMismatch: Articles belong to another forest.
            ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
            IndexNotReady: An index is missing.
            SettingError: `indices` is a string, or contains an empty name.
        """
        check_index_names(indices)
        index = ForestIndex.find(self._client, self._forest)
        records = self._own_records(index, indices)
        aging, latest_ms = self._aging(index), Clock(index).latest_ms()
        yield from TimesAhead(index, records, latest_ms=latest_ms, aging=aging).violations()
        yield from self._forest_audit(index, aging, on_progress).violations()
        if records is not None:
            articles = ArticleAudit(index, records, aging, on_articles=on_progress or _ignore)
            yield from itertools.chain.from_iterable(articles.violations())

    def repair(self, indices: Sequence[str] = (), *, on_progress: OnProgress | None = None) -> Repaired:
        """Repair every violation that can be repaired; may be interrupted and run again.

        First, times in the future, which a clock that was ahead has left, are set back to the forest's last
        time before them. Next, articles whose node is missing get it back, with the root they have. Then a
        tree whose root has an older neighbour joins that neighbour's tree. Last, articles get the root of
        their node. One repair may uncover another, so all this is repeated until nothing is left to repair.

        Args:
            indices: The indices of all articles that this forest assigned. Empty: only the forest is
                repaired.
            on_progress: Called with the number of nodes or articles in each step.

        Returns:
            How many violations of each kind were repaired, as a `collections.Counter`.

        Raises:
            ForestError: There is no such forest, or another process owns it, or there was something to repair
                still after many passes.
            ForestMismatch: Articles belong to another forest.
            ClockMismatch: The clocks of this machine and of Elasticsearch differ by more than a day.
            SettingError: `indices` is a string, or contains an empty name.
        """
        check_index_names(indices)
        index = ForestIndex.find(self._client, self._forest)
        records, clock = self._own_records(index, indices), Clock(index)
        repaired: Repaired = collections.Counter()
        with ForestWriter(index, wait_s=self._wait_s) as writer:
            for _ in range(_MOST_PASSES):
                found = self._repair_once(writer, records, clock.latest_ms(), on_progress)
                if not found.total():
                    return repaired
                repaired += found
        raise ForestError(
            f"after {_MOST_PASSES} passes, a repair of the forest {self._forest!r} still finds "
            f"{found.total():,} violations: verify it, and repair it again",
            forest=self._forest,
        )

    def rebuild(
        self,
        indices: Sequence[str],
        *,
        replace: bool = False,
        retention: timedelta | None = None,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Rebuild the forest from articles alone; each article keeps its root.

        Articles whose node would have expired are left out, and so are those with an invalid record, which a
        warning counts. The forest cannot be used until the rebuild has ended; after an interruption, another
        run continues it.

        Args:
            indices: The indices of all articles that this forest assigned.
            replace: Delete an existing forest of that name first.
            retention: How long nodes live. None: as in the forest that is replaced, or 30 days.
            on_progress: Called with the number of articles in each step.

        Returns:
            How many nodes the forest has.

        Raises:
            ForestError: There is a forest already and `replace` is false, or another process owns it.
            ForestMismatch: The articles are of several profiles, or of an unknown one, or belong to another
                forest than the one that is replaced.
            IndexNotReady: An index is missing.
            SettingError: `indices` is a string, or empty, or contains an empty name.
        """
        records = self._records(indices)
        aging = None if retention is None else Aging.of(retention=retention)
        begun = rebuild.begin(
            self._client, self._forest, records, aging=aging, replace=replace, wait_s=self._wait_s
        )
        with begun as writer:
            invalid: list[str] = []
            articles = ArticleAudit(
                writer.index,
                records,
                self._aging(writer.index),
                on_articles=on_progress or _ignore,
                on_invalid=lambda record: invalid.append(record.id),
            )
            nodes = rebuild.rebuild(writer, articles)
        if invalid:
            log.warning(
                "the rebuilt forest %r is without %s articles with invalid records, such as %r: a "
                "verification with their indices names each",
                self._forest,
                f"{len(invalid):,}",
                invalid[0],
            )
        return nodes

    def _repair_once(
        self, writer: ForestWriter, records: Records | None, latest_ms: int, on_progress: OnProgress | None
    ) -> Repaired:
        index, aging = writer.index, self._aging(writer.index)
        repair = Repair(writer, write_batch=self._write_batch)
        repaired = repair.set_times_back(TimesAhead(index, records, latest_ms=latest_ms, aging=aging))
        forest = self._forest_audit(index, aging, on_progress)
        if records is None:
            return repaired + repair.repair_forest(forest)
        articles = ArticleAudit(index, records, aging, on_articles=on_progress or _ignore)
        repaired += repair.adopt(articles)
        repaired += repair.repair_forest(forest)
        if repaired[ViolationKind.NODE_GONE]:
            # A lost node may have been older than its remaining articles: the order is unreliable.
            writer.write_ordered_since(index.status().state.seq)
        return repaired + repair.assign_roots(records.writer, articles)

    def _forest_audit(self, index: ForestIndex, aging: Aging, on_progress: OnProgress | None) -> ForestAudit:
        return ForestAudit(index, aging, on_nodes=on_progress or _ignore, audit_batch=self._audit_batch)

    def _stored_texts(self, indices: Sequence[str], latest: int) -> StoredTexts:
        if latest < 1:
            raise SettingError(f"latest is {latest}; it must be at least 1")
        if not indices:
            raise SettingError("name the indices of the articles, as a list")
        return StoredTexts(self._client, indices=indices, fields=self._fields)

    def _own_records(self, index: ForestIndex, indices: Sequence[str]) -> Records | None:
        """Return the records of a forest's own articles; None if no indices are given."""
        if not indices:
            return None
        records = self._records(indices)
        refuse_others_articles(index, records)
        return records

    def _records(self, indices: Sequence[str]) -> Records:
        check_index_names(indices)
        if not indices:
            raise SettingError("name the indices of the articles, as a list")
        fields = execute(self._client, Scope(fields=self._fields).fields_of(",".join(indices)))
        return Records(self._client, indices=indices, fields=fields)

    def _aging(self, index: ForestIndex) -> Aging:
        return index.status().aging


def _ignore(_count: int) -> None:
    """Report no progress."""

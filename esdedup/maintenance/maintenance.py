"""`Maintenance`: what an operator does with a forest, as opposed to what feeds and reads it."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from elasticsearch import Elasticsearch

from esdedup.elastic.forest import expiry
from esdedup.elastic.forest.expiry import Expired
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import ForestError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import Profile
from esdedup.forest.model import Aging
from esdedup.maintenance import rebuild, repair
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.explain import IndexExplainer, profile_of
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.records import Records
from esdedup.maintenance.repair import Repaired
from esdedup.maintenance.stats import Stats, stats
from esdedup.maintenance.stored_texts import StoredTexts
from esdedup.maintenance.verdict import IndexedExplanation
from esdedup.maintenance.violations import Violation, ViolationKind
from esdedup.neighbours.explainer import Explainer

OnProgress = Callable[[int], None]


class Maintenance:
    """Looks after one forest. What changes it takes its lease for as long as it needs."""

    def __init__(
        self,
        client: Elasticsearch,
        *,
        forest: str = DEFAULT_FOREST,
        fields: Fields = Fields(),  # noqa: B008 - frozen
        wait_s: float = 0.0,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            client: Stays the caller's.
            forest: Name of its index.
            fields: The names of the articles' fields.
            wait_s: How long to wait for a process that owns the forest.
        """
        self._client = client
        self._forest = forest
        self._fields = fields
        self._wait_s = wait_s

    def count(self, indices: Sequence[str] = ()) -> int:
        """Count the nodes and the articles that `verify` goes through.

        Raises:
            ForestError: There is no such forest.
            IndexNotReady: An index is missing.
        """
        index = ForestIndex.find(self._client, self._forest)
        return index.run(index.search.count_nodes()) + (self.count_articles(indices) if indices else 0)

    def count_articles(self, indices: Sequence[str]) -> int:
        """Count the articles that have a root.

        Raises:
            IndexNotReady: An index is missing.
        """
        return self._labels(indices).count()

    def explain(
        self, index: str, one_id: str, other_id: str, *, profile: Profile | None = None
    ) -> IndexedExplanation:
        """Tell why two articles are in one cluster or not. Needs no lease.

        Where there is no such forest, it tells of the index only.

        Args:
            index: An index, alias or pattern; of several articles of one id the last to arrive counts.
            one_id: An article's.
            other_id: Another one's, or the same.
            profile: To compare with; None: the one that the articles were fingerprinted with.

        Raises:
            ArticleNotFound: No article has that id.
            ArticleRejected: An article has no text.
            IndexNotReady: The index is missing, or lacks the fields.
            SettingError: The articles' profile is not known.
        """
        texts = StoredTexts(self._client, indices=[index], fields=self._fields)
        one, other = (texts.by_id(article_id) for article_id in (one_id, other_id))
        forest, missing = None, None
        try:
            forest = ForestIndex.find(self._client, self._forest)
        except ForestError as error:
            missing = str(error)
        explainer = IndexExplainer(texts, forest, Explainer(profile or profile_of((one, other))))
        return explainer.explain(one, other, forest=self._forest, forest_missing=missing)

    def stats(self, indices: Sequence[str] = ()) -> Stats:
        """Return the forest in figures.

        Args:
            indices: Of its articles, from which sentences are read that very many nodes share.

        Raises:
            ForestError: There is no such forest.
            IndexNotReady: An index is missing, or lacks the fields.
        """
        index = ForestIndex.find(self._client, self._forest)
        texts = StoredTexts(self._client, indices=indices, fields=self._fields) if indices else None
        return stats(index, self._aging(index), texts)

    def expire(self, *, dry_run: bool = False, on_progress: OnProgress = lambda _: None) -> Expired:
        """Delete the nodes that have expired: they take no part in anything any more.

        Args:
            dry_run: Only count them; needs no lease.
            on_progress: Told how many nodes more have been looked at.

        Raises:
            ForestError: There is no such forest, or another process owns it.
        """
        index = ForestIndex.find(self._client, self._forest)
        if dry_run:
            return expiry.count_expired(index, self._aging(index))
        with ForestWriter(index, wait_s=self._wait_s) as owned:
            return expiry.expire(owned, self._aging(index), on_deleted=on_progress)

    def verify(
        self, indices: Sequence[str] = (), *, on_progress: OnProgress = lambda _: None
    ) -> Iterator[Violation]:
        """Yield every violation of the laws that can be seen afterwards, in the forest and in articles.

        Changes nothing, and needs no lease: articles may arrive meanwhile.

        Args:
            indices: Of articles that were assigned by this forest.
            on_progress: Told how many nodes and articles more have been looked at.

        Raises:
            ForestError: There is no such forest.
            IndexNotReady: An index is missing.
        """
        index = ForestIndex.find(self._client, self._forest)
        aging = self._aging(index)
        yield from ForestAudit(index, aging, on_nodes=on_progress).violations()
        if indices:
            articles = ArticleAudit(index, self._labels(indices), aging, on_articles=on_progress)
            yield from itertools.chain.from_iterable(articles.violations())

    def repair(self, indices: Sequence[str] = (), *, on_progress: OnProgress = lambda _: None) -> Repaired:
        """Mend what `verify` finds and can be repaired; may be interrupted, and run again.

        Articles without their node get it back with the root they have; trees of which one should not
        have been made become one; then articles get the root of their text's node.

        Args:
            indices: Of all articles that were assigned by this forest.
            on_progress: Told how many nodes and articles more have been looked at.

        Returns:
            How many violations of each kind were repaired.

        Raises:
            ForestError: There is no such forest, or another process owns it.
        """
        index = ForestIndex.find(self._client, self._forest)
        aging = self._aging(index)
        with ForestWriter(index, wait_s=self._wait_s) as owned:
            forest = ForestAudit(index, aging, on_nodes=on_progress)
            if not indices:
                return repair.repair_forest(owned, forest)
            labels = self._labels(indices)
            articles = ArticleAudit(index, labels, aging, on_articles=on_progress)
            repaired = repair.adopt(owned, articles)
            repaired += repair.repair_forest(owned, forest)
            if repaired[ViolationKind.NODE_GONE]:
                # What was lost may have been made earlier than what is left of it tells.
                owned.write_ordered_since(index.status().state.seq)
            return repaired + repair.relabel(owned, labels, articles)

    def rebuild(
        self,
        indices: Sequence[str],
        *,
        replace: bool = False,
        retention: timedelta | None = None,
        on_progress: OnProgress = lambda _: None,
    ) -> int:
        """Make the forest anew from articles alone: each keeps its root, and is found again by it.

        Nothing is decided anew. Articles whose node would have expired are left out. Until it has
        ended nobody else can use the forest; interrupted, it goes on when it is run again.

        Args:
            indices: Of all articles that were assigned by this forest.
            replace: Delete the forest first, if there is one.
            retention: How long nodes live; None: as long as in the forest that is replaced, else 30 days.
            on_progress: Told how many articles more have been looked at.

        Returns:
            How many nodes the forest has.

        Raises:
            ForestError: There is a forest already, and it is not to be replaced; or another process
                owns it.
            ForestMismatch: The articles are of several profiles, or of an unknown one.
            IndexNotReady: An index is missing.
        """
        labels = self._labels(indices)
        aging = None if retention is None else Aging.of(retention=retention)
        begun = rebuild.begin(
            self._client, self._forest, labels, aging=aging, replace=replace, wait_s=self._wait_s
        )
        with begun as owned:
            articles = ArticleAudit(owned.index, labels, self._aging(owned.index), on_articles=on_progress)
            return rebuild.rebuild(owned, articles)

    def _labels(self, indices: Sequence[str]) -> Records:
        return Records(self._client, indices=indices, fields=self._fields)

    def _aging(self, index: ForestIndex) -> Aging:
        return index.status().aging

"""Rebuilds a forest from its nodes and its articles, and repairs it thereby."""

import collections
import contextlib
import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from elasticsearch import Elasticsearch

from esdedup.elastic.execute import execute
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import refuse_shorter
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import LearnedLog, documents_of, read_learned
from esdedup.elastic.forest.lease import Lease, LeaseTerms
from esdedup.elastic.forest.meta import REBUILT_SUFFIX, Lookup, Meta, read_meta
from esdedup.elastic.forest.status import aging_document, ordered_since_document, read_ordered_since
from esdedup.elastic.forest.stored import EDITS_SUFFIX, Stored
from esdedup.elastic.forest.writer import ForestWriter, nobody_feeding
from esdedup.elastic.meta import forest_of, next_object, saved_retention_ms
from esdedup.elastic.requests import chunks
from esdedup.elastic.stories import edit_document, read_edits
from esdedup.errors import ForestBusy, ForestDamaged, ForestError, ForestMismatch, IndexNotReady, SettingError
from esdedup.fingerprint.profile import DEFAULT, get_profile
from esdedup.forest.model import NO_TIME, Aging
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.records import Records
from esdedup.maintenance.times_ahead import TimesAhead
from esdedup.maintenance.violations import Remedy, RepairableViolation, ViolationKind
from esdedup.times import DAY_MS

log = logging.getLogger("esdedup")

Repaired = collections.Counter[ViolationKind]
"""How many violations of each kind have been repaired."""

# Maximum number of nodes or articles in one request.
WRITE_BATCH = 2_000

# In tests, random damage to a third of all nodes took at most three passes, the last of which only checked.
_MAX_PASSES = 10
# With at most this many new articles, which take a second or two, a rebuild has caught up.
_FEW = 5_000
# An article is in its index at the latest when this many further articles have got a `seq`.
_LATE = 100_000
# The same for the last pass, which feeders wait for. It follows another pass by seconds.
_LATE_AT_LAST = 20_000
# While waiting for the owner to stop, a rebuild catches up again after each of these times.
_TURN_S = 5.0


def _write(writer: ForestWriter, stored: Iterable[Stored]) -> None:
    pack = writer.index.relation.core.pack
    for chunk in chunks(list(stored), WRITE_BATCH):
        writer.write([pack(each) for each in chunk])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Repair:
    """Repairs violations in the forest that `writer` owns, and in its articles."""

    writer: ForestWriter
    forest: ForestAudit
    # None repairs only the forest.
    articles: ArticleAudit | None = None

    def run(self, *, until_seq: int) -> Repaired:
        """Repair all violations, except those of articles that arrived after `until_seq`.

        A repair may reveal another violation, so the steps are repeated until nothing is found.
        """
        # Restore the nodes with the roots that their articles have, before articles get other roots.
        repaired = found = self.run_articles(until_seq=until_seq, change_articles=False)
        for _ in range(_MAX_PASSES):
            before, found = found, self._run_forest()
            if before or found:
                found += self.run_articles(until_seq=until_seq)
            if not found:
                return repaired
            repaired |= found
        raise ForestError(
            f"after {_MAX_PASSES} passes, a repair of the forest still finds {found.total():,} violations: "
            "verify it, and repair it again",
            forest=self.writer.index.name,
        )

    def run_articles(
        self, *, since_seq: int = 0, until_seq: int | None = None, change_articles: bool = True
    ) -> Repaired:
        """Restore nodes and content hashes of articles, and give articles the values of their nodes."""
        repaired: Repaired = collections.Counter()
        if self.articles is None:
            return repaired
        records = self.articles.records
        for batch in self.articles.repairable(since_seq=since_seq, until_seq=until_seq):
            is_marked, remedies = ViolationKind.NODE_GONE in repaired, [each.remedy for each in batch]
            repaired.update(violation.kind for violation in batch)
            if ViolationKind.NODE_GONE in repaired and not is_marked:
                # Mark the order as unreliable first: a lost node may have been older than its articles.
                self.writer.write_own(ordered_since_document(self.writer.index.status().state.seq))
            _write(self.writer, _latest(remedies))
            if change_articles:
                for changes in chunks([each.change for each in remedies if each.change], WRITE_BATCH):
                    self.writer.lease.renew()
                    records.update(changes)
        records.refresh()
        return repaired

    def _run_forest(self) -> Repaired:
        """Repair violations of nodes. A tree whose root has an older neighbour joins the neighbour's tree."""
        found = [each for each in self.forest.violations() if isinstance(each, RepairableViolation)]
        self.writer.delete(hit for each in found if (hit := each.remedy.damaged))
        _write(self.writer, _latest(each.remedy for each in found))
        self.writer.index.refresh()
        joins = {each.subject: root for each in found if (root := each.remedy.joins)}
        for later in joins:
            target = _last_target(joins, later)
            if target != later:
                self._join(later, target)
                # The next tree may join the same target.
                self.writer.index.refresh()
        return collections.Counter(each.kind for each in found)

    def _join(self, later: str, target: str) -> None:
        """Move a tree under another root. Its own root moves last: until then, audits still find the tree."""
        index = self.writer.index
        found = index.run(index.nodes.by_id([target]))
        root = next((node for node in found if node.is_root), None)
        if root is None:
            # The target is missing too. The next audit restores it, and the trees join in a later pass.
            return
        tree = index.run(index.nodes.tree(later))
        moved = [node._replace(root=target, part_of="", has_part="") for node in tree]
        seen_ms = max([root.seen_ms, *(node.seen_ms for node in moved)])
        # A root must never expire before its leaves, so write its `seen` first.
        _write(self.writer, [root._replace(seen_ms=seen_ms)])
        _write(self.writer, (node for node in moved if node.id != later))
        _write(self.writer, (node for node in moved if node.id == later))


def _latest(remedies: Iterable[Remedy]) -> Iterable[Stored]:
    return {each.document_id: each for remedy in remedies for each in remedy.stored}.values()


def _last_target(joins: dict[str, str], later: str) -> str:
    # Each join leads to an earlier root, except that in damaged forests joins may form a cycle.
    target, passed = joins[later], {later}
    while target in joins and target not in passed:
        passed.add(target)
        target = joins[target]
    return target


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rebuild:
    """Makes a forest again from its nodes and its articles, in another index that then replaces it."""

    client: Elasticsearch
    # The mappings of the indices of articles, by name.
    indices: dict[str, dict[str, Any]]
    name: str
    # None uses only the forest's nodes.
    records: Records | None
    wait_s: float
    on_progress: Callable[[int], None]
    # Whether to leave out the forest's nodes.
    articles_only: bool = False
    # None means the aging of the replaced forest, or else that of the articles' indices, or else the default.
    aging: Aging | None = None
    change_retention: bool = False
    lookup: Lookup | None = None
    shards: int | None = None

    def run(self) -> tuple[int, Repaired]:
        """Rebuild the forest; return its number of nodes, and how many violations of each kind were repaired.

        Errors: see `Maintenance.rebuild`.
        """
        names = (self.name, f"{self.name}{REBUILT_SUFFIX}")
        before, begun = (execute(self.client, read_meta(each)) for each in names)
        meta = self._meta(before or begun)
        replaced = ForestIndex(self.client, name=self.name, meta=before) if before else None
        if replaced:
            self._refuse_to_replace(replaced, meta)
        # If the forest was deleted, only the index of an interrupted rebuild has all its data.
        writer = self._begin(meta, is_new=bool(replaced and begun))
        index = writer.index
        with writer.released_on_error(), contextlib.ExitStack() as held:
            lease: Lease | None = None
            if self.records is None:
                # Without articles, nothing would show which nodes were added meanwhile.
                lease = held.enter_context(nobody_feeding(self.client, self.name, wait_s=self.wait_s))
            aging = self._write_status(writer, replaced)
            source = None if self.articles_only else replaced
            if source:
                self._copy(source, writer)
            repair = self._repair(writer, aging, replaced, is_rebuild=source is None)
            seq = self._last_seq()
            repaired = repair.run(until_seq=seq)
            seq = self._catch_up(repair, seq)
            if self.records and replaced and self.wait_s:
                log.warning("%r is rebuilt; waiting up to %g s for its owner to stop", self.name, self.wait_s)
            if self.records:
                lease, seq = self._own(held, repair, seq)
            self._write_status(writer, replaced)
            repair.run_articles(since_seq=seq - _LATE_AT_LAST)
            self._write_learned_and_edits(writer, replaced)
            writer.close()
            nodes = index.run(index.nodes.count_nodes())
            if replaced:
                replaced.drop(lease)
            # The epochs of later owners must be higher than those of earlier owners.
            index.copy_to(self.name, [f"{self.name}{EDITS_SUFFIX}", *([lease.alias] if lease else [])])
        index.drop()
        invalid = repair.articles.invalid if repair.articles else set()
        if invalid and not source:
            log.warning(
                "the rebuilt forest %r lacks %s articles with invalid records, such as %r: to list them, "
                "verify it with their indices",
                self.name,
                f"{len(invalid):,}",
                min(invalid)[1],
            )
        return nodes, repaired

    def _refuse_to_replace(self, index: ForestIndex, meta: Meta) -> None:
        """Raise if the old forest must not be replaced by one with this metadata."""
        if self.records and index.meta.profile == meta.profile:
            # A forest that was lost and created again may have few of its articles' nodes.
            self.records.refuse_others_articles(index, max_known=0.0)
        if self.aging and not self.change_retention:
            refuse_shorter(index, self.aging)
        if not self.wait_s:
            # Raise `ForestBusy` now instead of after the articles have been read.
            ForestWriter(index).close()

    def _begin(self, meta: Meta, *, is_new: bool) -> ForestWriter:
        """Own the index in which the forest is made before it gets its name; `is_new` empties it first."""
        index = ForestIndex.make(self.client, f"{self.name}{REBUILT_SUFFIX}", meta=meta)
        index.block_writes(None)
        writer = ForestWriter(index, terms=LeaseTerms(wait_s=self.wait_s))
        if is_new:
            index.drop(writer.lease)
            return self._begin(meta, is_new=False)
        return writer

    def _copy(self, source: ForestIndex, writer: ForestWriter) -> None:
        """Copy all readable nodes and content hashes; times in the future are set back."""
        index = writer.index
        index.refresh()
        status, latest_ms = index.status(), Clock(index).latest_ms()
        ahead = TimesAhead(index, None, latest_ms=latest_ms, aging=status.aging)
        if ordered_since := source.run(read_ordered_since(source.name)):
            writer.write_own(ordered_since_document(ordered_since))
        if source.log is not None:
            source.run(source.log.update())
        nodes = source.nodes.all()
        while some := list(itertools.islice(nodes, WRITE_BATCH)):
            _write(writer, [ahead.set_back(each, status.state) for each in some])

    def _repair(
        self, writer: ForestWriter, aging: Aging, replaced: ForestIndex | None, *, is_rebuild: bool
    ) -> Repair:
        forest = ForestAudit(writer.index, aging, on_nodes=self.on_progress)
        if self.records is None:
            return Repair(writer=writer, forest=forest)
        articles = ArticleAudit(
            writer.index,
            self.records,
            aging,
            on_articles=self.on_progress,
            is_rebuild=is_rebuild,
            edited=self._edited(writer.index, replaced),
        )
        return Repair(writer=writer, forest=forest, articles=articles)

    def _own(self, held: contextlib.ExitStack, repair: Repair, seq: int) -> tuple[Lease | None, int]:
        """Take the lease of the forest, if it exists; while its owner still feeds it, catch up again."""
        end_s = time.monotonic() + self.wait_s
        while True:
            wait_s = min(_TURN_S, max(0.0, end_s - time.monotonic()))
            try:
                return held.enter_context(nobody_feeding(self.client, self.name, wait_s=wait_s)), seq
            except ForestBusy:
                if wait_s < _TURN_S:
                    raise
            seq = self._catch_up(repair, seq)

    def _catch_up(self, repair: Repair, seq: int) -> int:
        """Read the articles that arrived after `seq`, until few are left; return the last one read."""
        while (last := self._last_seq()) - seq > _FEW:
            repair.run_articles(since_seq=seq - _LATE)
            seq = last
        return seq

    def _last_seq(self) -> int:
        """Return the latest `seq` of an article that searches can see; 0 without articles."""
        if self.records is None:
            return 0
        self.records.refresh()
        return self.records.state().seq

    def _write_status(self, writer: ForestWriter, replaced: ForestIndex | None) -> Aging:
        """Write the state and the retention; return the retention."""
        index = writer.index
        latest_ms, own = Clock(index).latest_ms(), index.status()
        if replaced:
            replaced.refresh()
        before = replaced.status(latest_ms=latest_ms) if replaced else own
        # How long nodes lived before, if that is known.
        lived = before.aging if replaced else own.stored_aging
        if recorded_ms := saved_retention_ms(self.indices):
            lived = lived or dataclasses.replace(own.aging, retention_ms=recorded_ms)
        aging = self.aging or own.stored_aging or lived or own.aging
        if lived and lived.retention_ms != aging.retention_ms and not own.stored_aging:
            days = lived.retention_ms / DAY_MS
            log.warning("the retention of %r changes: nodes lived %g days", self.name, days)
        ahead = TimesAhead(index, self.records, latest_ms=latest_ms, aging=aging)
        # Sequence numbers are never reused, not even those of deleted articles.
        state = ahead.true_state().after(before.state)
        # Longer retention must not revive expired nodes.
        expired_ms = state.live_since_ms(lived) if lived else NO_TIME
        dead_before_ms = max(before.dead_before_ms, own.dead_before_ms, expired_ms)
        writer.write_own(aging_document(aging, dead_before_ms=dead_before_ms))
        ahead.set_articles_back(writer, state)
        writer.write([], state=state)
        return aging

    def _edited(self, index: ForestIndex, replaced: ForestIndex | None) -> str:
        """Return the name of the forest whose edits the rebuilt forest, made in `index`, gets."""
        if replaced or not self.indices:
            return self.name
        # An interrupted rebuild may have copied the edits already.
        if execute(self.client, read_edits(index.name)).edits:
            return index.name
        # A forest that is rebuilt under another name keeps its edits, unless it is the target of a migration.
        following = {each.forest for each in map(next_object, self.indices.values()) if each}
        return self.name if self.name in following else forest_of(self.indices, given=None, usual=self.name)

    def _write_learned_and_edits(self, writer: ForestWriter, replaced: ForestIndex | None) -> None:
        source, is_lost = replaced or writer.index, not replaced
        try:
            learned = source.run(read_learned(source.name))
            LearnedLog(source.name, learned)
        except ForestDamaged as error:
            log.warning("the rebuilt forest starts learning from scratch: %s", error)
            learned, is_lost = [], True
        documents = [documents_of(each.changes, log=each.log, first=each.first) for each in learned]
        edits = execute(self.client, read_edits(self._edited(writer.index, replaced))).edits
        writer.write([], learned=[*itertools.chain(*documents), *map(edit_document, edits)])
        if is_lost and not learned:
            log.warning(
                "the rebuilt forest %r has learned no boilerplate: let it learn from its stored "
                "articles; otherwise the first pages that arrive are compared including boilerplate",
                self.name,
            )

    def _meta(self, before: Meta | None) -> Meta:
        # A log has one shard, and several shards are searched.
        usual = before.shards if before and self.lookup != "memory" else 1
        shards = usual if self.shards is None else self.shards
        lookup = self.lookup or (before.lookup if before and shards == 1 else None)
        made = Meta.of(DEFAULT, lookup=lookup, shards=shards)
        rules = before if before and not self.articles_only else self._meta_of_articles()
        return dataclasses.replace(
            made, profile=rules.profile, max_distance_bits=rules.max_distance_bits, agreement=rules.agreement
        )

    def _meta_of_articles(self) -> Meta:
        found = self.records.profiles() if self.records else []
        if not found:
            raise IndexNotReady(
                "none of the articles was indexed through esdedup, so there is nothing to rebuild a forest "
                "from: index them through esdedup, which creates their forest"
            )
        if len(found) != 1:
            raise ForestMismatch(
                f"the articles were fingerprinted with {' and '.join(found)}: name indices of one profile",
                forest=self.name,
            )
        (label,) = found
        try:
            standard = get_profile(label.split("-")[0])
        except SettingError as error:
            raise ForestMismatch(
                f"the articles were fingerprinted with {label!r}: {error}", forest=self.name, found=label
            ) from error
        # Use the standard profile of that name or, if the label is its, the variant that keeps boilerplate.
        whole = standard.with_changes(keep_boilerplate=True)
        profile = whole if whole.label == label else standard
        return dataclasses.replace(Meta.of(profile), profile=label)

"""Repairs a forest, or rebuilds it from its articles, in steps that can be interrupted and repeated."""

import collections
import dataclasses
import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

from elasticsearch import Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import refuse_shorter
from esdedup.elastic.forest.fence import Fence
from esdedup.elastic.forest.index import ForestIndex, refuse_templates
from esdedup.elastic.forest.learned import FIELD, LearnedLog, LearnedRecord, documents_of, read_learned
from esdedup.elastic.forest.lease import LeaseTerms
from esdedup.elastic.forest.meta import Lookup, Meta, read_meta
from esdedup.elastic.forest.status import ForestStatus, aging_document, ordered_since_document
from esdedup.elastic.forest.stored import Stored
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.meta import forest_of, next_object, saved_forest, saved_retention_ms
from esdedup.elastic.requests import Query, chunks
from esdedup.elastic.stories import edit_document, read_edits
from esdedup.errors import ForestDamaged, ForestExists, ForestMismatch, IndexNotReady, SettingError
from esdedup.fingerprint.profile import get_profile
from esdedup.forest.model import Aging
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.records import Change, Records
from esdedup.maintenance.times_ahead import TimesAhead
from esdedup.maintenance.violations import RepairableViolation, ViolationKind
from esdedup.times import DAY_MS

log = logging.getLogger("esdedup")

Repaired = collections.Counter[ViolationKind]
"""How many violations of each kind have been repaired."""

# Maximum number of nodes or articles in one request.
WRITE_BATCH = 2_000


def adopt(writer: ForestWriter, audit: ArticleAudit) -> Repaired:
    """Restore the nodes and content hashes of articles; the articles keep their roots."""
    repaired: Repaired = collections.Counter()
    is_marked = False
    for batch in audit.repairable():
        stored: dict[str, Stored] = {}
        for violation in batch:
            remedy = violation.remedy
            stored |= {each.document_id: each for each in remedy.stored}
            if remedy.state:
                writer.write([], state=remedy.state)
            repaired[violation.kind] += bool(remedy.stored or remedy.state)
        if ViolationKind.NODE_GONE in repaired and not is_marked:
            # Mark the order before the first node is restored, in case the repair is interrupted.
            is_marked = True
            _mark_order(writer)
        _write(writer, stored.values())
    return repaired


def _mark_order(writer: ForestWriter) -> None:
    """Mark the order of nodes as unreliable: a lost node may have been older than its remaining articles."""
    writer.write_own(ordered_since_document(writer.index.status().state.seq))


def _write(writer: ForestWriter, stored: Iterable[Stored]) -> None:
    pack = writer.index.relation.core.pack
    for chunk in chunks(list(stored), WRITE_BATCH):
        writer.write([pack(each) for each in chunk])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Repair:
    """Repairs violations in the forest that `writer` owns, and in its articles."""

    writer: ForestWriter
    records: Records | None
    on_progress: Callable[[int], None]

    def run_once(self, latest_ms: int) -> Repaired:
        """Make one pass, and return the number of repairs of each kind. `latest_ms`: as for `TimesAhead`."""
        index, records = self.writer.index, self.records
        aging = index.status().aging
        ahead = TimesAhead(index, records, latest_ms=latest_ms, aging=aging)
        count = ahead.set_back(self.writer, write=self._write)
        repaired: Repaired = collections.Counter({ViolationKind.TIME_AHEAD: count})
        forest = ForestAudit(index, aging, on_nodes=self.on_progress)
        if records is None:
            return repaired + self._repair_forest(forest)
        articles = ArticleAudit(index, records, aging, on_articles=self.on_progress)
        repaired += adopt(self.writer, articles)
        if repaired[ViolationKind.NODE_GONE]:
            _mark_order(self.writer)
        repaired += self._repair_forest(forest)
        return repaired + self._assign_roots(records, articles)

    def _repair_forest(self, audit: ForestAudit) -> Repaired:
        """Repair violations of nodes. A tree whose root has an older neighbour joins the neighbour's tree."""
        repaired: Repaired = collections.Counter()
        stored: dict[str, Stored] = {}
        joins: dict[str, str] = {}
        damaged: list[dict[str, Any]] = []
        for violation in audit.violations():
            if not isinstance(violation, RepairableViolation):
                continue
            repaired[violation.kind] += 1
            stored |= {each.document_id: each for each in violation.remedy.stored}
            if violation.remedy.joins:
                joins[violation.subject] = violation.remedy.joins
            if violation.remedy.damaged:
                damaged.append(violation.remedy.damaged)
            if violation.remedy.forgotten:
                self._forget(violation.remedy.forgotten)
        self.writer.delete(damaged)
        self._write(stored.values())
        self.writer.index.refresh()
        for later in joins:
            target = _last_target(joins, later)
            if target != later:
                self._join(later, target)
                # The next tree may join the same target.
                self.writer.index.refresh()
        return repaired

    def _assign_roots(self, records: Records, audit: ArticleAudit) -> Repaired:
        repaired: Repaired = collections.Counter()
        for batch in audit.repairable():
            new_roots = [violation.remedy.new_root for violation in batch if violation.remedy.new_root]
            for chunk in chunks(new_roots, WRITE_BATCH):
                self.writer.lease.renew()
                repaired[ViolationKind.TWO_ROOTS] += records.assign_roots(chunk)
            changes: dict[ViolationKind, list[Change]] = {}
            for violation in batch:
                if violation.remedy.change:
                    changes.setdefault(violation.kind, []).append(violation.remedy.change)
            for kind, of_kind in changes.items():
                for some in chunks(of_kind, WRITE_BATCH):
                    self.writer.lease.renew()
                    repaired[kind] += records.update(some)
        records.refresh()
        return repaired

    def _forget(self, documents: Query) -> None:
        # Delete `~learned` last, so that an audit still reports damage if this is interrupted.
        for hits in self.writer.index.hit_pages(documents, sort=[FIELD], versions=True):
            self.writer.delete(hits)

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
        self._write([root._replace(seen_ms=seen_ms)])
        self._write(node for node in moved if node.id != later)
        self._write(node for node in moved if node.id == later)

    def _write(self, stored: Iterable[Stored]) -> None:
        _write(self.writer, stored)


def _last_target(joins: dict[str, str], later: str) -> str:
    # Each join leads to an earlier root, except that in damaged forests joins may form a cycle.
    target, passed = joins[later], {later}
    while target in joins and target not in passed:
        passed.add(target)
        target = joins[target]
    return target


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rebuild:
    """Rebuilds a forest from its articles, which keep their roots."""

    client: Elasticsearch
    # The mappings of the indices of articles, by name.
    indices: dict[str, dict[str, Any]]
    name: str
    records: Records
    # None means the aging of the replaced forest, or else that of the articles' indices, or else the default.
    aging: Aging | None
    change_retention: bool
    lookup: Lookup | None
    shards: int | None
    replace: bool | Literal["larger"]
    wait_s: float
    on_progress: Callable[[int], None]

    def run(self) -> int:
        """Rebuild the forest; return its number of nodes. Errors: see `Maintenance.rebuild`."""
        invalid: list[str] = []
        with self._emptied() as writer:
            audit = ArticleAudit(
                writer.index,
                self.records,
                writer.index.status().aging,
                on_articles=self.on_progress,
                on_invalid=lambda record: invalid.append(record.id),
            )
            adopt(writer, audit)
            writer.index.refresh()
            if not writer.index.run(read_learned(self.name)):
                log.warning(
                    "the rebuilt forest %r has learned no boilerplate: let it learn from its stored "
                    "articles; otherwise the first pages that arrive are compared including boilerplate",
                    self.name,
                )
            writer.lease.renew()
            writer.index.write_meta(dataclasses.replace(writer.index.meta, rebuilding=False))
            Fence(self.client, forest=self.name).let_edit("add")
            nodes = writer.index.run(writer.index.nodes.count_nodes())
        self._kept(writer.index.meta).drop()
        if invalid:
            log.warning(
                "the rebuilt forest %r lacks %s articles with invalid records, such as %r: to list them, "
                "verify it with their indices",
                self.name,
                f"{len(invalid):,}",
                invalid[0],
            )
        return nodes

    def _emptied(self) -> ForestWriter:
        """Create an empty forest, marked as unusable, or find the forest that an interrupted rebuild left."""
        # A forest that is rebuilt under another name keeps its edits, unless it is the target of a migration.
        following = {each.forest for each in map(next_object, self.indices.values()) if each}
        edited = self.name if self.name in following else forest_of(self.indices, given=None, usual=self.name)
        meta, edits = self._meta(), execute(self.client, read_edits(edited)).edits
        index, kept = ForestIndex.make(self.client, self.name, meta=meta), self._kept(meta)
        latest_ms = Clock(index).latest_ms()
        if index.meta != meta:
            if not self.replace:
                raise ForestExists(
                    f"there is a forest {self.name!r} already: replace it, or name another forest",
                    forest=self.name,
                )
            if index.meta.profile == meta.profile and not index.meta.rebuilding:
                # A forest that was lost and created again may have few of its articles' nodes.
                self.records.refuse_others_articles(index, max_known=0.0)
            refuse_templates(self.client, self.name)
            if not index.meta.rebuilding:
                if self.aging and not self.change_retention:
                    refuse_shorter(index, self.aging)
                self._refuse_larger(index)
            # Take the old forest's lease first. Otherwise its owner could write to the new forest.
            replaced = ForestWriter(index, terms=LeaseTerms(wait_s=self.wait_s))
            with replaced.released_on_error():
                if not index.meta.rebuilding:
                    self._keep(index, kept, latest_ms=latest_ms)
            replaced.drop()
            index = ForestIndex.make(self.client, self.name, meta=meta)
        writer = ForestWriter(index, terms=LeaseTerms(wait_s=self.wait_s))
        with writer.released_on_error():
            status = index.status()
            is_kept = execute(self.client, read_meta(kept.name)) is not None
            before = kept.status() if is_kept else status
            if (lived_ms := saved_retention_ms(self.indices)) and not before.stored_aging:
                # The forest was lost; nodes that had expired there must not be revived.
                lived = dataclasses.replace(before.aging, retention_ms=lived_ms)
                dead_ms = self.records.state(latest_ms=latest_ms).live_since_ms(lived)
                before = ForestStatus(state=before.state, stored_aging=lived, dead_before_ms=dead_ms)
            aging = self.aging or status.stored_aging or before.aging
            if lived_ms and lived_ms != aging.retention_ms:
                log.warning("the retention of %r changes: nodes lived %g days", self.name, lived_ms / DAY_MS)
            dead_before_ms = max(before.dead_before_ms, status.dead_before_ms)
            writer.write_own(aging_document(aging, dead_before_ms=dead_before_ms))
            # Sequence numbers are never reused, not even those of deleted articles.
            ahead = TimesAhead(index, self.records, latest_ms=latest_ms, aging=aging)
            state = ahead.true_state().after(before.state)
            ahead.set_articles_back(writer, state)
            writer.write([], state=state)
            if is_kept:
                _write_learned(writer, _learned(kept))
            writer.write([], learned=[*map(edit_document, kept.run(read_edits(kept.name)).edits or edits)])
            # The order is unreliable, since an article that was indexed twice has only its second `seq`.
            _mark_order(writer)
        return writer

    def _refuse_larger(self, index: ForestIndex) -> None:
        """Log the size of the old forest; raise if it exceeds the articles, unless `replace` allows that."""
        with translated(f"look for the indices of the forest {self.name!r}"):
            found = self.client.indices.get_mapping(
                expand_wildcards="all", filter_path="*.mappings._meta.esdedup.forest"
            )
        own = sorted(name for name, each in found.items() if saved_forest(each["mappings"]) == self.name)
        status = index.status()
        since_ms = status.live_since_ms(status.aging)
        counts = index.run(index.nodes.counts(new_since_ms=since_ms, live_since_ms=since_ms))
        has = f"{counts.live:,} live nodes, {counts.trees:,} clusters, and the indices {', '.join(own)}"
        articles = self.records.count()
        if self.replace != "larger" and (counts.live > articles or set(own) - self.indices.keys()):
            raise ForestExists(
                f"the forest {self.name!r} has {has}: more than the {articles:,} articles that would "
                'replace it. Name all of its indices, or pass replace="larger"',
                forest=self.name,
            )
        log.warning("replacing the forest %r, which has %s", self.name, has)

    def _keep(self, index: ForestIndex, kept: ForestIndex, *, latest_ms: int) -> None:
        """Save the data that articles do not contain, so that an interrupted rebuild does not lose it."""
        kept.drop()
        ForestIndex.make(self.client, kept.name, meta=kept.meta)
        with ForestWriter(kept) as copy:
            status = index.status(latest_ms=latest_ms)
            # Longer retention must not revive expired nodes.
            dead_before_ms = status.live_since_ms(status.aging)
            copy.write_own(aging_document(status.aging, dead_before_ms=dead_before_ms))
            copy.write([], state=status.state)
            _write_learned(copy, _learned(index))
            # Stop new edits, and wait for edits in progress, before the edits are read.
            Fence(self.client, forest=self.name).let_edit("remove")
            copy.write([], learned=[*map(edit_document, index.run(read_edits(index.name)).edits)])

    def _kept(self, meta: Meta) -> ForestIndex:
        """Return the index that holds the replaced forest's own data until the new forest is complete."""
        return ForestIndex(self.client, name=f"{self.name}-kept", meta=meta)

    def _meta(self) -> Meta:
        names = (self.name, f"{self.name}-kept")
        replaced = next(filter(None, (execute(self.client, read_meta(each)) for each in names)), None)
        found = self.records.profiles()
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
        # A log has one shard, and several shards are searched.
        usual = replaced.shards if replaced and self.lookup != "memory" else 1
        shards = usual if self.shards is None else self.shards
        lookup = self.lookup or (replaced.lookup if replaced and shards == 1 else None)
        meta = Meta.of(profile, lookup=lookup, shards=shards)
        return dataclasses.replace(meta, profile=label, rebuilding=True)


def _write_learned(writer: ForestWriter, learned: Iterable[LearnedRecord]) -> None:
    for each in learned:
        writer.write([], learned=documents_of(each.changes, log=each.log, first=each.first))


def _learned(index: ForestIndex) -> list[LearnedRecord]:
    """Return the learned boilerplate of a forest; empty if it is damaged."""
    try:
        found = index.run(read_learned(index.name))
        LearnedLog(index.name, found)
    except ForestDamaged as error:
        log.warning("the rebuilt forest starts learning from scratch: %s", error)
        return []
    return found

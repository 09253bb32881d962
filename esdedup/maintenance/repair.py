"""Repairs a forest, or rebuilds it from its articles, in steps that can be interrupted and repeated."""

import collections
import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

from elasticsearch import Elasticsearch

from esdedup.elastic.errors import translated
from esdedup.elastic.execute import execute
from esdedup.elastic.forest.clock import Clock
from esdedup.elastic.forest.expiry import refuse_shorter
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.learned import FIELD, LearnedLog, documents_of, read_learned
from esdedup.elastic.forest.lease import LeaseTerms
from esdedup.elastic.forest.meta import REBUILT_SUFFIX, Lookup, Meta, read_meta
from esdedup.elastic.forest.status import aging_document, ordered_since_document
from esdedup.elastic.forest.stored import EDITS_SUFFIX, Stored
from esdedup.elastic.forest.writer import ForestWriter, nobody_feeding
from esdedup.elastic.meta import forest_of, next_object, saved_forest, saved_retention_ms
from esdedup.elastic.requests import Query, chunks
from esdedup.elastic.stories import edit_document, read_edits
from esdedup.errors import ForestDamaged, ForestExists, ForestMismatch, IndexNotReady, SettingError
from esdedup.fingerprint.profile import get_profile
from esdedup.forest.model import NO_TIME, Aging
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

# After a pass over at most this many articles, which takes a second or two, a rebuild has caught up.
_FEW = 5_000
# An article is in its index at the latest when this many further articles have got a `seq`.
_LATE = 100_000


def adopt(writer: ForestWriter, audit: ArticleAudit, *, since_seq: int = 0) -> Repaired:
    """Restore the nodes and content hashes of articles after `since_seq`; the articles keep their roots."""
    repaired: Repaired = collections.Counter()
    for batch in audit.repairable(since_seq=since_seq):
        is_marked, stored = bool(repaired[ViolationKind.NODE_GONE]), dict[str, Stored]()
        for violation in batch:
            remedy = violation.remedy
            stored |= {each.document_id: each for each in remedy.stored}
            if remedy.state:
                writer.write([], state=remedy.state)
            repaired[violation.kind] += bool(remedy.stored or remedy.state)
        if repaired[ViolationKind.NODE_GONE] and not is_marked:
            # Mark the order as unreliable first: a lost node may have been older than its remaining articles.
            writer.write_own(ordered_since_document(writer.index.status().state.seq))
        _write(writer, stored.values())
    return repaired


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
        count = ahead.set_back(self.writer, write=functools.partial(_write, self.writer))
        repaired: Repaired = collections.Counter({ViolationKind.TIME_AHEAD: count})
        forest = ForestAudit(index, aging, on_nodes=self.on_progress)
        if records is None:
            return repaired + self._repair_forest(forest)
        articles = ArticleAudit(index, records, aging, on_articles=self.on_progress)
        repaired += adopt(self.writer, articles) + self._repair_forest(forest)
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
        _write(self.writer, stored.values())
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
        _write(self.writer, [root._replace(seen_ms=seen_ms)])
        _write(self.writer, (node for node in moved if node.id != later))
        _write(self.writer, (node for node in moved if node.id == later))


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
    # The index and id of each article with an invalid record.
    invalid: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def run(self) -> int:
        """Rebuild the forest; return its number of nodes. Errors: see `Maintenance.rebuild`."""
        names = (self.name, f"{self.name}{REBUILT_SUFFIX}")
        before, begun = (execute(self.client, read_meta(each)) for each in names)
        meta = self._meta(before or begun)
        replaced = ForestIndex(self.client, name=self.name, meta=before) if before else None
        if replaced:
            self._refuse_to_replace(replaced, meta)
        # If the forest was deleted, only the index of an interrupted rebuild has all its data.
        writer = self._begin(meta, is_new=bool(replaced and begun))
        index, since_seq = writer.index, 0
        with writer.released_on_error():
            seq = self._adopt(writer, replaced)
            while seq - since_seq > _FEW:
                since_seq, seq = seq, self._adopt(writer, replaced, since_seq=seq)
            if replaced and self.wait_s:
                log.warning("%r is rebuilt; waiting up to %g s for its owner to stop", self.name, self.wait_s)
            with nobody_feeding(self.client, self.name, wait_s=self.wait_s) as lease:
                self._adopt(writer, replaced, since_seq=seq)
                self._write_learned_and_edits(writer, replaced)
                writer.close()
                nodes = index.run(index.nodes.count_nodes())
                if replaced:
                    replaced.drop(lease)
                # The epochs of later owners must be higher than those of earlier owners.
                index.copy_to(self.name, [f"{self.name}{EDITS_SUFFIX}", *([lease.alias] if lease else [])])
            index.drop()
        if self.invalid:
            log.warning(
                "the rebuilt forest %r lacks %s articles with invalid records, such as %r: to list them, "
                "verify it with their indices",
                self.name,
                f"{len(self.invalid):,}",
                min(self.invalid)[1],
            )
        return nodes

    def _refuse_to_replace(self, index: ForestIndex, meta: Meta) -> None:
        """Raise if the old forest must not be replaced by one with this metadata."""
        if not self.replace:
            raise ForestExists(
                f"there is a forest {self.name!r} already: replace it, or name another forest",
                forest=self.name,
            )
        if index.meta.profile == meta.profile:
            # A forest that was lost and created again may have few of its articles' nodes.
            self.records.refuse_others_articles(index, max_known=0.0)
        if self.aging and not self.change_retention:
            refuse_shorter(index, self.aging)
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

    def _adopt(self, writer: ForestWriter, replaced: ForestIndex | None, *, since_seq: int = 0) -> int:
        """Adopt the articles that arrived after `since_seq`; return the latest `seq` at the beginning."""
        self.records.refresh()
        seq = self.records.state().seq
        audit = ArticleAudit(
            writer.index,
            self.records,
            self._write_status(writer, replaced),
            on_articles=lambda count: None if since_seq else self.on_progress(count),
            on_invalid=lambda record: self.invalid.add((record.index, record.id)),
            is_rebuild=True,
        )
        adopt(writer, audit, since_seq=since_seq - _LATE)
        return seq

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

    def _write_learned_and_edits(self, writer: ForestWriter, replaced: ForestIndex | None) -> None:
        source = replaced or writer.index
        try:
            learned = source.run(read_learned(source.name))
            LearnedLog(source.name, learned)
        except ForestDamaged as error:
            log.warning("the rebuilt forest starts learning from scratch: %s", error)
            learned = []
        documents = [documents_of(each.changes, log=each.log, first=each.first) for each in learned]
        # A forest that is rebuilt under another name keeps its edits, unless it is the target of a migration.
        following = {each.forest for each in map(next_object, self.indices.values()) if each}
        is_own = replaced or self.name in following
        edited = self.name if is_own else forest_of(self.indices, given=None, usual=self.name)
        edits = execute(self.client, read_edits(edited)).edits
        writer.write([], learned=[*itertools.chain(*documents), *map(edit_document, edits)])
        if not learned:
            log.warning(
                "the rebuilt forest %r has learned no boilerplate: let it learn from its stored "
                "articles; otherwise the first pages that arrive are compared including boilerplate",
                self.name,
            )

    def _meta(self, before: Meta | None) -> Meta:
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
        usual = before.shards if before and self.lookup != "memory" else 1
        shards = usual if self.shards is None else self.shards
        lookup = self.lookup or (before.lookup if before and shards == 1 else None)
        meta = Meta.of(profile, lookup=lookup, shards=shards)
        return dataclasses.replace(meta, profile=label)

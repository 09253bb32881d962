"""Repairs violations, in steps that can each be interrupted and run again."""

import collections
from collections.abc import Iterable
from typing import Any

from esdedup.elastic.forest.documents import chunks
from esdedup.elastic.forest.learned import FIELD
from esdedup.elastic.forest.stored import Packing, Stored
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.elastic.requests import Query
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.record_writer import RecordWriter
from esdedup.maintenance.times_ahead import TimesAhead
from esdedup.maintenance.violations import RepairableViolation, ViolationKind

Repaired = collections.Counter[ViolationKind]
"""How many violations of each kind have been repaired."""

WRITE_BATCH = 2_000


class Repair:
    """Writes the remedies of violations into a forest that this process owns."""

    def __init__(self, writer: ForestWriter, *, write_batch: int = WRITE_BATCH) -> None:
        """Repair the forest of `writer`.

        Args:
            writer: Owns the forest; closed by the caller.
            write_batch: Nodes or articles that are written in one request.
        """
        self._writer = writer
        self._packing = Packing(writer.index.relation)
        self._write_batch = write_batch

    def adopt(self, audit: ArticleAudit) -> Repaired:
        """Restore the nodes and pages of the articles; the roots of the articles stay as they are."""
        repaired: Repaired = collections.Counter()
        for batch in audit.repairable():
            stored: dict[str, Stored] = {}
            for violation in batch:
                remedy = violation.remedy
                stored |= {each.document_id: each for each in remedy.stored}
                if remedy.state:
                    self._writer.write([], state=remedy.state)
                repaired[violation.kind] += bool(remedy.stored or remedy.state)
            self._write(stored.values())
        return repaired

    def repair_forest(self, audit: ForestAudit) -> Repaired:
        """Repair the violations in the nodes; a tree with an older neighbour joins that neighbour's tree."""
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
        self._writer.delete(damaged)
        self._write(stored.values())
        self._writer.index.refresh()
        for later in joins:
            target = _last_target(joins, later)
            if target != later:
                self._join(later, target)
                # The next tree may join the same one.
                self._writer.index.refresh()
        return repaired

    def assign_roots(self, articles: RecordWriter, audit: ArticleAudit) -> Repaired:
        """Give articles the roots of their nodes; clear what is left of an earlier text."""
        repaired: Repaired = collections.Counter()
        for batch in audit.repairable():
            new_roots = [violation.remedy.new_root for violation in batch if violation.remedy.new_root]
            for chunk in chunks(new_roots, self._write_batch):
                self._writer.renew()
                repaired[ViolationKind.TWO_ROOTS] += articles.assign_roots(chunk)
            outdated = [violation.remedy.outdated for violation in batch if violation.remedy.outdated]
            for some in chunks(outdated, self._write_batch):
                self._writer.renew()
                repaired[ViolationKind.INVALID_RECORD] += articles.clear_fingerprints(some)
        articles.refresh()
        return repaired

    def _forget(self, documents: Query) -> None:
        # The document that says how many there must be comes last: until then, what is left is damaged.
        for hits in self._writer.index.hit_pages(documents, sort=[FIELD], versions=True):
            self._writer.delete(hits)

    def _join(self, later: str, target: str) -> None:
        """Move a tree under another root, its own root last: until then an audit still finds the tree."""
        index = self._writer.index
        found = index.run(index.nodes.by_id([target]))
        root = next((node for node in found if node.is_root), None)
        if root is None:
            # The target is missing too: the next audit joins the trees, once the target has been restored.
            return
        moved = [node._replace(root=target) for node in index.run(index.nodes.tree(later))]
        seen_ms = max([root.seen_ms, *(node.seen_ms for node in moved)])
        # A root must never expire before its leaves, so its own `seen` is written first.
        self._write([root._replace(seen_ms=seen_ms)])
        self._write(node for node in moved if node.id != later)
        self._write(node for node in moved if node.id == later)

    def set_times_back(self, ahead: TimesAhead) -> Repaired:
        """Set back the times that are in the future."""
        return collections.Counter(
            {ViolationKind.TIME_AHEAD: ahead.set_back(self._writer, write=self._write)}
        )

    def _write(self, stored: Iterable[Stored]) -> None:
        for chunk in chunks(list(stored), self._write_batch):
            self._writer.write([self._packing.pack(each) for each in chunk])


def _last_target(joins: dict[str, str], later: str) -> str:
    """Follow the joins from one root to the last one."""
    # Each join leads to an earlier root, except in damaged forests, where they may form a cycle.
    target, passed = joins[later], {later}
    while target in joins and target not in passed:
        passed.add(target)
        target = joins[target]
    return target

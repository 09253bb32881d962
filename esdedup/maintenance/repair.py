"""Mending what an audit finds, in an order in which each step can be interrupted and run again."""

import collections
from collections.abc import Iterable
from typing import Any

from esdedup.elastic.forest.documents import StoredNode, chunks
from esdedup.elastic.forest.writer import ForestWriter
from esdedup.maintenance.article_audit import ArticleAudit
from esdedup.maintenance.forest_audit import ForestAudit
from esdedup.maintenance.records import Records
from esdedup.maintenance.violations import ViolationKind

_WRITTEN_AT_ONCE = 2_000

Repaired = collections.Counter[ViolationKind]
"""How many violations of each kind have been repaired."""


def adopt(owned: ForestWriter, articles: ArticleAudit) -> Repaired:
    """Give the articles back the nodes that they lack, page by page; their roots stay as they are."""
    repaired: Repaired = collections.Counter()
    for page in articles.remedies():
        nodes: dict[str, StoredNode] = {}
        for violation in page:
            nodes |= {node.id: node for node in violation.nodes}
            if violation.state:
                owned.write([], state=violation.state)
            repaired[violation.kind] += bool(violation.nodes or violation.state)
        _write(owned, nodes.values())
    return repaired


def repair_forest(owned: ForestWriter, forest: ForestAudit) -> Repaired:
    """Mend what the nodes show by themselves; a tree that should not be one joins the earlier one."""
    repaired: Repaired = collections.Counter()
    nodes: dict[str, StoredNode] = {}
    joins: dict[str, str] = {}
    damaged: list[dict[str, Any]] = []
    for violation in forest.violations():
        repaired[violation.kind] += violation.can_be_repaired
        nodes |= {node.id: node for node in violation.nodes}
        if violation.joins:
            joins[violation.subject] = violation.joins
        if violation.damaged:
            damaged.append(violation.damaged)
    owned.delete(damaged)
    _write(owned, nodes.values())
    owned.index.refresh()
    for later in joins:
        # An earlier root each time, unless what is damaged goes in a circle.
        target, passed = joins[later], {later}
        while target in joins and target not in passed:
            passed.add(target)
            target = joins[target]
        if target != later:
            _join(owned, later, target)
            # The next one may join the same tree.
            owned.index.refresh()
    return repaired


def relabel(owned: ForestWriter, labels: Records, articles: ArticleAudit) -> Repaired:
    """Give each article the root of its text's node."""
    repaired: Repaired = collections.Counter()
    for page in articles.remedies():
        found = [violation.relabel for violation in page if violation.relabel]
        for chunk in chunks(found, _WRITTEN_AT_ONCE):
            owned.renew()
            repaired[ViolationKind.TWO_ROOTS] += labels.relabel(chunk)
    labels.refresh()
    return repaired


def _join(owned: ForestWriter, later: str, target: str) -> None:
    """Move a tree under another root, its own root last: until then it can be seen that it has to move."""
    root = next((node for node in owned.index.run(owned.index.search.by_id([target])) if node.is_root), None)
    if root is None:
        # Gone as well: what made it again will be seen the next time.
        return
    nodes = owned.index.scan({"term": {"root": later}})
    moved = [node._replace(root=target) for node in nodes]
    seen_ms = max([root.seen_ms, *(node.seen_ms for node in moved)])
    # The root lives as long as its leaves before they are its leaves.
    _write(owned, [root._replace(seen_ms=seen_ms)])
    _write(owned, [node for node in moved if node.id != later])
    _write(owned, [node for node in moved if node.id == later])


def _write(owned: ForestWriter, nodes: Iterable[StoredNode]) -> None:
    for chunk in chunks(list(nodes), _WRITTEN_AT_ONCE):
        owned.write(chunk)

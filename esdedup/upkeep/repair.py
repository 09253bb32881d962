"""Mending what an audit finds, in an order in which each step can be interrupted and run again."""

import collections
from collections.abc import Iterable
from typing import Any

from esdedup.elastic.labels import Labels
from esdedup.elastic.nodes import StoredNode, chunks
from esdedup.elastic.owned import OwnedForest
from esdedup.upkeep.article_audit import ArticleAudit
from esdedup.upkeep.breaches import BreachKind
from esdedup.upkeep.forest_audit import ForestAudit

_WRITTEN_AT_ONCE = 2_000

Mended = collections.Counter[BreachKind]
"""How many breaches of each kind have been mended."""


def adopt(owned: OwnedForest, articles: ArticleAudit) -> Mended:
    """Give the articles back the nodes that they lack, page by page; their roots stay as they are."""
    mended: Mended = collections.Counter()
    for page in articles.remedies():
        nodes: dict[str, StoredNode] = {}
        for breach in page:
            nodes |= {node.id: node for node in breach.nodes}
            if breach.state:
                owned.write([], state=breach.state)
            mended[breach.kind] += bool(breach.nodes or breach.state)
        _write(owned, nodes.values())
    return mended


def mend_forest(owned: OwnedForest, forest: ForestAudit) -> Mended:
    """Mend what the nodes show by themselves; a tree that should not be one joins the earlier one."""
    mended: Mended = collections.Counter()
    nodes: dict[str, StoredNode] = {}
    joins: dict[str, str] = {}
    damaged: list[dict[str, Any]] = []
    for breach in forest.breaches():
        mended[breach.kind] += breach.can_be_mended
        nodes |= {node.id: node for node in breach.nodes}
        if breach.joins:
            joins[breach.subject] = breach.joins
        if breach.damaged:
            damaged.append(breach.damaged)
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
    return mended


def relabel(owned: OwnedForest, labels: Labels, articles: ArticleAudit) -> Mended:
    """Give each article the root of its text's node."""
    mended: Mended = collections.Counter()
    for page in articles.remedies():
        found = [breach.relabel for breach in page if breach.relabel]
        for chunk in chunks(found, _WRITTEN_AT_ONCE):
            owned.renew()
            mended[BreachKind.TWO_ROOTS] += labels.relabel(chunk)
    labels.refresh()
    return mended


def _join(owned: OwnedForest, later: str, target: str) -> None:
    """Move a tree under another root, its own root last: until then it can be seen that it has to move."""
    root = next((node for node in owned.index.search.by_id([target]) if node.is_root), None)
    if root is None:
        # Gone as well: what made it again will be seen the next time.
        return
    nodes = owned.index.search.scan({"term": {"root": later}})
    moved = [node._replace(root=target) for node in nodes]
    seen_ms = max([root.seen_ms, *(node.seen_ms for node in moved)])
    # The root lives as long as its leaves before they are its leaves.
    _write(owned, [root._replace(seen_ms=seen_ms)])
    _write(owned, [node for node in moved if node.id != later])
    _write(owned, [node for node in moved if node.id == later])


def _write(owned: OwnedForest, nodes: Iterable[StoredNode]) -> None:
    for chunk in chunks(list(nodes), _WRITTEN_AT_ONCE):
        owned.write(chunk)

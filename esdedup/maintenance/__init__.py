"""Maintains a forest: expiry, verification, repair, rebuilding, statistics, explanations.

May import every inner room: reading, elastic, forest, neighbours, fingerprint, text.
"""

from esdedup.elastic.forest.expiry import Expired
from esdedup.maintenance.maintenance import Maintenance
from esdedup.maintenance.stats import Stats
from esdedup.maintenance.verdict import ArticleState, IndexedExplanation, Outcome
from esdedup.maintenance.violations import Violation, ViolationKind

__all__ = [
    "ArticleState",
    "Expired",
    "IndexedExplanation",
    "Maintenance",
    "Outcome",
    "Stats",
    "Violation",
    "ViolationKind",
]

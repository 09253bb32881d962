"""Maintains a forest: expiry, verification, repair, rebuilding, statistics, explanations, edits."""

from esdedup.elastic.forest.expiry import Expired
from esdedup.forest.stories import Edit
from esdedup.maintenance.editor import EditHistory, EditResult
from esdedup.maintenance.maintenance import Maintenance
from esdedup.maintenance.shared_representatives import SharedRepresentative
from esdedup.maintenance.stats import (
    Cluster,
    Day,
    ForestNode,
    ImplausibleCluster,
    Key,
    LearnedStats,
    Placeholder,
    Stats,
)
from esdedup.maintenance.stored_texts import BoilerplateBySite, LearnedPassage, SiteBoilerplate
from esdedup.maintenance.violations import Violation, ViolationKind
from esdedup.reading.verdict import ArticleState, IndexedExplanation, Neighbour, Outcome, RootComparison

__all__ = [
    "ArticleState",
    "BoilerplateBySite",
    "Cluster",
    "Day",
    "Edit",
    "EditHistory",
    "EditResult",
    "Expired",
    "ForestNode",
    "ImplausibleCluster",
    "IndexedExplanation",
    "Key",
    "LearnedPassage",
    "LearnedStats",
    "Maintenance",
    "Neighbour",
    "Outcome",
    "Placeholder",
    "RootComparison",
    "SharedRepresentative",
    "SiteBoilerplate",
    "Stats",
    "Violation",
    "ViolationKind",
]

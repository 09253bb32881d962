"""What keeps a forest well over the years: expiry, verification and repair, rebuilding, figures."""

from esdedup.elastic.forest.expiry import Expired
from esdedup.maintenance.maintenance import Maintenance
from esdedup.maintenance.stats import Stats
from esdedup.maintenance.verdict import IndexedExplanation, Outcome, Standing
from esdedup.maintenance.violations import Violation, ViolationKind

__all__ = [
    "Expired",
    "IndexedExplanation",
    "Maintenance",
    "Outcome",
    "Standing",
    "Stats",
    "Violation",
    "ViolationKind",
]

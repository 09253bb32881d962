"""The forest of clusters: incremental, with roots that never change."""

from esdedup.forest.forest import Forest
from esdedup.forest.model import NO_TIME, Aging, Arrivals, Assignment, Kind, Near, Nodes, Plan, State
from esdedup.forest.store import NearIndex, Store

__all__ = [
    "NO_TIME",
    "Aging",
    "Arrivals",
    "Assignment",
    "Forest",
    "Kind",
    "Near",
    "NearIndex",
    "Nodes",
    "Plan",
    "State",
    "Store",
]

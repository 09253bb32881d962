"""The forest of clusters: incremental, with roots that never change."""

from esdedup.forest.forest import Forest
from esdedup.forest.model import NO_TIME, Aging, Arrivals, Assignment, Kind, Neighbours, Nodes, Plan, State
from esdedup.forest.store import Store

__all__ = [
    "NO_TIME",
    "Aging",
    "Arrivals",
    "Assignment",
    "Forest",
    "Kind",
    "Neighbours",
    "Nodes",
    "Plan",
    "State",
    "Store",
]

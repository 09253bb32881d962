"""The forest of clusters: arrivals in, roots out that never change. Pure.

The laws are in the crate, in `core/src/forest/laws.rs`, over `Nodes` in memory; `store` is the contract of
what keeps them, with a store without a server. May import `neighbours` and the rooms below it.
"""

from esdedup.forest.forest import Decision, begin, decide
from esdedup.forest.model import NO_TIME, Aging, Arrivals, Assignment, Kind, Plan, State
from esdedup.forest.nodes import Nodes
from esdedup.forest.store import Store

__all__ = [
    "NO_TIME",
    "Aging",
    "Arrivals",
    "Assignment",
    "Decision",
    "Kind",
    "Nodes",
    "Plan",
    "State",
    "Store",
    "begin",
    "decide",
]

"""The forest of clusters: arrivals in, roots out that never change. Pure.

`laws` decides, over a `Store` whose contract is `store`; `memory` is a store without a server. May import
`neighbours` and the rooms below it.
"""

from esdedup.forest.forest import Decided, Forest
from esdedup.forest.model import (
    NO_TIME,
    Aging,
    Arrivals,
    Assignment,
    Kind,
    Neighbours,
    Nodes,
    Pages,
    Plan,
    State,
)
from esdedup.forest.store import Store

__all__ = [
    "NO_TIME",
    "Aging",
    "Arrivals",
    "Assignment",
    "Decided",
    "Forest",
    "Kind",
    "Neighbours",
    "Nodes",
    "Pages",
    "Plan",
    "State",
    "Store",
]

"""The forest of clusters, which gives each arriving article a root that never changes. Pure.

The rules are in the crate (`core/src/forest/laws.rs`) and operate on `Nodes` in memory. `store` contains the
contract of a store, and a store in memory. May import `neighbours` and the packages below it.
"""

from esdedup.forest.forest import Decision as Decision
from esdedup.forest.forest import begin as begin
from esdedup.forest.forest import decide as decide
from esdedup.forest.model import NO_TIME as NO_TIME
from esdedup.forest.model import Aging as Aging
from esdedup.forest.model import Arrivals as Arrivals
from esdedup.forest.model import Assignment as Assignment
from esdedup.forest.model import Kind as Kind
from esdedup.forest.model import Plan as Plan
from esdedup.forest.model import State as State
from esdedup.forest.nodes import Nodes as Nodes
from esdedup.forest.store import Store as Store

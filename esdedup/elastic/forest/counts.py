"""How many nodes a forest has, of several kinds."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeCounts:
    """How many nodes a forest has, of several kinds."""

    # Live or not.
    nodes: int
    # Roots.
    trees: int
    # Nodes that have not expired.
    live: int
    # Nodes made since a time; all nodes if there is none.
    new: int
    # By the time at which a day begins, UTC, milliseconds since 1970: made on it, and last needed on it.
    made_by_day: Mapping[int, int]
    seen_by_day: Mapping[int, int]

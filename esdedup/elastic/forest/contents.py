"""What a forest holds, in numbers."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a forest holds, as its owner knows it."""

    # Live or not; without nodes in memory, as far as a refresh has shown them.
    nodes: int
    # Besides those that made a node.
    pages: int
    # Of this process: nodes, pages and what was learned.
    memory_bytes: int
    # Of these, what was learned: all of them unless nodes are in memory.
    learned_bytes: int
    # How many passages are boilerplate.
    passages: int
